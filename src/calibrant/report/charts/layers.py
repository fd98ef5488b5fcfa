"""The part of Vega-Lite's grammar that charts are written in: layers of marks, and the fields they show.

Specifications are plain dictionaries, which a page holds as they are. Altair is loaded for notebooks alone:
it takes longer to import than all charts of a page take to draw.

Names that users gave belong into data, captions and the domains of scales. Vega-Lite makes code of `sort`
lists, and of the titles of fields unless a mark has a `description`: a line break in them ends the script.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Spec = dict[str, Any]  # a specification of Vega-Lite, or a part of one
TYPES = {"Q": "quantitative", "N": "nominal"}


def field(shorthand: str, **options: Any) -> Spec:
    """Return what a channel shows: a column with its type, and how.

    >>> field("rate:Q", title=None)
    {'field': 'rate', 'type': 'quantitative', 'title': None}
    >>> field("upper")  # the end of a bar or a band has the type of its beginning
    {'field': 'upper'}
    """
    name, _, kind = shorthand.partition(":")
    return {"field": name, **({"type": TYPES[kind]} if kind else {}), **options}


@dataclass(frozen=True, slots=True)
class Layer:
    """Data, the marks that show them, and which column each channel shows; methods return changed copies."""

    spec: Spec

    def mark(self, kind: str, **look: Any) -> Layer:
        """Show the data as marks of this kind."""
        return Layer({**self.spec, "mark": {"type": kind, **look}})

    def encode(self, **channels: Any) -> Layer:
        """Let channels show fields, beside those of before."""
        shown = {name: _channel(given) for name, given in channels.items()}
        return Layer({**self.spec, "encoding": {**self.spec.get("encoding", {}), **shown}})

    def where(self, test: str) -> Layer:
        """Keep the rows for which an expression is true."""
        return Layer({**self.spec, "transform": [*self.spec.get("transform", ()), {"filter": test}]})


def _channel(given: Any) -> Any:
    if isinstance(given, list):
        return [_channel(one) for one in given]
    return field(given) if isinstance(given, str) else given
