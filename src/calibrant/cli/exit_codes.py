"""Exit codes of all commands. Besides these: 0 where all is well, 130 interrupted, 143 terminated."""

from __future__ import annotations

FAILED = 1  # a limit is exceeded, an alarm, a named recalibration that harms, a report that does not verify
BAD_INPUT = 2  # bad input, usage, or a file that cannot be read or written
UNDECIDED = 3  # too few records to say, or too close to call
CLOSED_PIPE = 141  # as shells count a program that SIGPIPE, signal 13, has ended
