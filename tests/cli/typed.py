"""A command line typed in this process: what a process of its own would say, without its start.

Starting Python and loading numpy, DuckDB and machine code takes longer than most commands. Where the process
is not the subject, tests call `calibrant` below; test_typed compares it with real processes. Signals, pipes,
full disks and the end of a process have their own processes in test_interrupts, test_kills and test_hostile.
"""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from calibrant.cli.main import run_command
from calibrant.cli.output import guard_output
from calibrant.files import remove_unfinished


def calibrant(*arguments: object, cwd: object = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command as `main` does, up to where the process would end."""
    words = ["calibrant", *map(str, arguments)]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        for name, value in environment.items():
            patch.setenv(name, value)
        if cwd is not None:
            patch.chdir(str(cwd))
        guard_output()
        code = run_command()
        remove_unfinished()
        sys.stdout.flush()
        sys.stderr.flush()
        printed, reported = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(words, code, printed, reported)


def in_a_process(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the same command line in a process of its own."""
    code = [sys.executable, "-c", "from calibrant.cli.main import main; main()", *map(str, arguments)]
    return subprocess.run(code, capture_output=True, text=True, check=False, **options)
