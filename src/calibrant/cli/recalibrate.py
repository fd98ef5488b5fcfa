"""`calibrant recalibrate`: fit a map to a file, say whether it helps, and write it as JSON."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import Any

import click
import numpy as np

from calibrant.cli.classes import class_labels, named_by_option
from calibrant.cli.options import (
    METHOD,
    NAME,
    NAMES,
    InputPath,
    as_json,
    columns_unless_sketch,
    examples,
    files_read,
    refuse_typed,
    rows_in,
    seed,
)
from calibrant.cli.output import print_note, print_result, print_sentences, show_json, show_sheet, show_table
from calibrant.cli.reading import outcome_table, takes_censored
from calibrant.cli.rows import listed, progress_bar, read_checked, read_rows, sketch_if_needed
from calibrant.errors import InvalidInputError, TooFewRecordsError, sentence
from calibrant.files import atomic_write, check_target
from calibrant.formatting import format_value, pluralize
from calibrant.groups.rules import Rule, rules_from_json
from calibrant.io.read import MAX_EXACT_ROWS, FileNames
from calibrant.online.state import read_text
from calibrant.recalibration.assess import MIN_EACH, MIN_RECORDS, Assessment
from calibrant.recalibration.assess_groups import GroupChange, short_change_sheet
from calibrant.recalibration.recalibrate import load_recalibration
from calibrant.recalibration.recalibrate import recalibrate as fit
from calibrant.recalibration.result import Recalibration
from calibrant.records import Missing

HARMS, TOO_LITTLE = 1, 3
MOST_GROUPS = 100  # printed
FIT_SHARE = 0.25  # of the progress bar; the rest is the assessment
ARGUMENTS = {p.name for p in signature(fit).parameters.values() if p.kind is not p.VAR_KEYWORD}
FITTING = (
    "outcome", "weight", "missing", "method", "settings", "weights", "covariates", "groups", "rules",
    "clusters", "labels", "prevalence", "force", "seed",
)  # fmt: skip
OWN_ROWS = "The predictions must come from rows that the model was not trained on."


@click.command(
    epilog=examples(
        "calibrant recalibrate loans.csv -y default -p p -o map.json",
        "calibrant recalibrate loans.csv -y default -p p --groups employment -o map.json",
    )
)
@takes_censored
@rows_in
@columns_unless_sketch
@click.option(
    "--method",
    "-m",
    type=METHOD,
    default="auto",
    help="A method, or auto: the best simple one.",
)
@click.option(
    "--option", "settings", multiple=True, metavar="NAME=VALUE", help="An option of the method; repeat."
)
@click.option(
    "--weights",
    type=click.Choice(["sampling", "frequency"]),
    default="sampling",
    help="Whether weights are of sampling, or count equal records.",
)
@click.option(
    "--covariates", type=NAMES, metavar="COLUMN,COLUMN", help="Columns for methods that repair groups."
)
@click.option(
    "--groups",
    type=NAMES,
    metavar="COLUMN,COLUMN",
    help="As --covariates; their values, alone and in pairs, are audited as by evaluate --groups.",
)
@click.option(
    "--rules",
    type=InputPath(dir_okay=False),
    help="Groups to repair with --method patch, as calibrant audit --rules wrote them.",
)
@click.option(
    "--clusters", type=NAME, metavar="COLUMN", help="Rows that belong together (patients): never split."
)
@click.option(
    "--labels",
    type=NAMES,
    metavar="A,B,C",
    help="Several classes (-p p_a,p_b,p_c): what the outcome calls them, if not by column name or 0, 1, 2.",
)
@click.option("--prevalence", type=float, help="Base rate where the map will be used, if it differs.")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False),
    help="File to write: the map as JSON, or with --sql its SQL.",
)
@click.option("--force", is_flag=True, help="Write the map even if it harms, or if records are few.")
@click.option("--sql", is_flag=True, help="Print the map in FILE (JSON) as SQL of the column --prediction.")
@click.option("--dialect", default="duckdb", help="duckdb, spark, postgres or bigquery.")
@seed
@as_json
def recalibrate(
    file: FileNames, outcome: str | None, prediction: str | None, weight: str | None, missing: Missing,
    method: str, settings: tuple[str, ...], weights: str, covariates: list[str] | None,
    groups: list[str] | None, rules: str | None, clusters: str | None,
    labels: list[str] | None, prevalence: float | None,
    output: str | None, force: bool, sql: bool, dialect: str, seed: int | None, json_: bool,
) -> None:  # fmt: skip
    """Fit a map that makes the predictions in FILE better calibrated, and write it as JSON.

    Exit code 0: written (also when auto finds that no change is justified). 1: the method you named harms;
    nothing is written without --force. 2: bad input. 3: too little data. The predictions must come from rows
    that the model was not trained on: that cannot be seen from the file.

    Name three columns or more (-p p_a,p_b,p_c) to recalibrate the probabilities of several classes.
    """
    if sql:
        refuse_typed("does not apply to --sql, which prints a map as it was fitted", *FITTING)
        _show_sql(_as_sql(load_recalibration(_one(file)), prediction or "p", dialect), output, json_)
        return
    refuse_typed("needs --sql", "dialect")
    if output is not None:
        check_target(output, files_read())
    options = {
        "method": method,
        "weights": weights,
        "prevalence": prevalence,
        "seed": seed,
        **_parsed(settings),
    }
    if rules is not None:
        refuse_typed("does not apply to --rules, which name the groups already", "groups")
        options["groups"] = _rules(rules)
        covariates = [*(covariates or []), *_spoken_of(options["groups"], covariates or [])]
    extra = _Extra(tuple(covariates or ()), tuple(groups or ()), clusters)
    with _too_little(), progress_bar("fitting") as bar:
        options["progress"] = None if bar is None else lambda share: bar(share * FIT_SHARE)
        several = () if prediction is None else tuple(name.strip() for name in prediction.split(","))
        if len(several) > 2 and outcome is not None:
            fitted = _fitted_classes(file, outcome, several, weight, missing, extra, options, labels)
        else:
            refuse_typed("needs three columns or more in --prediction", "labels")
            fitted = _fitted(file, outcome, prediction, weight, missing, extra, options)
        refused = _too_few(fitted) and not force
        if not refused:
            rest = 1.0 - FIT_SHARE
            fitted.assess(None if bar is None else lambda share: bar(FIT_SHARE + share * rest))
    if refused:
        result = f"{pluralize(fitted.fit.n, 'record')}, base rate {fitted.fit.base_rate:g}"
        needed = f"{MIN_RECORDS} records and {MIN_EACH} of each outcome"
        click.echo(f"calibrant: too little data: {result}; {needed} are needed."
                   " Nothing written; --force overrides.", err=True)  # fmt: skip
        sys.exit(TOO_LITTLE)
    harms = method != "auto" and fitted.assessment is not None and fitted.assessment.verdict == "harms"
    if output is not None and (force or not harms):
        fitted.save(output)
    _show(fitted, output if force or not harms else None, json_)
    if harms:
        words = "written all the same" if force else "nothing written; --force overrides"
        click.echo(f"calibrant: {method} harms on held-out records; {words}", err=True)
        sys.exit(0 if force else HARMS)


@dataclass(frozen=True, slots=True)
class _Extra:
    """Names of covariates, groups and clusters."""

    covariates: tuple[str, ...]
    groups: tuple[str, ...]
    clusters: str | None

    @property
    def named(self) -> list[str]:
        """All of them, each once."""
        clusters = (self.clusters,) if self.clusters else ()
        return list(dict.fromkeys((*self.covariates, *self.groups, *clusters)))


@contextmanager
def _too_little() -> Iterator[None]:
    """End where the records are too few for the method whatever is forced, or have one outcome alone."""
    try:
        yield
    except TooFewRecordsError as error:
        click.echo(f"calibrant: too little data: {error} Nothing written.", err=True)
        sys.exit(TOO_LITTLE)


def _rules(path: str) -> tuple[Rule, ...]:
    """Read the groups to repair; an empty file says that there is nothing to do."""
    result = rules_from_json(read_text(path), f"--rules {path}")
    if not result:
        hint = "the audit found no group off beyond chance"
        raise InvalidInputError(sentence(f"--rules {path}", "must have a rule", "got none", hint))
    return result


def _spoken_of(rules: Sequence[Rule], known: Sequence[str]) -> list[str]:
    """Return the columns that rules speak of, beyond those known already."""
    columns = [condition.column for rule in rules for condition in rule.conditions]
    return [name for name in dict.fromkeys(columns) if name not in known]


def _one(file: FileNames) -> str:
    """Return the name of the map's file."""
    names = listed(file)
    if len(names) > 1:
        raise InvalidInputError(sentence("--sql", "needs one map", f"got {pluralize(len(names), 'file')}"))
    return names[0]


def _as_sql(fitted: Recalibration, prediction: str, dialect: str) -> str:
    """Return the SQL of a map; the columns of several classes are named with commas between them."""
    return fitted.to_sql(prediction if fitted.columns is None else prediction.split(","), dialect)


def _show_sql(text: str, output: str | None, json_: bool) -> None:
    if output is not None:
        atomic_write(output, text + "\n", files_read())
    elif json_:
        show_json({"sql": text})
    else:
        print_result(text)


def _fitted(
    file: FileNames, outcome: str | None, prediction: str | None, weight: str | None, missing: Missing,
    extra: _Extra, options: dict[str, Any],
) -> Recalibration:  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sketch = sketch_if_needed(
            file, outcome=outcome, prediction=prediction, weight=weight, missing=missing
        )
        if sketch is not None:
            if extra.named:
                rule, got = "need single rows", "got a sketch, or more rows than are read exactly"
                hint = f"pass a file of at most {MAX_EXACT_ROWS:,} rows, such as a sample"
                raise InvalidInputError(sentence("--covariates, --groups and --clusters", rule, got, hint))
            fitted = fit(sketch, **options)
        else:
            fitted = _fitted_rows(file, str(outcome), str(prediction), weight, missing, extra, options)
    for warning in caught:
        print_note(f"calibrant: {warning.message}")
    return fitted


def _fitted_classes(
    file: FileNames, outcome: str, predictions: tuple[str, ...], weight: str | None, missing: Missing,
    extra: _Extra, options: dict[str, Any], labels: list[str] | None,
) -> Recalibration:  # fmt: skip
    """Fit a map of several classes, one column of probabilities each."""
    if extra.named:
        rule = "do not apply to several classes"
        raise InvalidInputError(
            sentence("--covariates, --groups and --clusters", rule, hint="leave them out")
        )
    numbers, columns = outcome_table(file, [*predictions, *([weight] if weight else [])], [outcome])
    occurred, names = class_labels(columns[outcome], predictions, labels)
    with warnings.catch_warnings(record=True) as caught, named_by_option(outcome, predictions, weight):
        warnings.simplefilter("always")
        fitted = fit(
            occurred, np.column_stack([numbers[name] for name in predictions]),
            sample_weight=numbers[weight] if weight else None, classes=names, missing=missing, **options,
        )  # fmt: skip
    for warning in caught:
        print_note(f"calibrant: {warning.message}")
    return fitted


def _fitted_rows(
    file: FileNames, outcome: str, prediction: str, weight: str | None, missing: Missing,
    extra: _Extra, options: dict[str, Any],
) -> Recalibration:  # fmt: skip
    if weight is None:
        refuse_typed("needs --weight", "weights")
    if not extra.named:
        data = read_rows(
            file, outcome=outcome, prediction=prediction, weight=weight, missing=missing, groups=None
        )
        return fit(data.forecasts, **options)
    y, p, masses, columns = read_checked(file, (outcome, prediction, weight), missing, extra.named)
    if extra.groups:
        options = {**options, "groups": {name: columns[name] for name in extra.groups}}
    return fit(
        y, p, sample_weight=masses,
        covariates={name: columns[name] for name in extra.covariates} or None,
        clusters=columns[extra.clusters] if extra.clusters else None, missing=missing, **options,
    )  # fmt: skip


def _parsed(settings: tuple[str, ...]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; values are JSON where they can be, else text; "none" is None."""
    collected: dict[str, Any] = {}
    for text in settings:
        name, mark, value = text.partition("=")
        if not mark or not name:
            hint = "--option shrink=none"
            raise InvalidInputError(sentence("--option", "must be NAME=VALUE", f"got {text!r}", hint))
        if name in ARGUMENTS:
            rule, hint = "must name an option of the method", "see the other options of this command"
            raise InvalidInputError(sentence("--option", rule, f"got {text!r}", hint))
        try:
            collected[name] = None if value.lower() == "none" else json.loads(value)
        except json.JSONDecodeError:
            collected[name] = value
    return collected


def _too_few(fitted: Recalibration) -> bool:
    facts = fitted.fit
    if fitted.columns is not None:
        return facts.n < MIN_RECORDS
    each = min(facts.base_rate, 1 - facts.base_rate) * facts.effective_n
    return facts.n < MIN_RECORDS or each < MIN_EACH


def _show(fitted: Recalibration, output: str | None, json_: bool) -> None:
    if json_:
        show_json({**fitted.to_dict(), "output": output})
        return
    came_to = fitted.chosen if fitted.chosen == fitted.method else f"{fitted.chosen} (chosen by auto)"
    came_to += "" if fitted.temperature is None else f", T = {format_value(fitted.temperature)}"
    print_result(f"method: {came_to}, fitted to {pluralize(fitted.fit.n, 'record')}")
    if fitted.clip_note:
        print_sentences(fitted.clip_note)
    if fitted.chosen in ("identity", "limits") and fitted.method == "auto":
        print_result("no change is justified by these records")
    assessment = fitted.assessment
    if assessment is None:
        print_sentences(f"not assessed: {fitted.why_not_assessed}")
    else:
        print_sentences(f"on held-out records: {assessment.finding}")
        _show_changes(assessment)
    print_note(OWN_ROWS)
    print_note(f"seed {fitted.fit.seed}" + (f", written to {output}" if output else ""))


def _show_changes(assessment: Assessment) -> None:
    rows = [
        [name.replace("_", " "), *(f"{value:.6f}" for value in (c.before, c.after, c.gain, c.lower, c.upper))]
        for name, c in assessment.changes.items()
    ]
    print_result()
    show_table(["held-out", "before", "after", "gain", "from, approx.", "to, approx."], rows)
    print_note(
        "Means over the held-out parts.",
        "The smooth error of a part tends to be larger than that of all records, which evaluate shows.",
    )
    if assessment.certain_note:
        print_note(assessment.certain_note)
    if assessment.n_records is not None:
        print_note(
            f"Assessed on a sample of {assessment.n:,} of {assessment.n_records:,} rows;"
            " the map is fitted to all."
        )
    if assessment.cells is not None:
        print_note(
            f"Records were held out by {pluralize(assessment.cells, 'cell')} of neighbouring predictions."
        )
    if assessment.for_whom is not None:
        print_result()
        print_result("For whom, on held-out records")
        print_sentences(str(assessment.for_whom))
        _show_groups(assessment.for_whom.changes)


def _show_groups(changes: Sequence[GroupChange]) -> None:
    """Print every group before and after, or the first of very many, and say what was left out."""
    print_result()
    print_result("Every group before and after: mean predictions, and observed minus predicted in points")
    show_sheet(short_change_sheet(changes[:MOST_GROUPS]))
    left = len(changes) - MOST_GROUPS
    if left > 0:
        print_result(
            f"{pluralize(left, 'more group is', 'more groups are')} in the output of --json, largest z first"
        )
    print_note(
        "After: each record repaired by a map that was fitted without it. --json has intervals and p-values."
    )
