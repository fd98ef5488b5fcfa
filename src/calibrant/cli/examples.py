"""Examples shown at the end of every `calibrant COMMAND --help`."""

from __future__ import annotations

import click

LOANS = "loans.csv -y default -p p"
EXAMPLES: dict[str, tuple[str, ...]] = {
    "evaluate": (
        f"calibrant evaluate {LOANS}",
        f"calibrant evaluate {LOANS} --groups employment --html report.html",
        f"calibrant evaluate {LOANS} --measures all",
    ),
    "check": (f"calibrant check {LOANS} --max ece=0.03 --max slope=0.2 --junit gate.xml",),
    "audit": (
        f"calibrant audit {LOANS} --groups employment,region",
        f"calibrant audit {LOANS} --covariates employment,region,age --search",
    ),
    "recalibrate": (
        f"calibrant recalibrate {LOANS} -o map.json",
        f"calibrant recalibrate {LOANS} --groups employment -o map.json",
    ),
    "apply": ("calibrant apply map.json new.csv -p p -o repaired.csv",),
    "monitor": ("calibrant monitor today.csv -y default -p p --state monitor.json",),
    "stream": (f"calibrant stream {LOANS} -o calibrated.csv",),
    "test": (f"calibrant test {LOANS}",),
    "compare": (
        f"calibrant compare {LOANS} -p p_old --measure brier",
        f"calibrant compare {LOANS} --groups month --ordered",
    ),
    "classes": ("calibrant classes images.csv -y label -p cat -p dog -p owl",),
    "distinguish": (f"calibrant distinguish {LOANS} --covariates employment,region,age",),
    "plan": ("calibrant plan loans.csv -p p --distance 0.02",),
    "distributions": ("calibrant distributions rain.csv -y observed --members m1,m2,m3",),
    "abstain": ("calibrant abstain answers.csv -y correct -p confidence --risk 0.1",),
    "verify": ("calibrant verify report.html loans.csv",),
    "sketch": ("calibrant sketch 'clicks/*.parquet' -y y -p p --by country -o clicks.sketch",),
    "merge": ("calibrant merge monday.sketch tuesday.sketch -o week.sketch",),
    "demo": ("calibrant demo --csv loans.csv",),
    "measures": ("calibrant measures", "calibrant measures --json"),
    "truthful": ("calibrant truthful -m smooth --truth 0.5,0.5",),
}


def with_examples(command: click.Command, name: str | None = None) -> click.Command:
    """Add examples to the end of a command's help."""
    lines = EXAMPLES.get(name or command.name or "", ())
    if lines and not command.epilog:
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
    return command
