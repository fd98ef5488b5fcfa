"""Programs on a real terminal: a pseudo-terminal whose output is collected."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import time
from contextlib import suppress

ROWS, COLUMNS = 40, 200


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, arguments, cwd, env):
        self.output = b""
        self.process, self.handle = pty.fork()
        if not self.process:  # the child
            os.chdir(cwd)
            os.execvpe(arguments[0], arguments, env)
        import fcntl
        import termios

        fcntl.ioctl(self.handle, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def type(self, text):
        os.write(self.handle, text.encode())

    def read(self, seconds):
        """Collect what is printed until nothing comes for this long."""
        began = len(self.output)
        while select.select([self.handle], [], [], seconds)[0]:
            try:
                block = os.read(self.handle, 65536)
            except OSError:  # Linux reports the end of a terminal like this
                break
            if not block:
                break
            self.output += block
        return self.output[began:]

    def wait_for(self, text, seconds):
        """Read until a text appears; return whether it did."""
        end = time.monotonic() + seconds
        while text.encode() not in self.output:
            left = end - time.monotonic()
            if left <= 0:
                return False
            self.read(min(left, 0.2))
        return True

    def close(self):
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.process, 0)
        os.close(self.handle)
