"""`calibrant check`: a gate for continuous integration."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from calibrant.cli.options import (
    LIMIT,
    as_json,
    columns_unless_sketch,
    examples,
    files_read,
    grouped,
    refuse_typed,
    seed,
    takes_clusters,
)
from calibrant.cli.output import print_result, print_workflow_command, printable, show_json, show_table
from calibrant.cli.reading import original_name, takes_censored
from calibrant.cli.rows import is_sketch, read_rows, refuse_columns, sketch_if_needed
from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.evaluation.gate import (
    EXIT_CODES,
    FEWEST,
    Finding,
    judge,
    judge_groups,
    judge_sketch_groups,
    overall,
    too_few,
)
from calibrant.files import atomic_write, check_target
from calibrant.formatting import pluralize
from calibrant.inference.intervals import check_confidence
from calibrant.metrics.lookup import measures
from calibrant.parallel import recorded_seed
from calibrant.records import Missing
from calibrant.sketch.sketch import Sketch

SCHEMA, SCHEMA_VERSION = "calibrant-check", 2


@click.command(
    epilog=examples(
        "calibrant check loans.csv -y default -p p --max ece=0.03 --max slope=0.2 --junit gate.xml"
    )
)
@takes_clusters
@takes_censored
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@columns_unless_sketch
@grouped
@click.option(
    "--max",
    "limits",
    type=LIMIT,
    multiple=True,
    metavar="MEASURE=LIMIT",
    help="Largest value allowed; repeat.",
)
@click.option(
    "--max-group-z", type=click.FloatRange(min=0), help="Largest z of any group of --groups allowed."
)
@click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    help="How sure a pass or a failure must be; 0 compares the plain values.",
)
@click.option(
    "--min-records",
    type=click.IntRange(min=1),
    help=f"Fewer records than that decide nothing.  [default: {FEWEST}; 1 with --confidence 0]",
)
@click.option("--junit", type=click.Path(dir_okay=False), help="Write a JUnit XML file.")
@click.option("--github", is_flag=True, help="Print GitHub annotations (automatic in GitHub Actions).")
@seed
@as_json
def check(
    files: Sequence[str], outcome: str | None, prediction: str | None, weight: str | None, missing: Missing,
    groups: list[str] | None, limits: Sequence[str], max_group_z: float | None, confidence: float,
    min_records: int | None, junit: str | None, github: bool,
    seed: int | None, json_: bool,
) -> None:  # fmt: skip
    """Check predictions in FILE, or in a sketch, against limits; for continuous integration.

    Exit code 0: every limit is met. 1: a limit is exceeded. 2: bad input or usage. 3: too little data, or
    undecided. A limit is met or exceeded when the whole confidence interval lies on one side of it. Several
    files are checked one by one, and the worst of them decides.
    """
    wanted = _parsed(limits)
    if not wanted and max_group_z is None:
        hint = "--max smooth=0.02, or a table [tool.calibrant.check] in pyproject.toml"
        raise InvalidInputError(sentence("check", "needs a limit", "got none", hint))
    if max_group_z is None:
        refuse_typed("needs --max-group-z", "groups")
    elif not max_group_z >= 0:
        raise InvalidInputError(sentence("--max-group-z", "must be a number from 0", f"got {max_group_z}"))
    if confidence:
        check_confidence(confidence)
    if junit:
        check_target(junit, files_read())
    used = recorded_seed(seed)
    how = {"confidence": confidence, "seed": used, "fewest": min_records}
    columns = {"outcome": outcome, "prediction": prediction, "weight": weight, "missing": missing}
    if all(map(is_sketch, files)):
        refuse_columns()
    checked = [
        replace(_checked(file, columns, groups, wanted, max_group_z, how), file=original_name(file))
        for file in files
    ]
    _show(checked, used, json_)
    findings = [finding for part in checked for finding in part.findings]
    if junit:
        atomic_write(junit, _junit(checked), files_read())
    if github or os.environ.get("GITHUB_ACTIONS") == "true":
        _annotate(checked)
    sys.exit(EXIT_CODES[overall(findings)])


@dataclass(frozen=True, slots=True)
class _Checked:
    """One file held against the limits."""

    file: str
    n: int
    dropped: int
    findings: list[Finding]


def _checked(
    file: str,
    columns: Mapping[str, Any],
    groups: list[str] | None,
    wanted: Mapping[str, float],
    max_group_z: float | None,
    how: Mapping[str, Any],
) -> _Checked:
    sketch = sketch_if_needed(file, **columns, beside_rows=True)
    if sketch is not None:
        forecasts = sketch.forecasts()
        findings = judge(forecasts, wanted, **how)
        _check_groups(sketch, groups, max_group_z)
        if max_group_z is not None:
            few = too_few(forecasts.n, how["confidence"], how["fewest"])
            findings.append(judge_sketch_groups(sketch.groups, max_group_z, few, sketch.by))
        return _Checked(file, forecasts.n, sketch.dropped, findings)
    if max_group_z is not None and not groups:
        raise InvalidInputError(sentence("--max-group-z", "needs --groups", "got none"))
    data = read_rows(file, groups=groups, **columns)
    findings = judge(data.forecasts, wanted, **how)
    if max_group_z is not None:
        audit = data.audit(draws=0, seed=how["seed"])  # z needs no simulation
        few = too_few(audit.n, how["confidence"], how["fewest"])
        findings.append(judge_groups(audit, max_group_z, few))
    return _Checked(file, data.forecasts.n, data.forecasts.dropped, findings)


def _check_groups(sketch: Sketch, groups: Sequence[str] | None, max_group_z: float | None) -> None:
    """Refuse groups other than those the sketch was made by, and a limit on groups that it has not."""
    if max_group_z is not None and not sketch.by:
        hint = "make the sketch with calibrant sketch --by"
        raise InvalidInputError(
            sentence("--max-group-z", "needs a sketch with groups", "got one without", hint)
        )
    if groups is None:
        return
    if set(groups) != set(sketch.by):
        got = f"got {', '.join(groups)}, and the sketch has {', '.join(sketch.by) or 'none'}"
        hint = "make the sketch with calibrant sketch --by"
        raise InvalidInputError(sentence("--groups", "must be those the sketch was made by", got, hint))


def _parsed(limits: Sequence[str]) -> dict[str, float]:
    """Read MEASURE=LIMIT pairs; the last one of a name counts."""
    collected = {}
    for text in limits:
        name, _, most = text.partition("=")
        if name not in measures():
            raise reject_name("measure of --max", name, list(measures()))
        try:
            collected[name] = float(most)
        except ValueError:
            hint = f"--max {name}=0.02"
            raise InvalidInputError(
                sentence("limit of --max", "must be a number", f"got {text!r}", hint)
            ) from None
        if not collected[name] >= 0:
            raise InvalidInputError(sentence("limit of --max", "must not be negative", f"got {text!r}"))
    return collected


def _overall_word(checked: Sequence[_Checked], every: str) -> str:
    """Return the word of the finding that decides."""
    return next(f.word for part in checked for f in part.findings if f.outcome == every)


def _show(checked: Sequence[_Checked], seed: int, json_: bool) -> None:
    from calibrant import __version__

    every = overall([finding for part in checked for finding in part.findings])
    if json_:
        show_json(
            {
                "schema": SCHEMA,
                "schema_version": SCHEMA_VERSION,
                "calibrant_version": __version__,
                "outcome": every,
                "seed": seed,
                "files": [
                    {
                        "file": part.file,
                        "n": part.n,
                        "dropped": part.dropped,
                        "outcome": overall(part.findings),
                    }
                    for part in checked
                ],
                "findings": [
                    {"file": part.file, **finding.to_dict()} for part in checked for finding in part.findings
                ],
            }
        )
        return
    if len(checked) > 1:
        _show_together(checked)
    for part in checked if len(checked) == 1 else ():
        dropped = f", {pluralize(part.dropped, 'row')} left out" if part.dropped else ""
        show_table(
            ["limit", "outcome", "finding"],
            [[f.name, f.word, f.reason] for f in part.findings],
            f"{part.file}: {pluralize(part.n, 'record')}{dropped}",
        )
    made = f"calibrant {__version__}, schema {SCHEMA} {SCHEMA_VERSION}, seed {seed}"
    print_result(f"{_overall_word(checked, every)} ({made})")


def _show_together(checked: Sequence[_Checked]) -> None:
    """Print one table of all files."""
    lines = [
        [part.file, f"{part.n:,}", f"{part.dropped:,}", f.name, f.word, f.reason]
        for part in checked
        for f in part.findings
    ]
    show_table(["file", "records", "left out", "limit", "outcome", "finding"], lines)


def _junit(checked: Sequence[_Checked]) -> str:
    """Return the findings as JUnit XML: a broken limit is a failure, an undecided one an error."""
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    findings = [(part.file, finding) for part in checked for finding in part.findings]
    count = {kind: str(sum(f.outcome == kind for _, f in findings)) for kind in EXIT_CODES}
    totals = {"tests": str(len(findings)), "failures": count["fail"], "errors": count["unclear"]}
    suite = Element("testsuite", {"name": "calibrant check", **totals})
    for file, f in findings:
        where = "calibrant" if len(checked) == 1 else f"calibrant.{file}"
        case = SubElement(suite, "testcase", classname=where, name=f"{f.name} <= {f.limit:g}")
        if f.outcome != "pass":
            SubElement(case, "failure" if f.outcome == "fail" else "error", message=f.reason)
    indent(suite)
    text = tostring(suite, encoding="unicode")
    # XML has no control characters
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{printable(text)}\n'


def _annotate(checked: Sequence[_Checked]) -> None:
    """Print GitHub workflow commands; line breaks and percent signs must be escaped there."""
    for part in checked:
        where = "" if len(checked) == 1 else f"{part.file}: "
        for f in part.findings:
            if f.outcome != "pass":
                kind = "error" if f.outcome == "fail" else "warning"
                text = f"{where}{f.name}: {f.reason}".replace("%", "%25")
                text = text.replace("\r", "%0D").replace("\n", "%0A")
                print_workflow_command(f"::{kind} title=calibrant check::{text}")
