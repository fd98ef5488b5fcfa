"""The bibliography of the measures as BibTeX: what `calibrant measures --bibtex` prints.

The papers that rows of the registry cite, each written once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Entry:
    """One work; `cited` is how citations of the registry begin that mean it."""

    key: str
    kind: str
    cited: str
    author: str
    title: str
    year: int
    doi: str
    more: Mapping[str, str] = field(default_factory=dict)

    def bibtex(self) -> str:
        """Return the entry as BibTeX; Unicode stays, which biber and current BibTeX styles read."""
        parts = {"author": self.author, "title": f"{{{self.title}}}", "year": str(self.year), **self.more}
        parts["doi"] = self.doi
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in parts.items())
        return f"@{self.kind}{{{self.key},\n{lines}\n}}"


ENTRIES = (
    Entry(
        "blasiok2023unifying",
        "inproceedings",
        "Błasiok, Gopalan, Hu & Nakkiran 2023",
        "Błasiok, Jarosław and Gopalan, Parikshit and Hu, Lunjia and Nakkiran, Preetum",
        "A Unifying Theory of Distance from Calibration",
        2023,
        "10.1145/3564246.3585182",
        {"booktitle": "Proceedings of the 55th Annual ACM Symposium on Theory of Computing"},
    ),
    Entry(
        "hartline2025truthful",
        "misc",
        "Hartline, Hu & Wu 2025",
        "Hartline, Jason and Hu, Lunjia and Wu, Yifan",
        "A Perfectly Truthful Calibration Measure",
        2025,
        "10.48550/arXiv.2508.13100",
        {"url": "https://proceedings.mlr.press/v336/hartline26a.html"},
    ),
    Entry(
        "guy2025measuring",
        "misc",
        "Guy, Haimovich, Linder, Okati, Perini, Tax & Tygert 2025",
        "Guy, Ido and Haimovich, Daniel and Linder, Fridolin and Okati, Nastaran and Perini, Lorenzo and "
        "Tax, Niek and Tygert, Mark",
        "Measuring multi-calibration",
        2025,
        "10.48550/arXiv.2506.11251",
    ),
    Entry(
        "gopalan2025lens",
        "misc",
        "Gopalan & Hu 2025",
        "Gopalan, Parikshit and Hu, Lunjia",
        "Calibration through the Lens of Indistinguishability",
        2025,
        "10.48550/arXiv.2509.02279",
    ),
    Entry(
        "naeini2015obtaining",
        "inproceedings",
        "Naeini, Cooper & Hauskrecht 2015",
        "Pakdaman Naeini, Mahdi and Cooper, Gregory and Hauskrecht, Milos",
        "Obtaining Well Calibrated Probabilities Using Bayesian Binning",
        2015,
        "10.1609/aaai.v29i1.9602",
        {"booktitle": "Proceedings of the AAAI Conference on Artificial Intelligence", "volume": "29"},
    ),
    Entry(
        "arrieta2022metrics",
        "article",
        "Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu 2022",
        "Arrieta-Ibarra, Imanol and Gujral, Paman and Tannen, Jonathan and Tygert, Mark and Xu, Cherie",
        "Metrics of Calibration for Probabilistic Predictions",
        2022,
        "10.48550/arXiv.2205.09680",
        {
            "journal": "Journal of Machine Learning Research",
            "volume": "23",
            "number": "351",
            "pages": "1--54",
        },
    ),
    Entry(
        "dimitriadis2021stable",
        "article",
        "Dimitriadis, Gneiting & Jordan 2021",
        "Dimitriadis, Timo and Gneiting, Tilmann and Jordan, Alexander I.",
        "Stable reliability diagrams for probabilistic classifiers",
        2021,
        "10.1073/pnas.2016191118",
        {"journal": "Proceedings of the National Academy of Sciences", "volume": "118", "number": "8"},
    ),
    Entry(
        "austin2019integrated",
        "article",
        "Austin & Steyerberg 2019",
        "Austin, Peter C. and Steyerberg, Ewout W.",
        "The Integrated Calibration Index (ICI) and related metrics for quantifying the calibration of "
        "logistic regression models",
        2019,
        "10.1002/sim.8281",
        {"journal": "Statistics in Medicine", "volume": "38", "pages": "4051--4065"},
    ),
    Entry(
        "riley2021minimum",
        "article",
        "Riley et al. 2021",
        "Riley, Richard D. and Debray, Thomas P. A. and Collins, Gary S. and Archer, Lucinda and "
        "Ensor, Joie and van Smeden, Maarten and Snell, Kym I. E.",
        "Minimum sample size for external validation of a clinical prediction model with a binary outcome",
        2021,
        "10.1002/sim.9025",
        {"journal": "Statistics in Medicine", "volume": "40", "pages": "4230--4251"},
    ),
    Entry(
        "hanley1982meaning",
        "article",
        "Hanley & McNeil 1982",
        "Hanley, James A. and McNeil, Barbara J.",
        "The meaning and use of the area under a receiver operating characteristic (ROC) curve",
        1982,
        "10.1148/radiology.143.1.7063747",
        {"journal": "Radiology", "volume": "143", "pages": "29--36"},
    ),
    Entry(
        "cox1958two",
        "article",
        "Cox 1958",
        "Cox, D. R.",
        "Two Further Applications of a Model for Binary Regression",
        1958,
        "10.1093/biomet/45.3-4.562",
        {"journal": "Biometrika", "volume": "45", "number": "3--4", "pages": "562--565"},
    ),
    Entry(
        "brier1950verification",
        "article",
        "Brier 1950",
        "Brier, Glenn W.",
        "Verification of Forecasts Expressed in Terms of Probability",
        1950,
        "10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2",
        {"journal": "Monthly Weather Review", "volume": "78", "number": "1", "pages": "1--3"},
    ),
    Entry(
        "good1952rational",
        "article",
        "Good 1952",
        "Good, I. J.",
        "Rational Decisions",
        1952,
        "10.1111/j.2517-6161.1952.tb00104.x",
        {
            "journal": "Journal of the Royal Statistical Society: Series B (Methodological)",
            "volume": "14",
            "number": "1",
            "pages": "107--114",
        },
    ),
    Entry(
        "blasiok2023smooth",
        "misc",
        "Błasiok & Nakkiran 2023",
        "Błasiok, Jarosław and Nakkiran, Preetum",
        "Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing",
        2023,
        "10.48550/arXiv.2309.12236",
    ),
    Entry(
        "hu2024predict",
        "misc",
        "Hu & Wu 2024",
        "Hu, Lunjia and Wu, Yifan",
        "Predict to Minimize Swap Regret for All Payoff-Bounded Tasks",
        2024,
        "10.48550/arXiv.2404.13503",
    ),
    Entry(
        "kleinberg2023u",
        "misc",
        "Kleinberg, Leme, Schneider & Teng 2023",
        "Kleinberg, Bobby and Paes Leme, Renato and Schneider, Jon and Teng, Yifeng",
        "U-Calibration: Forecasting for an Unknown Agent",
        2023,
        "10.48550/arXiv.2307.00168",
    ),
    Entry(
        "steyerberg2019clinical",
        "book",
        "Steyerberg 2019",
        "Steyerberg, Ewout W.",
        "Clinical Prediction Models",
        2019,
        "10.1007/978-3-030-16399-0",
        {"publisher": "Springer", "edition": "2"},
    ),
    Entry(
        "spiegelhalter1986probabilistic",
        "article",
        "Spiegelhalter 1986",
        "Spiegelhalter, D. J.",
        "Probabilistic prediction in patient management and clinical trials",
        1986,
        "10.1002/sim.4780050506",
        {"journal": "Statistics in Medicine", "volume": "5", "number": "5", "pages": "421--433"},
    ),
    Entry(
        "hosmer1980goodness",
        "article",
        "Hosmer & Lemeshow 1980",
        "Hosmer, David W. and Lemeshow, Stanley",
        "Goodness of fit tests for the multiple logistic regression model",
        1980,
        "10.1080/03610928008827941",
        {
            "journal": "Communications in Statistics - Theory and Methods",
            "volume": "9",
            "number": "10",
            "pages": "1043--1069",
        },
    ),
    Entry(
        "vickers2006decision",
        "article",
        "Vickers & Elkin 2006",
        "Vickers, Andrew J. and Elkin, Elena B.",
        "Decision curve analysis: a novel method for evaluating prediction models",
        2006,
        "10.1177/0272989X06295361",
        {"journal": "Medical Decision Making", "volume": "26", "number": "6", "pages": "565--574"},
    ),
)


def entry_of(citation: str) -> Entry | None:
    """Return the work that a citation of the registry means.

    >>> entry_of("Cox 1958, Two further applications of a model for binary regression").doi
    '10.1093/biomet/45.3-4.562'
    """
    return next((entry for entry in ENTRIES if citation.startswith(entry.cited)), None)


def bibtex(citations: Mapping[str, str]) -> str:
    """Return the works behind these names, each once, with the names that need it above it.

    One citation may name several works, with semicolons between them.
    """
    users: dict[str, list[str]] = {}
    for name, citation in citations.items():
        for work in filter(None, map(entry_of, citation.split("; "))):
            users.setdefault(work.key, []).append(name)
    cited = [entry for entry in ENTRIES if entry.key in users]
    return "\n\n".join(f"% {', '.join(users[entry.key])}\n{entry.bibtex()}" for entry in cited)


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

BESIDE_MEASURES = {  # what papers report too: tests, and the curve of net benefit
    "omnibus": f"{COX_PAPER}; {MULTI_PAPER}, eq. (2)",
    "spiegelhalter": SPIEGELHALTER_PAPER,
    "hosmer-lemeshow": HOSMER_PAPER,
    "net-benefit": BENEFIT_PAPER,
}
