"""Print the base dependencies at their declared lower bounds, for pip."""

from __future__ import annotations

import tomllib
from pathlib import Path


def lower_bounds() -> list[str]:
    """Return `name==version` for every base dependency."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    return [line.replace(">=", "==") for line in project["project"]["dependencies"]]


if __name__ == "__main__":
    print(*lower_bounds())
