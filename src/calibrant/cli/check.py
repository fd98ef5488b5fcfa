"""`calibrant check`: a gate for continuous integration."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import click

from calibrant import __version__
from calibrant.cli import options as opt
from calibrant.cli.exit_codes import FAILED, UNDECIDED
from calibrant.cli.output import print_result, print_workflow_command, printable, show_json, show_table
from calibrant.cli.reading import original_name, takes_censored
from calibrant.cli.rows import is_sketch, read_rows, refuse_columns, sketch_if_needed
from calibrant.errors import InvalidInputError, reject_name
from calibrant.evaluation import gate
from calibrant.files import atomic_write
from calibrant.formatting import pluralize
from calibrant.inputs import open_share
from calibrant.metrics.lookup import measures
from calibrant.parallel import recorded_seed

SCHEMA, SCHEMA_VERSION = "calibrant-check", 2
EXAMPLE = "calibrant check loans.csv -y default -p p --max ece=0.03 --max slope=0.2 --junit gate.xml"


@click.command(epilog=opt.examples(EXAMPLE))
@opt.takes_clusters
@takes_censored
@opt.files_in
@opt.columns_unless_sketch
@opt.grouped
@click.option("--max", "limits", type=opt.LIMIT, multiple=True, metavar="MEASURE=LIMIT",
              help="Largest value allowed; repeat.")  # fmt: skip
@click.option(
    "--max-group-z", type=click.FloatRange(min=0), help="Largest z of any group of --groups allowed."
)
@click.option("--confidence", type=float, default=0.95,
              help="How sure a pass or a failure must be; 0 compares the plain values.")  # fmt: skip
@click.option(
    "--min-records", type=click.IntRange(min=1),
    help=f"With fewer records, nothing is decided.  [default: {gate.MIN_RECORDS}; 1 with --confidence 0]",
)  # fmt: skip
@opt.file_option("--junit", help="Write a JUnit XML file.")
@opt.flag("--github", help="Print GitHub annotations (automatic in GitHub Actions).")
@opt.seed
@opt.as_json
def check(
    files: Sequence[str], groups: list[str] | None, limits: Sequence[str], max_group_z: float | None,
    confidence: float, min_records: int | None, junit: str | None, github: bool, seed: int | None,
    json_: bool, **columns: Any,
) -> None:  # fmt: skip
    """Check predictions in FILE, or in a sketch, against limits; for continuous integration.

    Exit code 0: every limit is met. 1: a limit is exceeded. 2: bad input or usage. 3: too little data, or
    undecided. A limit is met or exceeded when the whole confidence interval lies on one side of it. Several
    files are checked one by one, and the worst of them decides.
    """
    wanted = _parsed(limits)
    if not wanted and max_group_z is None:
        hint = "--max smooth=0.02, or a table [tool.calibrant.check] in pyproject.toml"
        raise InvalidInputError("check", "needs a limit", "got none", hint)
    if max_group_z is None:
        opt.refuse_typed("needs --max-group-z", "groups")
    elif not max_group_z >= 0:
        raise InvalidInputError("--max-group-z", "must be 0 or more", f"got {max_group_z}")
    if confidence:
        open_share("confidence", confidence)
    used = recorded_seed(seed)
    how = {"confidence": confidence, "seed": used, "fewest": min_records}
    if all(map(is_sketch, files)):
        refuse_columns()
    checked = [_checked(file, columns, groups, wanted, max_group_z, how) for file in files]
    findings = [(part, finding) for part in checked for finding in part.findings]
    decided = gate.overall([finding for _, finding in findings])
    _show(checked, findings, decided, used, json_)
    if junit:
        atomic_write(junit, _junit(findings, len(files) > 1), opt.files_read())
    if github or os.environ.get("GITHUB_ACTIONS") == "true":
        _annotate(findings, len(files) > 1)
    sys.exit({"pass": 0, "fail": FAILED, "unclear": UNDECIDED}[decided])


class _Checked(NamedTuple):
    file: str
    n: int
    dropped: int
    findings: list[gate.Finding]


Findings = Sequence[tuple[_Checked, gate.Finding]]


def _checked(
    file: str, columns: Mapping[str, Any], groups: list[str] | None, wanted: Mapping[str, float],
    max_group_z: float | None, how: Mapping[str, Any],
) -> _Checked:  # fmt: skip
    sketch = sketch_if_needed(file, **columns, beside_rows=True)
    given: tuple[Any, Any]
    if sketch is not None:
        forecasts, given = sketch.forecasts(), (sketch, None)
        hint = "make the sketch with calibrant sketch --by"
        if max_group_z is not None and not sketch.by:
            rule = "needs a sketch with groups"
            raise InvalidInputError("--max-group-z", rule, "got one without", hint)
        if groups is not None and set(groups) != set(sketch.by):
            got = f"got {', '.join(groups)}, and the sketch has {', '.join(sketch.by) or 'none'}"
            raise InvalidInputError("--groups", "must be those the sketch was made by", got, hint)
    else:
        if max_group_z is not None and not groups:
            raise InvalidInputError("--max-group-z", "needs --groups", "got none")
        data = read_rows(file, groups=groups, **columns)
        forecasts, given = data.forecasts, (data.forecasts, data.groups)
    findings = gate.judge(forecasts, wanted, **how)
    if max_group_z is not None:
        from calibrant.groups.audit import audit

        # z needs no simulation; fractional outcomes are judged by the variance they show
        variant: Literal["plain", "real"] = "plain" if sketch is not None or forecasts.binary else "real"
        audited = audit(given[0], groups=given[1], draws=0, seed=how["seed"], variant=variant)
        few = gate.too_few(audited.n, how["confidence"], how["fewest"])
        findings.append(gate.judge_groups(audited, max_group_z, few))
    return _Checked(original_name(file), forecasts.n, forecasts.dropped, findings)


def _parsed(limits: Sequence[str]) -> dict[str, float]:
    collected = {}
    for text in limits:
        name, _, most = text.partition("=")
        if name not in measures():
            raise reject_name("measure of --max", name, list(measures()))
        try:
            collected[name] = float(most)
        except ValueError:
            rule, hint = "must be a number", f"--max {name}=0.02"
            raise InvalidInputError("limit of --max", rule, f"got {text!r}", hint) from None
        if not collected[name] >= 0:
            raise InvalidInputError("limit of --max", "must not be negative", f"got {text!r}")
    return collected


def _show(checked: Sequence[_Checked], findings: Findings, decided: str, seed: int, json_: bool) -> None:
    if json_:
        about = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, "calibrant_version": __version__}
        files = [
            {"file": part.file, "n": part.n, "dropped": part.dropped, "outcome": gate.overall(part.findings)}
            for part in checked
        ]
        found = [{"file": part.file, **finding.to_dict()} for part, finding in findings]
        show_json({**about, "outcome": decided, "seed": seed, "files": files, "findings": found})
        return
    lines = [[f.name, f.word, f.reason] for _, f in findings]
    if len(checked) > 1:
        about_files = [[part.file, f"{part.n:,}", f"{part.dropped:,}"] for part, _ in findings]
        lines = [[*file, *line] for file, line in zip(about_files, lines, strict=True)]
        show_table(["file", "records", "left out", "limit", "outcome", "finding"], lines)
    else:
        part = checked[0]
        dropped = f", {pluralize(part.dropped, 'row')} left out" if part.dropped else ""
        title = f"{part.file}: {pluralize(part.n, 'record')}{dropped}"
        show_table(["limit", "outcome", "finding"], lines, title)
    word = next(f.word for _, f in findings if f.outcome == decided)
    print_result(f"{word} (calibrant {__version__}, schema {SCHEMA} {SCHEMA_VERSION}, seed {seed})")


def _junit(findings: Findings, several: bool) -> str:
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    count = {kind: str(sum(f.outcome == kind for _, f in findings)) for kind in ("fail", "unclear")}
    totals = {"tests": str(len(findings)), "failures": count["fail"], "errors": count["unclear"]}
    suite = Element("testsuite", {"name": "calibrant check", **totals})
    for part, f in findings:
        where = f"calibrant.{part.file}" if several else "calibrant"
        case = SubElement(suite, "testcase", classname=where, name=f"{f.name} <= {f.limit:g}")
        if f.outcome != "pass":
            SubElement(case, "failure" if f.outcome == "fail" else "error", message=f.reason)
    indent(suite)
    text = printable(tostring(suite, encoding="unicode"))  # XML has no control characters
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _annotate(findings: Findings, several: bool) -> None:
    for part, f in findings:
        if f.outcome != "pass":
            kind = "error" if f.outcome == "fail" else "warning"
            text = f"{part.file}: {f.name}: {f.reason}" if several else f"{f.name}: {f.reason}"
            text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
            print_workflow_command(f"::{kind} title=calibrant check::{text}")
