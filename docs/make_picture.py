"""Make docs/report.png, the picture of the report in the README: `calibrant demo` opened in Chromium.

Needs the extra `report` and a Chromium. It shows the head of the page and the charts that answer where and
for whom; the page has more.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

from calibrant.demonstration import demonstration
from calibrant.report.evaluation import evaluate

HERE = Path(__file__).parent
TARGET = HERE / "report.png"
HIDDEN = "nav, section:not(#where, #whom), footer, figcaption, #where p, #whom .scroll, #whom .notes"
WIDTH = 1120

sys.path.insert(0, str(HERE.parent / "tests"))
from browser.chromium import Chromium, find_chromium  # noqa: E402


def picture() -> bytes:
    """Return the picture as PNG."""
    program = find_chromium()
    if program is None:
        raise SystemExit("make_picture.py needs a Chromium")
    data = demonstration(20_000, seed=1)
    groups = {"employment": data.employment, "region": data.region}
    title = "Generated loans: 20,000 predicted default probabilities"
    evaluation = evaluate(data.outcome, data.prediction, groups=groups, seed=1, title=title)
    with tempfile.TemporaryDirectory() as folder:
        page = evaluation.to_html(Path(folder) / "report.html")
        browser = Chromium(program, Path(folder) / "profile")
        try:
            browser.open(page, width=WIDTH)
            browser.js(f"document.querySelectorAll('{HIDDEN}').forEach(e => e.remove())")
            height = browser.js("document.body.getBoundingClientRect().height")
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
            shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        finally:
            browser.close()
    return base64.b64decode(shot["data"])


if __name__ == "__main__":
    TARGET.write_bytes(picture())
    print(f"wrote {TARGET}")
