"""Every command once, in an environment with nothing but the base dependencies: `make test-lowest` runs it.

No extra is needed for text, JSON and sketches; what needs one must name it and leave with exit code 2.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROWS = ["-y", "y", "-p", "p"]
COMMANDS = [
    ("--version",),
    ("measures",),
    ("evaluate", "rows.csv", *ROWS, "--groups", "g"),
    ("evaluate", "rows.csv", *ROWS, "--json"),
    ("evaluate", "rows.csv", *ROWS, "--json", "--output", "report.json"),
    ("verify", "report.json", "rows.csv"),
    ("audit", "rows.csv", *ROWS, "--groups", "g", "--draws", "19"),
    ("check", "rows.csv", *ROWS, "--max", "smooth=0.9", "--junit", "check.xml"),
    ("test", "rows.csv", *ROWS, "--draws", "99"),
    ("compare", "rows.csv", "-y", "y", "-p", "p", "-p", "q", "--draws", "19"),
    ("classes", "rows.csv", "-y", "y", "-p", "q", "-p", "p", "--draws", "19"),
    ("abstain", "rows.csv", "-y", "y", "-p", "p", "--risk", "0.4", "--confidence", "0.6", "--draws", "19"),
    ("distributions", "rows.csv", "-y", "y", "--members", "p,q", "--draws", "19"),
    ("plan", "--distance", "0.2", "--draws", "99"),
    ("sketch", "rows.csv", *ROWS, "--by", "g", "-o", "day.sketch"),
    ("sketch", "rows.csv", *ROWS, "--by", "g", "-o", "day.parquet"),
    ("merge", "day.sketch", "day.parquet", "--same", "-o", "both.sketch"),
    ("evaluate", "both.sketch"),
    ("evaluate", "rows.csv", *ROWS, "--format", "markdown", "--output", "result.md", "--quiet"),
    ("recalibrate", "rows.csv", *ROWS, "--method", "platt", "--force", "-o", "map.json"),
    ("apply", "map.json", "rows.csv", "-p", "p", "-o", "applied.parquet"),
    ("stream", "rows.csv", *ROWS, "--state", "stream.json", "--out", "stream.csv"),
    ("monitor", "rows.csv", *ROWS, "--state", "monitor.json", "--alpha", "0.000001"),
    ("truthful", "--measure", "smooth", "--truth", ".25,.75"),
    ("demo", "--rows", "500", "--html", ""),
]
NEEDS = {  # commands that work with an extra alone, and which
    ("evaluate", "rows.csv", *ROWS, "--html", "report.html"): "report",
    ("evaluate", "rows.csv", *ROWS, "--chart", "reliability=figure.svg"): "report",
    ("audit", "rows.csv", *ROWS, "--groups", "g", "--draws", "19", "--html", "audit.html"): "report",
    ("demo", "--rows", "500"): "report",
    ("distinguish", "rows.csv", *ROWS, "--covariates", "g", "--draws", "19"): "boost",
    ("recalibrate", "rows.csv", *ROWS, "--method", "boost", "--covariates", "g", "-o", "b.json"): "boost",
}
LIBRARY = """
import numpy as np, calibrant as cb
rng = np.random.default_rng(0); p = rng.random(30000); y = rng.random(30000) < p
assert 0 < cb.smooth_calibration_error(y, p) < 0.02
print(repr(cb.evaluate(y[:500], p[:500], seed=1))[:80])
"""


def rows(path: Path) -> None:
    """Write calibrated rows."""
    rng = np.random.default_rng(1)
    p = rng.random(1000).round(3)
    lines = [f"{int(rng.random() < v)},{v},{1 - v:.3f},{k % 3}" for k, v in enumerate(p)]
    path.write_text("y,p,q,g\n" + "\n".join(lines) + "\n", encoding="utf-8")


def run(*code: str, folder: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder."""
    return subprocess.run([sys.executable, *code], cwd=folder, capture_output=True, text=True)


def main() -> None:
    """Run every command and say what failed."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        rows(Path(folder) / "rows.csv")
        for command in COMMANDS:
            done = run("-m", "calibrant", *command, folder=folder)
            if done.returncode != 0:
                failed += 1
                print("FAILED", *command, done.returncode, done.stderr[-500:])
        for command, extra in NEEDS.items():
            done = run("-m", "calibrant", *command, folder=folder)
            named = done.returncode == 2 and f"calibrant[{extra}]" in done.stderr
            if done.returncode != 0 and not named:
                failed += 1
                print("FAILED", *command, done.returncode, done.stderr[-500:])
        done = run("-c", LIBRARY, folder=folder)
        if done.returncode != 0:
            failed += 1
            print("FAILED library", done.stderr[-800:])
    tried = len(COMMANDS) + len(NEEDS) + 1
    print(f"{tried - failed} of {tried} passed on numpy {np.__version__}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
