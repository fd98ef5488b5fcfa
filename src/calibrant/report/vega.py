"""The drawing library of the page: Vega, Vega-Lite and Vega-Embed as one script, from vl-convert."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from calibrant.disk import write_whole
from calibrant.errors import MissingDependencyError, UnwritableFileError, sentence

COMPLETE = "vegaEmbed"  # in every script that can draw


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
    name = f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError, UnicodeDecodeError, RuntimeError):
        kept = (_folder() / name).read_text(encoding="utf-8")
        if COMPLETE in kept:
            return kept
    code: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # the stub forgets a default
    code = code.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    _keep(name, code)
    return code


def _folder() -> Path:
    """Return the user's cache folder; RuntimeError where the user has no home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "calibrant"


def _keep(name: str, code: str) -> None:
    """Write the file whole, so that nobody ever reads half of it; no cache is no error."""
    with suppress(OSError, RuntimeError, UnwritableFileError):
        _folder().mkdir(parents=True, exist_ok=True)
        write_whole(_folder() / name, code)
