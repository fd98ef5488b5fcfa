"""Draw the real import graph of the rooms, and write it with its table into docs/architecture.md.

Run `python docs/make_architecture.py`; a test checks that page and picture are what the source says.
"""

from __future__ import annotations

import ast
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "calibrant"
PAGE, PICTURE = ROOT / "docs" / "architecture.md", ROOT / "docs" / "architecture.svg"
START, END = "<!-- rooms: written by docs/make_architecture.py -->", "<!-- end of rooms -->"
FLOOR = {
    "errors",
    "results",
    "progress",
    "sums",
    "cores",
    "numerals",
    "sheets",
    "catalogue",
    "options",
    "disk",
}  # everybody may use these
WIDE, TALL, GAP = 150, 34, 26
BOX = 'fill="#eef3f8" stroke="#0072b2"'


def graph() -> dict[str, set[str]]:
    """Return for every room, a folder or a module of the package, the rooms that it imports, lazily too."""
    rooms: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room.startswith("__"):
            continue
        rooms.setdefault(room, set()).update(imported(path) - {room})
    return {room: used & set(rooms) - FLOOR for room, used in sorted(rooms.items()) if room not in FLOOR}


def imported(path: Path) -> set[str]:
    """Return the rooms that a file imports."""
    used = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "calibrant":
            parts = str(node.module).split(".")
            used |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            used |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("calibrant.")}
    return used


def ranks(rooms: dict[str, set[str]]) -> dict[str, int]:
    """Return how high each room stands: one above the highest room that it imports."""
    rank: dict[str, int] = {}

    def of(room: str) -> int:
        if room not in rank:
            rank[room] = 1 + max((of(used) for used in rooms[room]), default=-1)
        return rank[room]

    for room in rooms:
        of(room)
    return rank


def essential(rooms: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out the imports that others imply, so that the picture can be read."""

    def reach(room: str) -> set[str]:
        return set().union(*({used} | reach(used) for used in rooms[room])) if rooms[room] else set()

    return {room: used - set().union(*(reach(other) for other in used)) for room, used in rooms.items()}


def svg(rooms: dict[str, set[str]]) -> str:
    """Draw the rooms in floors, the lowest at the bottom, with a line to each room that they stand on."""
    rank = ranks(rooms)
    floors = [sorted(room for room in rooms if rank[room] == k) for k in range(max(rank.values()) + 1)]
    width = max(len(floor) for floor in floors) * (WIDE + GAP) + GAP
    height = len(floors) * (TALL + 2 * GAP) + GAP
    place = {}
    for k, floor in enumerate(floors):
        left = (width - len(floor) * (WIDE + GAP) + GAP) / 2
        for j, room in enumerate(floor):
            place[room] = (left + j * (WIDE + GAP), height - GAP - TALL - k * (TALL + 2 * GAP))
    lines = [
        f'<line x1="{place[room][0] + WIDE / 2:.0f}" y1="{place[room][1] + TALL:.0f}" '
        f'x2="{place[used][0] + WIDE / 2:.0f}" y2="{place[used][1]:.0f}" stroke="#8a97a5"/>'
        for room, below in essential(rooms).items()
        for used in sorted(below)
    ]
    boxes = [
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDE}" height="{TALL}" rx="6" {BOX}/>'
        f'<text x="{x + WIDE / 2:.0f}" y="{y + 22:.0f}" text-anchor="middle">{escape(room)}</text>'
        for room, (x, y) in place.items()
    ]
    size = f'viewBox="0 0 {width:.0f} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="14">'
    return "\n".join([head, *lines, *boxes, "</svg>", ""])


def table(rooms: dict[str, set[str]]) -> str:
    """Return the rooms from the top of the house to its floor, each with what it says of itself."""
    rank = ranks(rooms)
    lines = ["| room | what it is for | imports |", "| --- | --- | --- |"]
    for room in sorted(rooms, key=lambda name: (-rank[name], name)):
        used = ", ".join(sorted(rooms[room], key=lambda name: (-rank[name], name))) or "nothing but the floor"
        lines.append(f"| `{room}` | {purpose(room)} | {used} |")
    floor = ", ".join(f"`{name}`" for name in sorted(FLOOR))
    return "\n".join([*lines, "", f"The floor, which every room may use: {floor}."])


def purpose(room: str) -> str:
    """Return the first line of the docstring of a room."""
    folder = SOURCE / room / "__init__.py"
    path = folder if folder.exists() else SOURCE / f"{room}.py"
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return said.splitlines()[0].replace("|", "\\|")


def page(text: str, rooms: dict[str, set[str]]) -> str:
    """Return the page with the table between its two marks renewed."""
    before, rest = text.split(START)
    return f"{before}{START}\n{table(rooms)}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    found = graph()
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    PICTURE.write_text(svg(found), encoding="utf-8")
