"""The `calibrant` script: Ctrl-C is quiet from the first moment, before numpy and the rest are loaded."""

import os
import signal


def stop_quietly() -> None:
    """End with one line on Ctrl-C, until the command line installs a handler that also cleans up."""

    def stop(number: int, frame: object) -> None:
        os.write(2, b"calibrant: stopped\n")
        os._exit(128 + number)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)


def main() -> None:
    """Run the command line."""
    stop_quietly()
    from calibrant.cli.main import main as run

    run()
