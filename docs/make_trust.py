"""Write docs/trust.md: what was tried against files, disk, signals and terminal, and what passed."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
TRIED = {
    "tests/io/test_csv_files.py": "CSV and JSON: generated quoting, separators, endings, gaps, orders "
    "and chunk sizes, against Python's csv module and float()",
    "tests/sketch/test_stored_sketches.py": "Stored sketches: flipped bytes, cuts, bombs, impossible fields",
    "tests/test_files.py": "Writing: killed writers, other containers, full disks, folders, devices, "
    "pipes, links, long names, umask, locks, input",
    "tests/io/test_apply_kinds.py": "apply on kinds of Parquet files by five writers: other columns equal "
    "in four readers, or refused",
    "tests/io/test_edited_files.py": "Edited maps and states: 100 edits of each kind, refused or without "
    "effect (4,300 each in the slow suite)",
    "tests/cli/test_command_paths.py": "Commands x paths: no input overwritten, under its own name, a "
    "link, a hard link or another spelling",
    "tests/cli/test_shells.py": "Completion: only names that bash, zsh and fish take as they are "
    "(typed into real shells in the slow suite)",
    "tests/sketch/test_limits.py": "Memory: too many groups, sketches that unpack to gigabytes, rows or "
    "sketch by a fixed count",
    "tests/test_odd_inputs.py": "Odd values: bytes, underscores, signaling NaN, huge integers, equal "
    "names, undecodable options",
    "tests/cli/test_hostile.py": "Command lines: wrong options, unreadable files, bad places, bad defaults",
    "tests/cli/test_interrupts.py": "Signals at random moments, the first second "
    "included: nothing half written, exit code 130 or 143 (200 by `tests/cli/interrupts.py`: 177 stopped, "
    "23 had ended, 0 tracebacks)",
    "tests/test_doors.py": "Every function of outcomes and predictions: 27 hostile pairs, 7 hostile weights, "
    "swapped arguments, shuffled indices",
    "tests/test_hostile_options.py": "Options of the library: NaN, negative, text, lists",
    "tests/test_hostile_rooms.py": "Every other function, from audits to streams: hostile outcomes, "
    "predictions, weights, options",
    "tests/test_absent_packages.py": "Without pandas, Polars and PyArrow: the same numbers, or one message",
    "tests/kernels/test_cache.py": "Machine code on read-only mounts, full disks and damaged caches",
    "tests/recalibration/test_stored_maps.py": "Stored recalibrations: 100 or more edited fields in each",
    "tests/inference/test_laws_of_rows.py": "Row order, weights and rows of weight 0: bit-equal results",
    "tests/engines/test_labels.py": "Group labels: every type on every engine is written in the same way",
}
TEXT = """# What was tried

A case is one test; one that generates its inputs tries many more (60 files, 25 chunkings of 400 rows, 90
flipped bits per format). `docs/make_trust.py` runs and counts them.

| what | where | cases | passed |
|---|---|---:|---:|
"""
FOOT = """
In every case of the command line there is no traceback, no number on standard output, one message and exit
code 2, and nothing is written. What is promised is in SECURITY.md.
"""


def run(paths: list[str]) -> ElementTree.Element:
    """Run the tests of the files; return their report."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        code = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *paths,
            f"--junit-xml={report}",
        ]
        subprocess.run(code, cwd=HERE.parent, stdout=subprocess.DEVNULL, check=False)
        return ElementTree.parse(report).getroot()


def counted(report: ElementTree.Element, path: str) -> tuple[int, int]:
    """Return how many tests of a file ran, and how many of them passed."""
    module = path.removesuffix(".py").replace("/", ".")
    cases = [case for case in report.iter("testcase") if case.get("classname", "").startswith(module)]
    ran = [case for case in cases if case.find("skipped") is None]
    return len(ran), sum(case.find("failure") is None and case.find("error") is None for case in ran)


def main(report: str | None = None) -> None:
    """Write the page, from the report of a run of all tests (`pytest --junit-xml`) if one is given."""
    tested = ElementTree.parse(report).getroot() if report else run(list(TRIED))
    lines = []
    for path, what in TRIED.items():
        total, passed = counted(tested, path)
        lines.append(f"| {what} | `{path}` | {total:,} | {passed:,} |\n")
    (HERE / "trust.md").write_text(TEXT + "".join(lines) + FOOT, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
