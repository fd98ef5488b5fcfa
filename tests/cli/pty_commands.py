"""Run command lines on pseudo-terminals and print what they wrote, as JSON; called by test_escapes.py.

Each runs in a fork of this process, which has loaded what they need: starting Python takes longer.
"""

from __future__ import annotations

import json
import os
import pty
import select
import sys
import time

import duckdb  # noqa: F401  # loaded before the forks
import numba  # noqa: F401

from calibrant.cli.main import main

LIMIT = 120.0  # seconds


def on_terminal(arguments):
    """Return what a command line writes to its terminal, and its exit code."""
    child, handle = pty.fork()
    if not child:
        sys.argv = ["calibrant", *arguments]
        main()
    output, end = b"", time.monotonic() + LIMIT
    while time.monotonic() < end:
        if not select.select([handle], [], [], 1.0)[0]:
            continue
        try:
            block = os.read(handle, 65536)
        except OSError:
            break
        if not block:
            break
        output += block
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(handle)
    return output.decode("latin-1"), code


if __name__ == "__main__":
    print(json.dumps([on_terminal(arguments) for arguments in json.loads(sys.argv[1])]))
