"""Make docs/report.png, the picture in the README and on the home page: the first screen of the demo report.

Needs the extra `report` and a Chromium.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

from calibrant.demo import demonstration
from calibrant.evaluation.evaluate import evaluate

HERE = Path(__file__).parent
TARGET = HERE / "report.png"
WIDTH, MAX_HEIGHT = 1120, 672  # just above the second legend of the diagram

sys.path.insert(0, str(HERE.parent / "tests"))
from browser.chromium import Chromium, find_chromium  # noqa: E402


def picture() -> bytes:
    """Return the picture as PNG."""
    program = find_chromium()
    if program is None:
        raise SystemExit("make_picture.py needs a Chromium")
    data = demonstration(20_000, seed=1)
    title = "Generated loans: 20,000 predicted default probabilities"
    evaluation = evaluate(data["default"], data["p"], groups={"employment": data["employment"]}, title=title)
    with tempfile.TemporaryDirectory() as folder:
        page = evaluation.to_html(Path(folder) / "report.html")
        browser = Chromium(program, Path(folder) / "profile")
        try:
            browser.open(page, width=WIDTH)
            end = browser.js("document.getElementById('overview').getBoundingClientRect().bottom")
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": min(end, MAX_HEIGHT), "scale": 1}
            shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        finally:
            browser.close()
    return base64.b64decode(shot["data"])


if __name__ == "__main__":
    TARGET.write_bytes(picture())
    print(f"wrote {TARGET}")
