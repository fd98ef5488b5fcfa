"""Processor time and peak memory of reading logs of a million samples, as rows of CSV and as a frame."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Report

SAMPLES = 1_000_000
MAX_MEMORY = {"csv": 400, "frame": 2_000}  # MB
WORK = """
import json, sys, time
from pathlib import Path
from benchmarks.harness import peak_memory
from calibrant.logs import read
from calibrant.logs.rows import LogRows, Options
start = time.process_time()
if sys.argv[2] == "csv":
    LogRows(sys.argv[1], None, Options()).write_csv(Path(sys.argv[1]).with_suffix(".csv"))
else:
    frame = read(sys.argv[1], backend="pandas")
print(json.dumps([time.process_time() - start, peak_memory()]))
"""


def write_lines(path: Path, count: int) -> None:
    """Write multiple-choice samples as lm-eval 0.4.13 does; only the number and a few values change."""
    question = "word " * 20
    pairs = {f"gen_args_{k}": {"arg_0": question, "arg_1": f" choice {k}"} for k in range(4)}
    ends = []
    for k in range(44):
        responses = [[[str(-1.0 - (k * 7 + j * 3) % 11), "False"]] for j in range(4)]
        best = max(range(4), key=lambda j: float(responses[j][0][0]))
        sample = {
            "doc": {"subject": f"topic {k % 50}"}, "target": str(k % 4), "arguments": pairs,
            "resps": responses, "filtered_resps": [one[0] for one in responses], "filter": "none",
            "metrics": ["acc"],
            "acc": float(best == k % 4),
        }  # fmt: skip
        ends.append(json.dumps(sample)[1:] + "\n")
    with path.open("w") as file:
        for k in range(count):
            file.write(f'{{"doc_id": {k}, ' + ends[k % 44])


def inspect_samples(count: int, words: int) -> Iterator[tuple[str, str]]:
    """Yield the id and the JSON of samples of Inspect, of which only the id and a few values change."""
    ends = []
    for k in range(100):
        message = {"message": {"content": f"ANSWER: A\nConfidence: {50 + k % 50}%"}}
        score = {"choice": {"value": "CI"[k % 2], "answer": "A", "explanation": "word " * words}}
        ends.append(json.dumps({"epoch": 1, "output": {"choices": [message]}, "scores": score})[1:])
    for k in range(count):
        yield f"q{k}", f'{{"id": "q{k}", ' + ends[k % 100]


def write_object(path: Path, count: int) -> None:
    """Write an Inspect log as one JSON object."""
    with path.open("w") as file:
        file.write(inspect_header("0.3.285")[:-1] + ', "samples": [')
        for name, sample in inspect_samples(count, 100):
            file.write(("" if name == "q0" else ",") + sample)
        file.write("]}")


def write_archive(path: Path, count: int) -> None:
    """Write an Inspect log as a zip archive with one member per sample."""
    header = inspect_header("0.3.100")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("_journal/start.json", header)
        archive.writestr("header.json", header)
        for name, sample in inspect_samples(count, 20):
            archive.writestr(f"samples/{name}_epoch_1.json", sample)


def inspect_header(version: str) -> str:
    about = {"task": "long", "model": "m", "packages": {"inspect_ai": version}}
    return json.dumps({"version": 2, "status": "success", "eval": about})


def main(*targets: str) -> None:
    """Run and save; "csv" or "frame" measures these rows alone."""
    report = Report("read_logs")
    report.figure("samples", SAMPLES, "samples")
    with tempfile.TemporaryDirectory() as folder:
        forms = (
            ("lm-eval .jsonl", "samples_long_2026.jsonl", write_lines),
            ("Inspect .json", "long.json", write_object),
            ("Inspect .eval", "long.eval", write_archive),
        )
        for form, name, write in forms:
            path = Path(folder) / name
            write(path, SAMPLES)
            report.figure(f"{form}: size", path.stat().st_size / 1e9, "GB")
            for target in targets or ("csv", "frame"):
                command = [sys.executable, "-c", WORK, str(path), target]
                result = subprocess.run(command, check=True, capture_output=True, text=True)
                taken, peak = json.loads(result.stdout)
                report.figure(f"{form} to {target}: processor time", taken)
                report.figure(f"{form} to {target}: peak memory", peak, "MB", MAX_MEMORY[target])
                report.save(keep=True)
                path.with_suffix(".csv").unlink(missing_ok=True)
            path.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
