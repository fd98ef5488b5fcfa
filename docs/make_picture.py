"""Make docs/report.png, the picture of the report in the README, from `calibrant demo`'s data.

Needs the extra `report`. The three charts are drawn by the same functions as the page, with no browser.
"""

from __future__ import annotations

from pathlib import Path

from calibrant.demonstration import demonstration
from calibrant.report.evaluation import evaluate

TARGET = Path(__file__).parent / "report.png"
SHOWN = ("reliability", "cumulative")


def picture() -> bytes:
    """Return the reliability diagram and the cumulative differences side by side, as PNG."""
    import altair as alt
    import vl_convert

    data = demonstration(20_000, seed=1)
    charts = evaluate(data.outcome, data.prediction, seed=1).charts
    specs = [charts[name].to_dict() for name in SHOWN]
    config = specs[0]["config"]
    datasets = {}
    for number, spec in enumerate(specs):
        _rename(spec, f"chart{number}-")
        datasets.update(spec.pop("datasets"))
        for key in ("config", "$schema", "usermeta"):
            spec.pop(key, None)
    whole = {"$schema": alt.SCHEMA_URL, "hconcat": specs, "datasets": datasets, "config": config}
    png: bytes = vl_convert.vegalite_to_png(whole, scale=1.5)
    return png


def _rename(spec: dict[str, object], prefix: str) -> None:
    """Give the data sets of one chart names of their own."""
    datasets = spec["datasets"]
    assert isinstance(datasets, dict)
    spec["datasets"] = {prefix + name: rows for name, rows in datasets.items()}
    for layer in spec["layer"]:  # type: ignore[attr-defined]
        layer["data"]["name"] = prefix + layer["data"]["name"]


if __name__ == "__main__":
    TARGET.write_bytes(picture())
    print(f"wrote {TARGET}")
