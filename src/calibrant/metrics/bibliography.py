"""The works that measures cite, by the authors and year that a citation begins with."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entry:
    """One work as BibTeX; Unicode stays, which biber and current BibTeX styles read."""

    bibtex: str

    @property
    def key(self) -> str:
        return self.bibtex[self.bibtex.index("{") + 1 : self.bibtex.index(",")]

    def field(self, name: str) -> str:
        found = re.search(rf"^  {name} = {{(.*)}},?$", self.bibtex, re.MULTILINE)
        return found.group(1) if found else ""

    @property
    def cited(self) -> tuple[str, str]:
        """How citations of the registry begin that mean it: with all authors, or the first "et al."."""
        names = [author.split(",")[0].split()[-1] for author in self.field("author").split(" and ")]
        listed = " & ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        return f"{listed} {self.field('year')}", f"{names[0]} et al. {self.field('year')}"


@functools.cache
def entries() -> tuple[Entry, ...]:
    text = Path(__file__).with_suffix(".bib").read_text(encoding="utf-8")
    return tuple(map(Entry, text.strip().split("\n\n")))


def entry_of(citation: str) -> Entry | None:
    """Return the work that a citation of the registry means.

    >>> entry_of("Cox 1958, Two further applications of a model for binary regression").field("doi")
    '10.1093/biomet/45.3-4.562'
    """
    return next((entry for entry in entries() if citation.startswith(entry.cited)), None)


def bibtex(citations: Mapping[str, str]) -> str:
    """Return the works behind these names, each once, with the names that need it above it."""
    users: dict[str, list[str]] = {}
    for name, citation in citations.items():
        for work in filter(None, map(entry_of, citation.split("; "))):
            users.setdefault(work.key, []).append(name)
    cited = [entry for entry in entries() if entry.key in users]
    return "\n\n".join(f"% {', '.join(users[entry.key])}\n{entry.bibtex}" for entry in cited)


DISTANCE_PAPER = "Błasiok, Gopalan, Hu & Nakkiran 2023, A unifying theory of distance from calibration"
TRUTHFUL_PAPER = "Hartline, Hu & Wu 2025, A perfectly truthful calibration measure"
MULTI_PAPER = "Guy, Haimovich, Linder, Okati, Perini, Tax & Tygert 2025, Measuring multi-calibration"
SURVEY = "Gopalan & Hu 2025, Calibration through the lens of indistinguishability"
BINS_PAPER = "Naeini, Cooper & Hauskrecht 2015, Well calibrated probabilities using Bayesian binning"
CURVE_PAPER = "Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu 2022, Metrics of calibration"
CORP_PAPER = "Dimitriadis, Gneiting & Jordan 2021, Stable reliability diagrams for probabilistic classifiers"
INDEX_PAPER = "Austin & Steyerberg 2019, The integrated calibration index (isotonic in place of loess)"
VALIDATION_PAPER = "Riley et al. 2021, Minimum sample size for external validation of a prediction model"
CONCORDANCE_PAPER = "Hanley & McNeil 1982, The meaning and use of the area under an ROC curve"
COX_PAPER = "Cox 1958, Two further applications of a model for binary regression"
SPIEGELHALTER_PAPER = "Spiegelhalter 1986, Probabilistic prediction in patient management and clinical trials"
HOSMER_PAPER = "Hosmer & Lemeshow 1980, Goodness of fit tests for the multiple logistic regression model"
BENEFIT_PAPER = "Vickers & Elkin 2006, Decision curve analysis"

OTHER_PAPERS = {  # what papers report too: tests, and the curve of net benefit
    "omnibus": f"{COX_PAPER}; {MULTI_PAPER}, eq. (2)",
    "spiegelhalter": SPIEGELHALTER_PAPER,
    "hosmer-lemeshow": HOSMER_PAPER,
    "net-benefit": BENEFIT_PAPER,
}
