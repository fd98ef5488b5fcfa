"""The drawing library of the page: Vega, Vega-Lite and Vega-Embed as one script, from vl-convert."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from calibrant.errors import MissingDependencyError, sentence


@cache
def library() -> str:
    """Return the script, safe inside a script element.

    Bundling takes seconds, so the result is kept in the user's cache folder, one file per version.
    """
    try:
        import vl_convert
    except ImportError:
        hint = "pip install 'calibrant[report]'"
        raise MissingDependencyError(
            sentence("the report", "needs the package vl-convert-python", hint=hint)
        ) from None
    kept = _folder() / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError, UnicodeDecodeError):
        return kept.read_text(encoding="utf-8")
    code: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # the stub forgets a default
    code = code.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    _keep(kept, code)
    return code


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "calibrant"


def _keep(target: Path, code: str) -> None:
    """Write the file in one step, so that nobody ever reads half of it; no cache is no error."""
    with suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False, encoding="utf-8") as part:
            part.write(code)
        os.replace(part.name, target)
