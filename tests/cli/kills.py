"""Run a command many times in forked processes, kill them at random moments, and repeat it until it ends.

Called by test_kills.py as a program of its own: a fork of a process without threads is cheap and safe, and
what is killed has nothing left to load, so that the moments fall on the work and not on imports.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from calibrant.cli.main import calibrant

SHOWN = "shown.json"
OF_THE_RUN = {"new", "raised"}  # what a run added: nothing, if the one that was killed had done it all
SHORTER, LONGER = 0.8, 1.1  # after a run that ended, after one that was killed: 7 of 10 are


def started(folder, arguments):
    """Fork a process that runs the command in this folder, and return its number."""
    child = os.fork()
    if child:
        return child
    os.chdir(folder)
    os.dup2(os.open(SHOWN, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    try:
        calibrant.main(arguments, standalone_mode=False)
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        code = 99
    sys.stdout.flush()
    Path("modules").write_text("\n".join(sys.modules))
    os._exit(code)


def finished(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def snapshot(folder, outputs):
    return {name: contents(folder / name) for name in outputs if (folder / name).exists()}


def contents(path):
    """Return what a file holds; of what was shown, what is said of a state and not of one run alone."""
    if path.name != SHOWN:
        return path.read_bytes()
    return without_run(json.loads(path.read_text()))


def without_run(shown):
    if not isinstance(shown, dict):
        return shown
    return {key: without_run(value) for key, value in shown.items() if key not in OF_THE_RUN}


def calm(place, plan):
    """Run every part once; return the files after each, the exit codes, and the seconds of the slowest."""
    folder = shutil.copytree(place / "start", place / "calm")
    after, codes, longest = [], [], 0.0
    for part in plan["parts"]:
        began = time.monotonic()
        codes.append(finished(started(folder, part)))
        longest = max(longest, time.monotonic() - began)
        after.append(snapshot(folder, plan["outputs"]))
    return after, codes, longest


def killed(place, plan, number, span, rng):
    """Kill every part at a random moment, and repeat it unless its state says that it is complete.

    Return what it left, and the seconds in which to kill the next: a machine gets slower and faster.
    """
    folder = shutil.copytree(place / "start", place / f"killed{number}")
    after, kills, complete = [], 0, 0
    for part in plan["parts"]:
        before = snapshot(folder, ["s.json"])
        child = started(folder, part)
        time.sleep(span * rng.uniform(rng.choice([0.0, 0.7]), 1.0))  # often near the end: it writes there
        os.kill(child, signal.SIGKILL)
        died = finished(child) == -signal.SIGKILL
        kills += died
        span *= LONGER if died else SHORTER
        done = snapshot(folder, ["s.json"]) != before
        complete += died and done
        if plan["always_repeat"] or not done:
            finished(started(folder, part))
        after.append(snapshot(folder, plan["outputs"]))
    left = sorted(path.name for path in folder.iterdir() if path.suffix == ".part")
    shutil.rmtree(folder)
    return after, kills, complete, left, span


def load_beforehand(place, plan):
    """Import what a run imports, so that the forks need not."""
    folder = shutil.copytree(place / "start", place / "first")
    finished(started(folder, plan["parts"][0]))
    for name in (folder / "modules").read_text().splitlines():
        with suppress(Exception):
            importlib.import_module(name)


def main(place, plan):
    load_beforehand(place, plan)
    expected, codes, span = calm(place, plan)
    rng, different, kills, complete, leftovers = random.Random(plan["seed"]), 0, 0, 0, 0
    for number in range(plan["runs"]):
        after, more, ended, left, span = killed(place, plan, number, span, rng)
        kills, complete, leftovers = kills + more, complete + ended, leftovers + len(left)
        different += after != expected
    counts = {"different": different, "kills": kills, "complete": complete, "leftovers": leftovers}
    print(json.dumps({**counts, "codes": codes}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
