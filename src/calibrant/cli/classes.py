"""`calibrant classes`: how calibrated each of several classes is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
import numpy as np

from calibrant.cli import options as opt
from calibrant.cli.output import show_result
from calibrant.cli.rows import progress_bar, refuse_many
from calibrant.errors import InvalidInputError
from calibrant.inference.class_table import class_table
from calibrant.io.read import FileNames, read_table
from calibrant.records import Missing


@click.command(epilog=opt.examples("calibrant classes images.csv -y label -p cat -p dog -p owl"))
@opt.rows_in
@opt.column_option("--outcome", "-y", required=True, help="Column of the class that occurred.")
@opt.column_option(
    "--prediction", "-p", "predictions", required=True, multiple=True,
    help="Column of the predicted probabilities of a class; give it once for each class.",
)  # fmt: skip
@click.option(
    "--labels", type=opt.NAMES, metavar="A,B,C",
    help="What the outcome calls these classes, in order; else their columns' names, or 0, 1, 2, ...",
)  # fmt: skip
@opt.weight_option
@opt.missing
@click.option("--measure", "-m", type=opt.MEASURE, default="smooth", help="The error shown.")
@opt.option_of(class_table, "--draws", help="Simulations, where a p-value needs them; at least 20 per class.")
@opt.seed
@opt.as_json
def classes(
    file: FileNames, outcome: str, predictions: tuple[str, ...], labels: list[str] | None,
    weight: str | None, missing: Missing, measure: str, draws: int, seed: int | None, json_: bool,
) -> None:  # fmt: skip
    """Measure and test every class of a file with one column of probabilities for each."""
    if len(predictions) < 2:
        rule, got = "must be given once for each class", f"got {', '.join(map(repr, predictions))}"
        raise InvalidInputError("--prediction", rule, got, "write -p first -p second -p third")
    refuse_many(file, 2 * len(predictions))  # about 280 bytes per row and class
    how: dict[str, Any] = {"missing": missing, "draws": draws, "seed": seed}
    with (
        class_columns(file, outcome, predictions, weight, labels) as (occurred, probabilities, given),
        progress_bar("testing classes") as progress,
    ):
        result = class_table(occurred, probabilities, measure=measure, progress=progress, **given, **how)
    show_result(result, json_, result.sheet())


@contextmanager
def class_columns(
    file: FileNames, outcome: str, predictions: tuple[str, ...], weight: str | None, labels: list[str] | None
) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    """Yield outcomes, probabilities, and the weights and names of classes; errors name columns."""
    numbers, categories = read_table(file, [*predictions, *([weight] if weight else [])], [outcome])
    occurred, names = class_labels(categories[outcome], predictions, labels)
    probabilities = np.column_stack([numbers[name] for name in predictions])
    columns = f"columns {', '.join(map(repr, predictions))}"
    known = {"y_true": f"column {outcome!r}", "y_prob": columns, "probabilities": columns}
    known |= {"sample_weight": f"column {weight!r}", "classes": "--labels"}
    try:
        yield occurred, probabilities, {"sample_weight": numbers.get(weight or ""), "classes": names}
    except InvalidInputError as error:
        raise error.with_parts(
            subject=known.get(error.subject, error.subject),
            rule=re.sub("column of (probabilities|y_prob)", "column", error.rule),
            hint=error.hint.replace("with classes=,", "with --labels,"),
        ) from None


def class_labels(
    occurred: Any, predictions: tuple[str, ...], labels: list[str] | None
) -> tuple[Any, list[Any]]:
    """Return labels and names in one type; with `-p 1 -p 0` a label of 0 means the second column."""
    values = np.asarray(occurred)
    spelled = {name.lower(): name for name in labels or predictions if name.lower() in ("true", "false")}
    texts = np.array([_text(item, spelled) for item in values.tolist()], dtype=object)
    by_name = set(texts.tolist()) - {None} <= set(predictions)
    if labels is None and values.dtype.kind in "iuf" and not by_name:
        return values, list(range(len(predictions)))
    return texts, list(labels or predictions)


def _text(item: Any, spelled: Mapping[str, str]) -> str | None:
    """Write a label as it is typed: 2018 for 2018.0, and truth values as `spelled` by the user."""
    if item is None or item != item:
        return None
    if isinstance(item, bool):
        return spelled.get(str(item).lower(), str(item))
    return str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)
