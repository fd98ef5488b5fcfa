"""All distances from calibration in one view: the sandwich that holds the true distance, and what is near."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.errors import InvalidInputError, reject_name
from calibrant.forecasts import Forecasts
from calibrant.metrics.calling import ARRAYS, as_forecasts, shares_parameters
from calibrant.metrics.distance.upper import TIME_LIMIT, distance_over_points
from calibrant.metrics.lookup import measure
from calibrant.parallel import map_threads_named
from calibrant.records import Missing, Records, check_records, warn_if_swapped
from calibrant.results import Measurement

DISTANCE = "distance"
_THEOREMS = {
    "lower-distance": ("lower <= dCE", "Błasiok et al. 2023, eq. (3)"),
    "upper-distance": ("dCE <= upper <= 4 sqrt(lower)", "Błasiok et al. 2023, Corollary 6.4"),
    "interval": ("upper <= intCE <= 4 sqrt(lower)", "Błasiok et al. 2023, Theorem 6.2"),
    "smooth": ("lower / 2 <= smCE <= 2 lower", "Błasiok et al. 2023, Theorem 7.3"),
    "l1-atb": ("(2/3) smCE <= l1-ATB <= 3 lower", "Hartline et al. 2025, Theorem 5.1"),
    "kernel": ("smCE / 3 <= kCE <= sqrt(lower)", "Błasiok et al. 2023, Theorem 8.5"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Related:
    """One measure of the view, the theorem that ties it to the distance, and where that is proven."""

    measurement: Measurement
    theorem: str
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """The distance to calibration dCE, which predictions and outcomes alone only bracket, and its kin.

    [`lower`, `upper`] is proven to hold dCE, whatever the features behind the predictions are. `related`
    holds the measures in reading order; ``distances["smooth"]`` is the measurement of that name.
    """

    lower: float
    upper: float
    related: tuple[Related, ...]

    @property
    def over_points(self) -> Measurement | None:
        """The distance to calibration over the points that ids name, where they were given."""
        first = self.related[0].measurement
        return first if first.name == DISTANCE else None

    def __getitem__(self, name: str) -> Measurement:
        for row in self.related:
            if row.measurement.name == name:
                return row.measurement
        raise reject_name("measure", name, list(_THEOREMS))

    def __repr__(self) -> str:
        lines = [f"dCE, the distance to calibration, lies in [{self.lower:.6f}, {self.upper:.6f}]"]
        for row in self.related:
            result = row.measurement
            bounds = "" if result.exact else f"[{result.lower:.6f}, {result.upper:.6f}]"
            lines.append(f"  {result.name:<15}{result.value:.6f}  {bounds:<22}{row.theorem}  ({row.source})")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers and theorems, ready for JSON."""
        rows = [
            {**row.measurement.to_dict(), "theorem": row.theorem, "source": row.source}
            for row in self.related
        ]
        return {"lower": self.lower, "upper": self.upper, "related": rows}


@shares_parameters(ARRAYS)
def distances(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    ids: Any = None,
    missing: Missing = "error",
    pos_label: Any = None,
) -> Distances:
    """Return the whole sandwich: lower <= dCE <= upper <= interval, with smooth, l1-ATB and kernel.

    The distance to calibration dCE is how far, on average, the predictions are from the nearest perfectly
    calibrated predictor. Which predictors exist depends on the features; without them dCE is known up to
    the bracket given here. With `ids`, which name the point behind each record, the view begins with the
    distance to calibration over these points, and the bracket is that of certified_distance.

    Parameters
    ----------
    ids
        The point behind each record; a point has one prediction.

    Examples
    --------
    >>> found = distances([0, 1, 1, 0], [0.4, 0.4, 0.6, 0.6])
    >>> round(found.lower, 3), round(found.upper, 3), round(found["smooth"].value, 3)
    (0.017, 0.1, 0.01)
    """
    if ids is None:
        forecasts = as_forecasts(y_true, y_prob, sample_weight, missing, pos_label)
    elif isinstance(y_true, Forecasts):
        raise InvalidInputError("ids", "need the records", "got Forecasts", "pass arrays")
    else:
        checked = check_records(y_true, y_prob, sample_weight, missing, pos_label=pos_label)
        warn_if_swapped(checked, y_true=y_true, y_prob=y_prob)
        records = Records.of(checked)
        forecasts = Forecasts.of_records(records)
    upper = measure(forecasts, "upper-distance", time_limit=TIME_LIMIT)
    view = distances_beside(forecasts, {"upper-distance": upper})
    return view if ids is None else distances_over(view, records, ids, TIME_LIMIT)


def distances_over(view: Distances, records: Records, ids: Any, time_limit: float = 0.0) -> Distances:
    """Put the distance over the points that `ids` name, one per row of the user, before the others."""
    result = distance_over_points(records, ids, time_limit=time_limit)
    bounds = (result.value, result.lower, result.upper, result.exact)
    of = view.related[0].measurement
    measured = Measurement(DISTANCE, *bounds, of.n, of.levels, None, result.details)
    first = Related(measured, "lower <= dCE <= upper", "Błasiok et al. 2023, Definition 4.1")
    lower, upper = max(view.lower, result.lower), min(view.upper, result.upper)  # both hold it
    return Distances(min(lower, upper), upper, (first, *view.related))


def distances_beside(forecasts: Forecasts, taken: Mapping[str, Measurement]) -> Distances:
    """Return the same view, where some measures of these forecasts, by name, have been `taken` already."""
    absent = {name: name for name in _THEOREMS if name not in taken}
    measured = map_threads_named(lambda name: measure(forecasts, name), absent, size=forecasts.levels)
    every = {**taken, **measured}
    related = tuple(Related(every[name], *why) for name, why in _THEOREMS.items())
    return Distances(every["lower-distance"].lower, every["upper-distance"].upper, related)
