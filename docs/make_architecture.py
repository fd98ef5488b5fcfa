"""Draw the import graph of the packages, and write it with its table into docs/architecture.md.

Run `python docs/make_architecture.py`; a test checks that the page and the picture match the source.
"""

from __future__ import annotations

import ast
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "calibrant"
PAGE, PICTURE = ROOT / "docs" / "architecture.md", ROOT / "docs" / "architecture.svg"
START, END = "<!-- packages: written by docs/make_architecture.py -->", "<!-- end of packages -->"
FLOOR = {
    "errors",
    "results",
    "formatting",
    "parallel",
    "files",
    "public_names",
}  # every package may use these
WIDE, TALL, GAP = 150, 34, 26
BOX = 'fill="#eef3f8" stroke="#0072b2"'


def graph() -> dict[str, set[str]]:
    """Return the packages and top-level modules that each of them imports, lazily or not."""
    packages: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if package.startswith("__"):
            continue
        packages.setdefault(package, set()).update(imported(path) - {package})
    return {
        package: used & set(packages) - FLOOR
        for package, used in sorted(packages.items())
        if package not in FLOOR
    }


def imported(path: Path) -> set[str]:
    """Return the packages that a file imports."""
    used = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "calibrant":
            parts = str(node.module).split(".")
            used |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            used |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("calibrant.")}
    return used


def ranks(packages: dict[str, set[str]]) -> dict[str, int]:
    """Return the rank of each package: one above the highest package that it imports."""
    rank: dict[str, int] = {}

    def of(package: str) -> int:
        if package not in rank:
            rank[package] = 1 + max((of(used) for used in packages[package]), default=-1)
        return rank[package]

    for package in packages:
        of(package)
    return rank


def essential(packages: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out imports that others imply, to keep the picture readable."""

    def reach(package: str) -> set[str]:
        return (
            set().union(*({used} | reach(used) for used in packages[package])) if packages[package] else set()
        )

    return {
        package: used - set().union(*(reach(other) for other in used)) for package, used in packages.items()
    }


def svg(packages: dict[str, set[str]]) -> str:
    """Draw the packages in layers, the lowest at the bottom, with a line to each package they import."""
    rank = ranks(packages)
    floors = [
        sorted(package for package in packages if rank[package] == k) for k in range(max(rank.values()) + 1)
    ]
    width = max(len(floor) for floor in floors) * (WIDE + GAP) + GAP
    height = len(floors) * (TALL + 2 * GAP) + GAP
    place = {}
    for k, floor in enumerate(floors):
        left = (width - len(floor) * (WIDE + GAP) + GAP) / 2
        for j, package in enumerate(floor):
            place[package] = (left + j * (WIDE + GAP), height - GAP - TALL - k * (TALL + 2 * GAP))
    lines = [
        f'<line x1="{place[package][0] + WIDE / 2:.0f}" y1="{place[package][1] + TALL:.0f}" '
        f'x2="{place[used][0] + WIDE / 2:.0f}" y2="{place[used][1]:.0f}" stroke="#8a97a5"/>'
        for package, below in essential(packages).items()
        for used in sorted(below)
    ]
    boxes = [
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDE}" height="{TALL}" rx="6" {BOX}/>'
        f'<text x="{x + WIDE / 2:.0f}" y="{y + 22:.0f}" text-anchor="middle">{escape(package)}</text>'
        for package, (x, y) in place.items()
    ]
    size = f'viewBox="0 0 {width:.0f} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="14">'
    return "\n".join([head, *lines, *boxes, "</svg>", ""])


def table(packages: dict[str, set[str]]) -> str:
    """Return a table of the packages, from the top down, with the first line of each docstring."""
    rank = ranks(packages)
    lines = ["| package | purpose | imports |", "| --- | --- | --- |"]
    for package in sorted(packages, key=lambda name: (-rank[name], name)):
        used = (
            ", ".join(sorted(packages[package], key=lambda name: (-rank[name], name)))
            or "only shared modules"
        )
        lines.append(f"| `{package}` | {purpose(package)} | {used} |")
    floor = ", ".join(f"`{name}`" for name in sorted(FLOOR))
    return "\n".join([*lines, "", f"Shared modules, which every package may import: {floor}."])


def purpose(package: str) -> str:
    """Return the first line of the docstring of a package."""
    folder = SOURCE / package / "__init__.py"
    path = folder if folder.exists() else SOURCE / f"{package}.py"
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return said.splitlines()[0].replace("|", "\\|")


def page(text: str, packages: dict[str, set[str]]) -> str:
    """Return the page with a new table between its two marks."""
    before, rest = text.split(START)
    return f"{before}{START}\n{table(packages)}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    found = graph()
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    PICTURE.write_text(svg(found), encoding="utf-8")
