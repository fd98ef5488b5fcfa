"""What the package says of itself that depends on where it is published: its addresses.

The sources name no host. A release sets CALIBRANT_URL to the address of the repository (the workflow does).
Then the package gets its project addresses, and the links of its README, which an index shows far from the
files they point to, are made absolute, to the tag of the version. Without it links stay relative.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")
PAGES = {"Source": "", "Documentation": "/tree/{tag}/docs", "Changelog": "/blob/{tag}/CHANGELOG.md"}
PAGES |= {"Issues": "/issues", "Security": "/blob/{tag}/SECURITY.md"}


def absolute_links(text: str, url: str, tag: str) -> str:
    """Return Markdown whose links to files of the repository are addresses; images are their raw files."""

    def address(match: re.Match[str]) -> str:
        mark, words, target = match.groups()
        return f"{mark}[{words}]({url}/{'raw' if mark else 'blob'}/{tag}/{target})"

    return LINK.sub(address, text)


class PublishedMetadata(MetadataHookInterface):
    """Set the README and the addresses of the package."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Write both into the metadata of the package that is being built."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        url = os.environ.get("CALIBRANT_URL", "").rstrip("/")
        if url:
            tag = f"v{self._version()}"
            text = absolute_links(text, url, tag)
            metadata["urls"] = {name: url + page.format(tag=tag) for name, page in PAGES.items()}
        metadata["readme"] = {"content-type": "text/markdown", "text": text}

    def _version(self) -> str:
        source = (Path(self.root) / "src" / "calibrant" / "__init__.py").read_text(encoding="utf-8")
        found = re.search(r'^__version__ = "([^"]+)"', source, re.MULTILINE)
        if found is None:
            raise ValueError('src/calibrant/__init__.py must have a line __version__ = "..."')
        return found[1]
