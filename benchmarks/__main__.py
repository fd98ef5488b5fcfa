"""Run benchmarks, print their rows and keep them under benchmarks/results.

`make bench` runs every timing, which needs a quiet machine, and `make bench-accuracy` every simulation, which
does not. `python -m benchmarks NAME ... -- ROW ...` runs the named ones, and hands the names of rows to a
benchmark that takes them.
"""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
import time

import benchmarks

HELPERS = {"__main__", "harness"}
ALONE = {"billion", "before"}  # run by name only: one fills a disk, one needs an earlier revision
SIMULATIONS = {  # what is counted, not timed, or judged in processor time
    "assessment", "beyond", "compare_outcomes_size", "groupings", "power", "recalibration_accuracy", "repair",
}  # fmt: skip


def main() -> None:
    """Run the benchmarks named on the command line, all timings, or with `accuracy` all simulations."""
    found = [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in HELPERS | ALONE]
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    names, rows = sys.argv[1:split], sys.argv[split + 1 :]
    if names in ([], ["accuracy"]):
        names = [name for name in found if (name in SIMULATIONS) == bool(names)]
    if len(names) == 1:
        importlib.import_module(f"benchmarks.{names[0]}").main(*rows)
        return
    for name in names:  # each in a process of its own: memory and caches of one would change another
        print(f"\n== {name} ==", flush=True)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "benchmarks", name, "--", *rows], check=True)
        print(f"({name}: {time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
