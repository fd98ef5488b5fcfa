"""Write docs/glossary.md from the words that reports link to: run it after changing one."""

from __future__ import annotations

import textwrap
from pathlib import Path

from calibrant.report.glossary import WORDS

TARGET = Path(__file__).parent / "glossary.md"


def page() -> str:
    """Return the page."""
    entries = (f"{word}\n{textwrap.indent(textwrap.fill(text, 116), '  ')}\n" for word, text in WORDS.items())
    return "# Glossary\n\n```{glossary}\n" + "\n".join(entries) + "```\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    print(f"wrote {TARGET}")
