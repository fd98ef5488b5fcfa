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

from calibrant.cli.file_rows import read_rows, refuse_swapped
from calibrant.cli.options import (
    METHOD,
    NAME,
    NAMES,
    as_json,
    columns_unless_sketch,
    files_read,
    refuse_typed,
    rows_in,
    seed,
)
from calibrant.cli.showing import note, say
from calibrant.cli.sketched import listed, needed_sketch, progress_bar
from calibrant.cli.tables import show_json, show_sheet, show_table
from calibrant.disk import check_target, write_whole
from calibrant.errors import InvalidInputError, TooFewRecordsError, sentence
from calibrant.groups.rules import Rule
from calibrant.groups.stored_rules import rules_from_json
from calibrant.inputs import Names
from calibrant.numerals import counted, short
from calibrant.online.state import read_text
from calibrant.recalibration.assess import FEWEST, FEWEST_EACH, FOLDS, Assessment
from calibrant.recalibration.change_sheets import short_change_sheet
from calibrant.recalibration.choose import FOLDS as CHOICE_FOLDS
from calibrant.recalibration.fit_progress import each_fit
from calibrant.recalibration.group_changes import GroupChange
from calibrant.recalibration.loading import load_recalibration
from calibrant.recalibration.recalibrate import recalibrate as fit
from calibrant.recalibration.result import Recalibration
from calibrant.recalibration.table import recalibrations
from calibrant.records import Missing, check_records
from calibrant.scale.files import FileNames, read_table

HARMS, TOO_LITTLE = 1, 3
MOST_GROUPS = 100  # printed
ARGUMENTS = {p.name for p in signature(fit).parameters.values() if p.kind is not p.VAR_KEYWORD}
FITTING = (
    "outcome", "weight", "missing", "method", "settings", "weights", "covariates", "groups", "rules",
    "clusters", "prevalence", "force", "seed",
)  # fmt: skip
OWN_ROWS = "The predictions must come from rows that the model was not trained on."


@click.command()
@rows_in
@columns_unless_sketch
@click.option(
    "--method",
    "-m",
    type=METHOD,
    default="auto",
    show_default=True,
    help="A method, or auto: the best simple one.",
)
@click.option(
    "--option", "settings", multiple=True, metavar="NAME=VALUE", help="An option of the method; repeat."
)
@click.option(
    "--weights",
    type=click.Choice(["sampling", "frequency"]),
    default="sampling",
    show_default=True,
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
    type=click.Path(dir_okay=False),
    help="Groups to repair with --method patch, as calibrant audit --rules wrote them.",
)
@click.option(
    "--clusters", type=NAME, metavar="COLUMN", help="Rows that belong together (patients): never split."
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
@click.option("--dialect", default="duckdb", show_default=True, help="duckdb, spark, postgres or bigquery.")
@seed
@as_json
def recalibrate(
    file: FileNames, outcome: str | None, prediction: str | None, weight: str | None, missing: Missing,
    method: str, settings: tuple[str, ...], weights: str, covariates: list[str] | None,
    groups: list[str] | None, rules: str | None, clusters: str | None, prevalence: float | None,
    output: str | None, force: bool, sql: bool, dialect: str, seed: int | None, json_: bool,
) -> None:  # fmt: skip
    """Fit a map that makes the predictions in FILE better calibrated, and write it as JSON.

    Exit code 0: written (also when auto finds that no change is justified). 1: the method you named harms;
    nothing is written without --force. 2: bad input. 3: too little data. The predictions must come from rows
    that the model was not trained on: that cannot be seen from the file.
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
    beside = _Beside(tuple(covariates or ()), tuple(groups or ()), clusters)
    with _too_little(), _bar(method, bool(covariates or groups)):
        fitted = _fitted(file, outcome, prediction, weight, missing, beside, options)
        refused = _too_few(fitted) and not force
        _ = None if refused else fitted.assessment  # computed on first access: while the bar is there
    if refused:
        result = f"{counted(fitted.fit.n, 'record')}, base rate {fitted.fit.base_rate:g}"
        click.echo(f"calibrant: too little data: {result}; {FEWEST} records and {FEWEST_EACH} of each outcome"
                   " are needed. Nothing written; --force overrides.", err=True)  # fmt: skip
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
class _Beside:
    """The columns that stand beside predictions, by name."""

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


@contextmanager
def _bar(method: str, columns: bool) -> Iterator[None]:
    """Show how many of the fits are done: all of the choice, and again without each fold in turn."""
    rows = [row for row in recalibrations().values() if row.fit is not None and row.auto_options]
    candidates = [row for row in rows if columns or not row.needs_covariates]
    fits = CHOICE_FOLDS * len(candidates) + 2 if method == "auto" else 1
    with progress_bar("fitting") as progress:
        if progress is None:
            yield
            return
        with each_fit(lambda done: progress(min(1.0, done / (fits * (1 + FOLDS))))):
            yield


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
        raise InvalidInputError(sentence("--sql", "needs one map", f"got {counted(len(names), 'file')}"))
    return names[0]


def _as_sql(fitted: Recalibration, prediction: str, dialect: str) -> str:
    """Return the SQL of a map; the columns of several classes are named with commas between them."""
    return fitted.to_sql(prediction if fitted.columns is None else prediction.split(","), dialect)


def _show_sql(text: str, output: str | None, json_: bool) -> None:
    if output is not None:
        write_whole(output, text + "\n", files_read())
    elif json_:
        show_json({"sql": text})
    else:
        say(text)


def _fitted(
    file: FileNames, outcome: str | None, prediction: str | None, weight: str | None, missing: Missing,
    beside: _Beside, options: dict[str, Any],
) -> Recalibration:  # fmt: skip
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        sketch = needed_sketch(file, outcome=outcome, prediction=prediction, weight=weight, missing=missing)
        if sketch is not None:
            if beside.named:
                rule = "need the rows, which a sketch no longer has"
                raise InvalidInputError(sentence("--covariates, --groups and --clusters", rule))
            fitted = fit(sketch, **options)
        else:
            fitted = _fitted_rows(file, str(outcome), str(prediction), weight, missing, beside, options)
    for warning in told:
        note(f"calibrant: {warning.message}")
    return fitted


def _fitted_rows(
    file: FileNames, outcome: str, prediction: str, weight: str | None, missing: Missing,
    beside: _Beside, options: dict[str, Any],
) -> Recalibration:  # fmt: skip
    if weight is None:
        refuse_typed("needs --weight", "weights")
    if not beside.named:
        data = read_rows(
            file, outcome=outcome, prediction=prediction, weight=weight, missing=missing, groups=None
        )
        return fit(data.forecasts, **options)
    numbers, columns = read_table(file, [outcome, prediction, *([weight] if weight else [])], beside.named)
    masses, names = numbers[weight] if weight else None, Names.of_columns(outcome, prediction, weight)
    refuse_swapped(check_records(numbers[outcome], numbers[prediction], masses, missing, names), names)
    if beside.groups:
        options = {**options, "groups": {name: columns[name] for name in beside.groups}}
    return fit(
        numbers[outcome], numbers[prediction], sample_weight=masses,
        covariates={name: columns[name] for name in beside.covariates} or None,
        clusters=columns[beside.clusters] if beside.clusters else None, missing=missing, **options,
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
    each = min(facts.base_rate, 1 - facts.base_rate) * facts.effective_n
    return facts.n < FEWEST or each < FEWEST_EACH


def _show(fitted: Recalibration, output: str | None, json_: bool) -> None:
    if json_:
        show_json({**fitted.to_dict(), "output": output})
        return
    came_to = fitted.chosen if fitted.chosen == fitted.method else f"{fitted.chosen} (chosen by auto)"
    came_to += "" if fitted.temperature is None else f", T = {short(fitted.temperature)}"
    say(f"method: {came_to}, fitted to {counted(fitted.fit.n, 'record')}")
    if fitted.chosen == "identity" and fitted.method == "auto":
        say("no change is justified by these records")
    assessment = fitted.assessment
    if assessment is None:
        say(f"not assessed: {fitted.why_not_assessed}")
    else:
        say(f"on held-out records: {assessment.verdict}")
        _show_changes(assessment)
    note(OWN_ROWS)
    note(f"seed {fitted.fit.seed}" + (f", written to {output}" if output else ""))


def _show_changes(assessment: Assessment) -> None:
    rows = [
        [name.replace("_", " "), *(f"{value:.6f}" for value in (c.before, c.after, c.gain, c.lower, c.upper))]
        for name, c in assessment.changes.items()
    ]
    say()
    show_table(["held-out", "before", "after", "gain", "from, approx.", "to, approx."], rows)
    note(
        "Means over the parts that were held out in turn. The smooth error of parts is on average no smaller "
        "than that of all records, which evaluate shows."
    )
    if assessment.cells is not None:
        note(f"Records were held out by {counted(assessment.cells, 'cell')} of neighbouring predictions.")
    if assessment.for_whom is not None:
        say()
        say("For whom, on held-out records")
        say(str(assessment.for_whom))
        _show_groups(assessment.for_whom.changes)


def _show_groups(changes: Sequence[GroupChange]) -> None:
    """Print every group before and after, or the first of very many, and say what was left out."""
    say()
    say("Every group before and after: mean predictions, and happened minus predicted in points")
    show_sheet(short_change_sheet(changes[:MOST_GROUPS]))
    left = len(changes) - MOST_GROUPS
    if left > 0:
        say(f"{counted(left, 'more group is', 'more groups are')} in the output of --json, largest z first")
    note(
        "After: each record repaired by a map that was fitted without it. --json has intervals and p-values."
    )
