"""Write docs/trust.md: the attacks that the tests try, how many of them, and the memory of the commands."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
MEMORY = ROOT / "benchmarks" / "results" / "memory.json"
TRIED = {
    "tests/io/test_csv_files.py": "CSV and JSON: generated quoting, separators, endings, gaps, orders "
    "and chunk sizes, against Python's csv module and float()",
    "tests/sketch/test_stored_sketches.py": "Stored sketches: flipped bits, cuts, bombs, impossible fields",
    "tests/test_files.py": "Writing: killed writers, other containers, full disks, folders, devices, "
    "pipes, links, long names, umask, locks, input",
    "tests/io/test_apply_kinds.py": "apply on kinds of Parquet files by four writers: other columns equal "
    "in four readers, or refused (files of Spark in the slow suite)",
    "tests/io/test_edited_files.py": "Maps and states with edited values, edited text, and edits sealed with "
    "a new checksum: refused or without effect, never a raw error",
    "tests/cli/test_command_paths.py": "Commands x paths: no input overwritten, under its own name, a "
    "link, a hard link or another spelling",
    "tests/cli/test_full_disk.py": "A full disk: every output of every command fails with one message about "
    "that file, which stays as it was",
    "tests/cli/test_shells.py": "Completion: only names that bash, zsh and fish take as they are "
    "(typed into real shells in the slow suite)",
    "tests/sketch/test_limits.py": "Limits: too many groups, sketches that unpack to gigabytes, rows or "
    "sketch by a fixed count",
    "tests/test_odd_inputs.py": "Odd values: bytes, underscores, signaling NaN, huge integers, equal "
    "names, undecodable options",
    "tests/cli/test_hostile.py": "Command lines: wrong options, unreadable files, bad places, bad defaults",
    "tests/cli/test_interrupts.py": "Signals at random moments, the first second included: nothing half "
    "written, exit code 130 or 143 (200 more by `tests/cli/interrupts.py`)",
    "tests/cli/test_kills.py": "Killed runs that are repeated: the same files as without the kill",
    "tests/test_hostile_pairs.py": "Every function of outcomes and predictions: hostile pairs and weights, "
    "swapped arguments, shuffled indices",
    "tests/test_hostile_options.py": "Options of the library: NaN, negative, text, lists",
    "tests/test_hostile_calls.py": "Every other function, from audits to streams: hostile outcomes, "
    "predictions, weights, options",
    "tests/test_absent_packages.py": "Without pandas, Polars and PyArrow: the same numbers, or one message",
    "tests/kernels/test_cache.py": "Machine code on read-only mounts, full disks and damaged caches",
    "tests/recalibration/test_stored_maps.py": "Stored recalibrations: edited fields in each kind of map",
    "tests/inference/test_laws_of_rows.py": "Row order, weights and rows of weight 0: bit-equal results",
    "tests/engines/test_labels.py": "Group labels: every type on every engine is written in the same way",
}
SLOW = ("tests/io/test_edited_files.py",)  # whose slow tests are counted too
TEXT = """# What was tried

A case is one test that ran; a test that generates its inputs reports how many it tried.
`docs/make_trust.py` runs the tests and counts.

| what | where | cases | inputs tried | failed |
|---|---|---:|---:|---:|
{tests}
Every wrong command line ends with a single message and exit code 2; no traceback or number is printed, and no
file is written. SECURITY.md says what is promised.

## Memory

Peak memory of each command on {rows:,} rows of Parquet, measured by `python -m benchmarks memory`, next to
its stated bound. On every machine, commands that can work on a sketch read up to 10 million rows exactly and
more rows through a sketch; `monitor` holds 16 bytes per row, and `apply` one piece of the file at a time.

| command | measured, MB | bound, MB |
|---|---:|---:|
{bounded}
These inputs are refused, with no more memory than this:

| input | measured, MB | bound, MB |
|---|---:|---:|
{refused}
The commands at the end of that table keep the rows they read in memory. They were measured
at these numbers of rows:

| command | measured, MB | bound, MB |
|---|---:|---:|
{held}"""


def run(paths: Sequence[str], *options: str) -> ElementTree.Element:
    """Run the tests of the files; return their report."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *paths]
        done = subprocess.run(
            [*command, f"--junit-xml={report}"], cwd=ROOT, stdout=subprocess.DEVNULL, check=False
        )
        if not report.exists():
            raise RuntimeError(f"pytest ended with exit code {done.returncode} and wrote no report")
        return ElementTree.parse(report).getroot()


def count(reports: Sequence[ElementTree.Element], path: str) -> tuple[int, int, int]:
    """Return how many tests of a file ran, how many inputs they tried, and how many tests failed."""
    module = path.removesuffix(".py").replace("/", ".")
    ran = [
        case
        for report in reports
        for case in report.iter("testcase")
        if case.get("classname", "").startswith(module) and case.find("skipped") is None
    ]
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in ran)
    return len(ran), sum(map(_inputs, ran)), failed


def _inputs(case: ElementTree.Element) -> int:
    found = [prop.get("value", "1") for prop in case.iter("property") if prop.get("name") == "tried"]
    return int(found[0]) if found else 1


def memory_tables() -> dict[str, str | int]:
    """Return the tables of memory, from what the benchmark measured."""
    rows = json.loads(MEMORY.read_text(encoding="utf-8"))["rows"]
    tables = {"bounded": "", "refused": "", "held": ""}
    for row in rows[1:]:
        start, _, rest = row["what"].partition(": ")
        name = {"refused": "refused", "held": "held"}.get(start, "bounded")
        shown = row["what"] if name == "bounded" else rest
        tables[name] += f"| {shown} | {row['ours']:,.0f} | {row['at_most']:,.0f} |\n"
    return {"rows": int(rows[0]["ours"]), **tables}


def main(*reports: str) -> None:
    """Write the page, from reports of `pytest --junit-xml` if some are given."""
    tested = [ElementTree.parse(report).getroot() for report in reports]
    tested = tested or [run(list(TRIED)), run(SLOW, "-m", "slow")]
    lines = ""
    for path, what in TRIED.items():
        cases, inputs, failed = count(tested, path)
        lines += f"| {what} | `{path}` | {cases:,} | {inputs:,} | {failed:,} |\n"
    page = TEXT.format(tests=lines, **memory_tables())
    (ROOT / "docs" / "trust.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
