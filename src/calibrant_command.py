"""The `calibrant` script: signals are handled from the first moment, before numpy and the rest are loaded."""

import _signal  # type: ignore[import-not-found]  # the C module: `signal` itself takes milliseconds in which Ctrl-C would show a traceback
import os

MIN_ADDRESS_SPACE = 1_500_000  # KiB for numpy, scipy, numba and DuckDB; with less, OpenBLAS waits forever


def stop_quietly() -> None:
    """End with one line when interrupted, until the command line installs a handler that also cleans up."""

    def stop(number: int, frame: object) -> None:
        os.write(2, b"calibrant: stopped\n")
        os._exit(128 + number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(_signal, name, None)
        if number is not None and _signal.getsignal(number) in (_signal.SIG_DFL, _signal.default_int_handler):
            _signal.signal(number, stop)


stop_quietly()


def refuse_small_address_space() -> None:
    """Refuse a limit on memory (ulimit -v) under which the libraries would hang or crash."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    if limit < MIN_ADDRESS_SPACE * 1024:
        rule = f"must be at least {MIN_ADDRESS_SPACE} KiB; got {limit // 1024}"
        hint = f"Hint: ulimit -v {MIN_ADDRESS_SPACE}."
        os.write(2, f"calibrant: the limit on virtual memory {rule}. {hint}\n".encode())
        os._exit(2)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # each thread reserves a buffer


def main() -> None:
    """Run the command line."""
    refuse_small_address_space()
    # long dot products are summed alike on every machine, and do not wait for a busy core
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from calibrant.cli.main import main as run

    run()
