"""The `calibrant` script: signals are handled from the first moment, before numpy and the rest are loaded."""

import _signal  # type: ignore[import-not-found]  # the C module: `signal` itself takes milliseconds in which Ctrl-C would show a traceback
import os


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


def use_little_memory() -> None:
    """Keep OpenBLAS to one thread where memory is limited: it waits forever for buffers it cannot have."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (ImportError, OSError, ValueError):
        return
    if limit != resource.RLIM_INFINITY:
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ.setdefault(name, "1")


def main() -> None:
    """Run the command line."""
    use_little_memory()
    try:
        from calibrant.cli.main import main as run
    except (ImportError, MemoryError, OSError) as error:
        if os.environ.get("OPENBLAS_NUM_THREADS") != "1" and not isinstance(error, MemoryError):
            raise
        os.write(2, b"calibrant: not enough memory to start. Hint: raise the limit (ulimit -v)\n")
        os._exit(2)
    run()
