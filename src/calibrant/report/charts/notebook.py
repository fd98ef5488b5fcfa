"""Charts for notebooks: specifications as Altair's objects, which people can show, change and save."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, ParamSpec

from calibrant.errors import MissingDependencyError, sentence
from calibrant.report.charts.layers import Spec

Chart = Any  # an altair.LayerChart; altair is loaded only when somebody asks for one
P = ParamSpec("P")


class drawing(Generic[P]):  # noqa: N801 - reads as a decorator
    """A function that returns a specification, as one that returns an Altair chart.

    Pages take `spec`, the function as it was written, and do without Altair.
    """

    def __init__(self, spec: Callable[P, Spec]) -> None:
        functools.update_wrapper(self, spec)
        self.spec = spec

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Chart:
        return as_altair(self.spec(*args, **kwargs))


class Charts(Mapping[str, Chart]):
    """Altair charts by name, each made when it is first asked for."""

    def __init__(self, specs: Mapping[str, Spec]) -> None:
        altair()  # where it is missing, that is said at once
        self._specs, self._made = specs, dict[str, Chart]()

    def __getitem__(self, name: str) -> Chart:
        if name not in self._made:
            self._made[name] = as_altair(self._specs[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def __repr__(self) -> str:
        return f"Charts({', '.join(self)})"


def as_altair(spec: Spec) -> Chart:
    """Return the Altair chart of a specification."""
    alt = altair()
    parts = {
        "layer": [alt.Chart.from_dict(layer, validate=False) for layer in spec["layer"]],
        "params": [alt.VariableParameter.from_dict(one, validate=False) for one in spec.get("params", ())],
        "title": alt.TitleParams(**spec["title"]),
    }
    named = {name: item for name, item in spec.items() if name != "datasets"}
    chart = _offline()(**{**named, **parts})
    chart.datasets = spec["datasets"]  # afterwards: Altair would copy and check every row
    return chart


def altair() -> Any:
    """Import Altair, or say how to install it."""
    try:
        import altair
    except ImportError:
        hint = "pip install 'calibrant[report]'"
        raise MissingDependencyError(sentence("charts", "need the package altair", hint=hint)) from None
    return altair


@functools.cache
def _offline() -> Any:
    """Return the class of charts that notebooks show as pictures; Altair's own view needs the network."""

    class OfflineChart(altair().LayerChart):  # type: ignore[misc]  # Altair is loaded when a chart is drawn
        """A layered chart with a view that needs no network and survives the export of a notebook."""

        def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
            import vl_convert

            return {"image/svg+xml": vl_convert.vegalite_to_svg(self.to_json(validate=False))}

    return OfflineChart
