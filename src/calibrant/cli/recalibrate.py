"""`calibrant recalibrate`: fit a map to a file, say whether it helps, and write it as JSON."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import astuple
from inspect import signature
from math import isnan
from typing import Any

import click

from calibrant.cli import options as opt
from calibrant.cli.classes import class_columns
from calibrant.cli.exit_codes import FAILED, UNDECIDED
from calibrant.cli.output import print_note, print_result, print_sentences, show_json, show_sheet, show_table
from calibrant.cli.reading import takes_censored
from calibrant.cli.rows import listed, progress_bar, read_checked, read_rows, sketch_if_needed
from calibrant.errors import InvalidInputError, TooFewRecordsError
from calibrant.files import atomic_write
from calibrant.formatting import format_value, pluralize
from calibrant.groups.rules import rules_from_json
from calibrant.io.read import FileNames
from calibrant.online.state import read_text
from calibrant.recalibration.assess import MIN_EACH, MIN_RECORDS, Assessment
from calibrant.recalibration.assess_groups import WORDS_OF_CHANGE, change_table
from calibrant.recalibration.recalibrate import load_recalibration
from calibrant.recalibration.recalibrate import recalibrate as fit
from calibrant.recalibration.result import Recalibration
from calibrant.records import Missing

MAX_GROUPS_SHOWN = 100  # printed
FIT_SHARE = 0.25  # of the progress bar; the rest is the assessment
ARGUMENTS = {p.name for p in signature(fit).parameters.values() if p.kind is not p.VAR_KEYWORD}
FITTING = (
    "outcome", "weight", "missing", "method", "settings", "weights", "covariates", "groups", "rules",
    "clusters", "labels", "prevalence", "force", "seed",
)  # fmt: skip
OWN_ROWS = "The predictions must come from rows that the model was not trained on."


@click.command(
    epilog=opt.examples(
        "calibrant recalibrate loans.csv -y default -p p -o map.json",
        "calibrant recalibrate loans.csv -y default -p p --groups employment -o map.json",
        "calibrant recalibrate map.json --sql -p p",
    )
)
@takes_censored
@opt.rows_in
@opt.columns_unless_sketch
@click.option(
    "--method", "-m", type=opt.METHOD, default="auto", help="A method, or auto: the best simple one."
)
@click.option(
    "--option", "settings", multiple=True, metavar="NAME=VALUE", help="An option of the method; repeat."
)
@click.option("--weights", type=click.Choice(["sampling", "frequency"]), default="sampling",
              help="Whether weights are sampling weights or counts of equal records.")  # fmt: skip
@opt.columns_option("--covariates", help="Columns for methods that repair groups.")
@opt.columns_option(
    "--groups",
    help="Like --covariates; their values, alone and in pairs, are also audited, as by evaluate --groups.",
)
@click.option("--rules", type=opt.InputPath(dir_okay=False),
              help="Groups to repair with --method patch, from calibrant audit --rules.")  # fmt: skip
@opt.column_option("--clusters", help="Rows that belong together (patients): never split.")
@click.option(
    "--labels", type=opt.NAMES, metavar="A,B,C",
    help="Several classes (-p p_a,p_b,p_c): what the outcome calls them, if not by column name or 0, 1, 2.",
)  # fmt: skip
@click.option("--prevalence", type=float, help="Base rate where the map will be used, if it differs.")
@opt.file_option("--output", "-o", help="File to write: the map as JSON, or with --sql its SQL.")
@opt.flag("--force", help="Write the map even if it harms, or if records are few.")
@opt.flag("--sql", help="Print the map in FILE (JSON) as SQL of the column --prediction.")
@click.option("--dialect", default="duckdb", help="duckdb, spark, postgres or bigquery.")
@opt.seed
@opt.as_json
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
        opt.refuse_typed("does not apply to --sql, which prints a map as it was fitted", *FITTING)
        _show_sql(file, prediction or "p", dialect, output, json_)
        return
    opt.refuse_typed("needs --sql", "dialect")
    options: dict[str, Any] = {"method": method, "weights": weights, "prevalence": prevalence, "seed": seed}
    options |= _parsed(settings)
    covariates = covariates or []
    if rules is not None:
        opt.refuse_typed("does not apply to --rules, which name the groups already", "groups")
        options["groups"] = rules_from_json(read_text(rules), f"--rules {rules}")
        if not options["groups"]:
            hint = "the audit found no group off beyond chance"
            raise InvalidInputError(f"--rules {rules}", "must have a rule", "got none", hint)
        named = [condition.column for rule in options["groups"] for condition in rule.conditions]
        covariates = list(dict.fromkeys([*covariates, *named]))
    columns = {"outcome": outcome, "prediction": prediction, "weight": weight, "missing": missing}
    several = () if prediction is None else tuple(name.strip() for name in prediction.split(","))
    try:
        with progress_bar("fitting") as bar:
            options["progress"] = None if bar is None else lambda share: bar(share * FIT_SHARE)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                if len(several) > 2 and outcome is not None:
                    if covariates or groups or clusters:
                        rule = "do not apply to several classes"
                        given_rows = "--covariates, --groups and --clusters"
                        raise InvalidInputError(given_rows, rule, hint="leave them out")
                    with class_columns(file, outcome, several, weight, labels) as (occurred, rates, given):
                        fitted = fit(occurred, rates, missing=missing, **given, **options)
                else:
                    opt.refuse_typed("needs three columns or more in --prediction", "labels")
                    fitted = _fitted(file, columns, covariates, groups or [], clusters, options)
            print_note(*(f"calibrant: {warning.message}" for warning in caught))
            refused = _too_few(fitted) and not force
            if not refused:
                rest = 1.0 - FIT_SHARE
                fitted.assess(None if bar is None else lambda share: bar(FIT_SHARE + share * rest))
    except TooFewRecordsError as error:  # too few for the method even with --force, or only one outcome
        click.echo(f"calibrant: too little data: {error} Nothing written.", err=True)
        sys.exit(UNDECIDED)
    if refused:
        result = f"{pluralize(fitted.fit.n, 'record')}, base rate {fitted.fit.base_rate:g}"
        needed = f"{MIN_RECORDS} records and {MIN_EACH} of each outcome"
        click.echo(f"calibrant: too little data: {result}; {needed} are needed."
                   " Nothing written; --force overrides.", err=True)  # fmt: skip
        sys.exit(UNDECIDED)
    harms = method != "auto" and fitted.assessment is not None and fitted.assessment.verdict == "harms"
    written = output if force or not harms else None
    if written is not None:
        fitted.save(written)
    _show(fitted, written, json_)
    if harms:
        words = "written anyway" if force else "nothing written; --force overrides"
        click.echo(f"calibrant: {method} harms on held-out records; {words}", err=True)
        sys.exit(0 if force else FAILED)


def _show_sql(file: FileNames, prediction: str, dialect: str, output: str | None, json_: bool) -> None:
    names = listed(file)
    if len(names) > 1:
        raise InvalidInputError("--sql", "needs one map", f"got {pluralize(len(names), 'file')}")
    fitted = load_recalibration(names[0])
    text = fitted.to_sql(prediction if fitted.columns is None else prediction.split(","), dialect)
    if output is not None:
        atomic_write(output, text + "\n", opt.files_read())
    elif json_:
        show_json({"sql": text})
    else:
        print_result(text)


def _fitted(
    file: FileNames, columns: dict[str, Any], covariates: list[str], groups: list[str], clusters: str | None,
    options: dict[str, Any],
) -> Recalibration:  # fmt: skip
    named = [*covariates, *groups, *([clusters] if clusters else [])]
    of_rows = {"--covariates": covariates, "--groups": groups, "--clusters": clusters}
    asked = next((option for option, names in of_rows.items() if names), None)
    sketch = sketch_if_needed(file, of_rows=asked, **columns)
    if sketch is not None:
        return fit(sketch, **options)
    if columns["weight"] is None:
        opt.refuse_typed("needs --weight", "weights")
    if not named:
        return fit(read_rows(file, **columns).forecasts, **options)
    y, p, masses, read = read_checked(file, named, **columns)
    if groups:
        options = {**options, "groups": {name: read[name] for name in groups}}
    return fit(
        y, p, sample_weight=masses, covariates={name: read[name] for name in covariates} or None,
        clusters=read[clusters] if clusters else None, missing=columns["missing"], **options,
    )  # fmt: skip


def _parsed(settings: tuple[str, ...]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; values are JSON where they can be, else text; "none" is None."""
    collected: dict[str, Any] = {}
    for text in settings:
        name, mark, value = text.partition("=")
        if not mark or not name:
            raise InvalidInputError("--option", "must be NAME=VALUE", f"got {text!r}", "--option shrink=none")
        if name in ARGUMENTS:
            rule, hint = "must name an option of the method", "see the other options of this command"
            raise InvalidInputError("--option", rule, f"got {text!r}", hint)
        try:
            collected[name] = None if value.lower() == "none" else json.loads(value)
        except json.JSONDecodeError:
            collected[name] = value
    return collected


def _too_few(fitted: Recalibration) -> bool:
    facts = fitted.fit
    each = min(facts.base_rate, 1 - facts.base_rate) * facts.effective_n
    return facts.n < MIN_RECORDS or (fitted.columns is None and each < MIN_EACH)


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
    if fitted.assessment is None:
        print_sentences(f"not assessed: {fitted.why_not_assessed}")
    else:
        print_sentences(f"on held-out records: {fitted.assessment.finding}")
        _show_changes(fitted.assessment)
    print_note(OWN_ROWS, f"seed {fitted.fit.seed}" + (f", written to {output}" if output else ""))


def _show_changes(assessment: Assessment) -> None:
    rows = [
        [name.replace("_", " "), *("–" if isnan(value) else f"{value:.6f}" for value in astuple(change))]
        for name, change in assessment.changes.items()
    ]
    print_result()
    show_table(["held-out", "before", "after", "gain", "from, approx.", "to, approx."], rows)
    print_note(
        "Means over the held-out parts.",
        "The smooth error of a part tends to be larger than that of all records, which evaluate shows;"
        " its gain has no interval that holds.",
    )
    if assessment.certain_note:
        print_note(assessment.certain_note)
    if assessment.n_records is not None:
        sample = f"a sample of {assessment.n:,} of {assessment.n_records:,} rows"
        print_note(f"Assessed on {sample}; the map is fitted to all.")
    if assessment.cells is not None:
        cells = pluralize(assessment.cells, "cell")
        print_note(f"Records were held out by {cells} of neighboring predictions.")
    if assessment.for_whom is None:
        return
    print_result("\nFor whom, on held-out records")
    print_sentences(str(assessment.for_whom))
    print_result("\nEvery group before and after: observed minus predicted, in points, with 95% intervals")
    changes = assessment.for_whom.changes
    show_sheet(change_table(changes[:MAX_GROUPS_SHOWN]))
    left = len(changes) - MAX_GROUPS_SHOWN
    if left > 0:
        more = pluralize(left, "more group is", "more groups are")
        print_result(f"{more} in the output of --json, largest z first")
    print_note(
        WORDS_OF_CHANGE, "After: each record repaired by a map fitted without it. --json has p-values."
    )
