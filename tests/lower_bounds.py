"""Print the base dependencies at their declared lower bounds, for pip.

A bound may lie below what a newer Python has wheels for: the smallest version that there is counts then.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

# the first versions with wheels for these Pythons, where the declared bound has none
RAISED = {
    (3, 12): {"scipy": "1.12"},
    (3, 13): {"numpy": "2.1.0", "scipy": "1.14.1", "numba": "0.61.0"},
    (3, 14): {"numpy": "2.3.2", "scipy": "1.16.1", "numba": "0.63.0", "duckdb": "1.4.1"},
}


def lower_bounds() -> list[str]:
    """Return `name==version` for every base dependency."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    pairs = [line.split(">=") for line in project["project"]["dependencies"]]
    raised = RAISED.get(sys.version_info[:2], {})
    return [f"{name}=={raised.get(name, least)}" for name, least in pairs]


if __name__ == "__main__":
    print(*lower_bounds())
