"""Check every link of the built site that stays inside it: the file and the anchor must exist.

Run `python docs/check_links.py FOLDER`. Addresses outside are only checked for being https, so
that the build needs no network.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag points to, and what can be pointed to."""
        for name, value in attrs:
            if value and ((tag == "a" and name == "href") or name == "src"):
                self.links.append(value)
            if value and name in ("id", "name"):
                self.anchors.add(value)


def read(path: Path) -> Page:
    """Return the links and anchors of a file."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def dead_links(folder: Path) -> list[str]:
    """Return one line per dead link."""
    pages = {path: read(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
                if parts.scheme == "http":
                    dead.append(f"{path.relative_to(folder)}: {link} is not https")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages.get(target)
            missing = not target.exists() or (
                parts.fragment and known and unquote(parts.fragment) not in known.anchors
            )
            if missing and not target.is_dir():
                dead.append(f"{path.relative_to(folder)}: {link}")
    return dead


if __name__ == "__main__":
    found = dead_links(Path(sys.argv[1]).resolve())
    print("\n".join(found) or "no dead links")
    sys.exit(bool(found))
