"""Where results and messages go: control characters of a file's names never reach the terminal."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BAD_INPUT = 2  # exit code

# All control characters but tab and line feed, and those that turn the direction of text
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Write control characters as JSON does, so that text and JSON stay what they are.

    >>> printable("a\x1b[31mb")
    'a\\u001b[31mb'
    """
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class PrintableStream(io.TextIOWrapper):
    """Standard output that escapes control characters, and remembers if nobody reads it any more."""

    reader_is_gone = False

    def write(self, text: str) -> int:
        """Write text, escaped."""
        with self._noticing():
            return super().write(printable(text))

    def flush(self) -> None:
        """Write what waits."""
        with self._noticing():
            super().flush()

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self.reader_is_gone = True
            raise


def open_closed_streams() -> None:
    """Open what the caller closed (>&-), lest a file of ours take its number and be written messages.

    What is printed then fails, as in other programs; messages go nowhere, and nothing is read.
    """
    for name, mode, flags in (
        ("stdin", "r", os.O_RDONLY),
        ("stdout", "w", os.O_RDONLY),
        ("stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            stream = os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8")
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def guard_output() -> PrintableStream | None:
    """Escape what is written to standard output from now on; colours go around it, see `tables`."""
    stream = sys.stdout
    if not isinstance(stream, io.TextIOWrapper):
        return None
    guarded = PrintableStream(
        stream.buffer,
        encoding=stream.encoding,
        errors="backslashreplace",
        newline="\n",
        line_buffering=stream.line_buffering,
    )
    sys.stdout = guarded
    return guarded
