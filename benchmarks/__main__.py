"""`make bench`: run every benchmark, print its rows and keep them under benchmarks/results.

`python -m benchmarks NAME ... -- ROW ...` hands the names of rows to a benchmark that takes them.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks

HELPERS = {"__main__", "harness"}
ALONE = {"billion", "before"}  # run by name only: one fills a disk, one needs an earlier revision


def main() -> None:
    """Run the benchmarks named on the command line, or all of them."""
    found = [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in HELPERS | ALONE]
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    names, rows = sys.argv[1:split], sys.argv[split + 1 :]
    for name in names or found:
        print(f"\n== {name} ==", flush=True)
        importlib.import_module(f"benchmarks.{name}").main(*rows)


if __name__ == "__main__":
    main()
