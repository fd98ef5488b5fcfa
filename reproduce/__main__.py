"""Run everything and write docs/reproduced.md: python -m reproduce [PART ...], parts by file name."""

from __future__ import annotations

import importlib
import sys
import time
from types import ModuleType

from reproduce.layout import ROOT

PARTS = (
    "distance_examples",
    "distance_gaussian",
    "testing_table1",
    "testing_figure3",
    "testing_table2",
    "testing_table3",
    "testing_lower_bounds",
    "multi_appendix_f",
    "multi_protocol",
    "survey_examples",
    "survey_rates",
    "truthful_table1",
    "truthful_examples",
    "truthful_gaps",
    "truthful_properties",
    "truthful_duels",
)

HEAD = """# The papers, reproduced

calibrant builds on five papers. This page compares what they print with what calibrant computes. Columns
headed "closed form" hold values that follow from formulas of the papers, not numbers that they print.
`make reproduce` writes the page from the files in `reproduce/`, one per table or figure. Seeds are fixed, so
it comes out the same every time, except for the seconds of Table 3; a test compares the tables with the page.
"""

LIMITS = """## What cannot be reproduced

- Table 2 of the testing paper: the network and its predictions are not published. Two analogues replace them.
- Tables 1 to 12 of the multi-calibration paper: ACS 2019 and KDD-98 cannot be reached from here. The
  protocol is run on other data where it is at hand.
- Table 3 of the testing paper with CVXPY, Gurobi and PyPy: HiGHS replaces the solvers, and seconds
  depend on the machine.
- Table I of the survey states bounds for the worst nature, which no simulation can exhaust; seven
  adversaries replace it.
- Figures 1 and 2 of the truthfulness paper are drawings and hold no data.

## Printed numbers that are wrong, or mean something else

- *Testing paper, Table 1, row dCE.* The three printed entries .03, .01, .01 are those of **half** the
  lower distance. Evidence: with half the value all three come out exactly; with the value itself, and the
  cut at eps / 2 that the paper states, they do not (rows `dCE halved` and `dCE` above).
- *Testing paper, caption of Table 1.* "The smallest eps that a majority accepts" does not give the
  printed rows smCE and cECE; the largest eps that a majority refuses gives them exactly.
- *Truthfulness paper, Table 1.* No printed number is wrong. The cells "> 0" are 0.125, 0.25 (DISTCAL) and
  0.0625 twice (l2-DISTCAL); "> 0.11" is 0.15625.
- *Multi-calibration paper, Kuiper metrics of Platt scaling on ACS (.26 to .41).* They look wrong. In
  Tables 1 to 3 Platt scaling raises the metric from .041, .023 and .064 to .260, .256 and .235, while
  isotonic regression lowers it to .014, .016 and .020. A logistic map of the log odds includes the identity,
  so fitting one cannot hurt the log loss on its own records. That argument does not cover scikit-learn's
  sigmoid, which fits a logistic curve to the probability itself: it cannot leave good predictions as they
  are, and may raise the metric. A fit with an intercept leaves no mean residual on its own records in either
  case. In the five-fold runs above scikit-learn's sigmoid raises the metric of decision trees from .0078 to
  .0177 and from .0042 to .0129, far less than the printed values, and lowers that of boosted trees. The
  printed values cannot be checked without the data, and are not used as targets.
- *Truthfulness paper, section 4.4.* The algorithm for ATB is off by one as printed: it gives .2266 for row
  (0, 0) of Table 1, where the definition, and the table, have .203125.
- *Survey, section 4.4.* Online forecasts with a mean cutoff (proper calibration) error of O(sqrt T) do not
  exist: the rate is at least of order sqrt(T log log T) (Theorem 11 of the proofs of online forecasts), so
  the printed rate leaves out logarithms. `online.CutoffForecaster` has sqrt(T log T).
"""


def page(parts: tuple[str, ...] = PARTS) -> str:
    """Return the whole page."""
    sections, paper = [HEAD], ""
    for name in parts:
        began = time.perf_counter()
        part: ModuleType = importlib.import_module(f"reproduce.{name}")
        if paper != part.PAPER:
            paper = part.PAPER
            sections.append(f"## {paper}\n")
        sections.append(f"### {part.TITLE}\n\n{part.page()}\n")
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return "\n".join([*sections, LIMITS])


def main(chosen: list[str]) -> None:
    """Write the page, or print the parts that were asked for."""
    if chosen:
        for name in chosen:
            print(importlib.import_module(f"reproduce.{name}").page())
        return
    target = ROOT / "docs" / "reproduced.md"
    target.write_text(page(), encoding="utf-8")
    print(f"wrote {target.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
