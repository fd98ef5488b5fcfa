"""The registry of recalibration methods, in order of simplicity: one row per method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from calibrant.errors import reject_name
from calibrant.recalibration.methods import binning, classes, curves, groups
from calibrant.recalibration.registry import Fitted, Method, Report
from calibrant.recalibration.samples import ClassRecords
from calibrant.results import NOTHING, Catalogue

UNSHRUNK = MappingProxyType({"shrink": None})
RAW = MappingProxyType({"ends": "raw"})


def _one_vs_rest(
    records: ClassRecords, *, seed: int, inner: str = "spline", report: Report | None = None
) -> Fitted:
    return classes.one_vs_rest(records, find_method(inner), seed=seed, report=report)


def _top_label(
    records: ClassRecords, *, seed: int, inner: str = "platt", report: Report | None = None
) -> Fitted:
    return classes.top_label(records, find_method(inner), find_method("platt"), seed=seed, report=report)


METHODS: tuple[Method, ...] = (
    Method(
        name="identity",
        fit=curves.identity,
        meaning="no change; always among the candidates of auto",
        citation="none",
        keeps_ranks=True,
        repetition=True,
        keeps_calibrated=True,
        auto_options=(NOTHING,),
    ),
    Method(
        name="limits",
        fit=curves.limits,
        meaning="no change, but predictions of exactly 0 and 1 move off them, by at most 0.05",
        citation="Krichevsky & Trofimov 1981",
        repetition=True,
    ),
    Method(
        name="shift",
        fit=curves.shift,
        meaning="adds a constant to the logit: corrects predictions that are too high or too low throughout",
        citation="Cox 1958; Saerens, Latinne & Decaestecker 2002",
        keeps_ranks=True,
        repetition=True,
        mean_kept=True,
        keeps_calibrated=True,
        law_options=UNSHRUNK,
    ),
    Method(
        name="temperature",
        fit=curves.temperature,
        fit_classes=classes.temperature,
        meaning="multiplies the logit: corrects over- and underconfidence around one half",
        citation="Guo, Pleiss, Sun & Weinberger 2017",
        needs_both_outcomes=True,
        keeps_ranks=True,
        repetition=True,
        keeps_calibrated=True,
        law_options=UNSHRUNK,
    ),
    Method(
        name="platt",
        fit=curves.platt,
        meaning="intercept and slope of the logit (logistic recalibration, Cox), shrunk toward no change",
        citation="Cox 1958; Platt 1999",
        needs_both_outcomes=True,
        keeps_ranks=True,
        repetition=True,
        mean_kept=True,
        keeps_calibrated=True,
        law_options=UNSHRUNK,
        auto_options=(NOTHING,),
    ),
    Method(
        name="beta",
        fit=curves.beta,
        meaning="powers of p and of 1 - p: Platt with different slopes at the two ends",
        citation="Kull, Silva Filho & Flach 2017",
        needs_both_outcomes=True,
        repetition=True,
        mean_kept=True,
        keeps_calibrated=True,
        law_options=UNSHRUNK,
        auto_options=(NOTHING,),
    ),
    Method(
        name="spline",
        fit=curves.spline,
        meaning="a smooth shift of the logit, shrunk toward none; penalties by evidence",
        citation="Lucena 2018 (spline calibration); MacKay 1992 (evidence)",
        needs_both_outcomes=True,
        keeps_calibrated=True,
        auto_options=(NOTHING,),
        repetition=True,
    ),
    Method(
        name="centered-isotonic",
        fit=curves.centered_isotonic,
        meaning="isotonic regression with one knot per block: keeps ranks and stays off 0 and 1",
        citation="Oron & Flournoy 2017; Krichevsky & Trofimov 1981",
        keeps_ranks=True,
        auto_options=(NOTHING,),
        repetition=True,
    ),
    Method(
        name="venn-abers",
        fit=curves.venn_abers,
        meaning="isotonic values of a new record under either outcome: an interval, and one number from it",
        citation="Vovk & Petej 2014",
        guarantee="one of the two values is perfectly calibrated (exchangeable 0/1 records of equal weight)",
        auto_options=(NOTHING,),
        repetition=True,
    ),
    Method(
        name="isotonic",
        fit=curves.isotonic,
        meaning="the best non-decreasing map, with ends that stay off 0 and 1",
        citation="Ayer et al. 1955; Zadrozny & Elkan 2002; Krichevsky & Trofimov 1981",
        repetition=True,
        mean_kept=True,
        keeps_calibrated=True,
        law_options=RAW,
    ),
    Method(
        name="bounded-slope",
        fit=curves.bounded_slope,
        meaning="the best gentle correction (slope between 0 and 2): gains at least the squared smooth error",
        citation="Błasiok, Gopalan, Hu & Nakkiran 2023",
        repetition=True,
        mean_kept=True,
        keeps_calibrated=True,
    ),
    Method(
        name="histogram",
        fit=binning.histogram,
        meaning="the outcome rate of bins of equal mass, with limits that hold for all bins at once",
        citation="Zadrozny & Elkan 2001; Gupta & Ramdas 2021",
        monotone=False,
        guarantee="all bins within a stated tolerance of their true rates, at a stated confidence",
        smallest_n=2,
        symmetric=False,
        repetition=True,
    ),
    Method(
        name="scaling-binning",
        fit=binning.scaling_binning,
        meaning="Platt, then the mean of its output in bins of equal mass: few values, small error",
        citation="Kumar, Liang & Ma 2019",
        needs_both_outcomes=True,
        symmetric=False,
        repetition=True,
    ),
    Method(
        name="vector",
        fit_classes=classes.vector,
        meaning="several classes: a slope and an intercept per class, shrunk toward one temperature",
        citation="Guo, Pleiss, Sun & Weinberger 2017",
        monotone=False,
    ),
    Method(
        name="dirichlet",
        fit_classes=classes.dirichlet,
        meaning="several classes: a full matrix of the logarithms, shrunk toward one temperature",
        citation="Kull et al. 2019",
        monotone=False,
    ),
    Method(
        name="one-vs-rest",
        fit_classes=_one_vs_rest,
        meaning="several classes: each class against the rest by a binary method, then normalised",
        citation="Zadrozny & Elkan 2002",
        monotone=False,
    ),
    Method(
        name="top-label",
        fit_classes=_top_label,
        meaning="several classes: the probability of the predicted class, with a map per class",
        citation="Gupta & Ramdas 2022",
        monotone=False,
    ),
    Method(
        name="hierarchical",
        fit=groups.hierarchical,
        meaning="one shift of the logit per level of every covariate, shrunk by evidence: a readable table",
        citation="Fellner 1986; Schall 1991; Wood & Fasiolo 2017",
        needs_covariates=True,
        needs_both_outcomes=True,
        monotone=False,
        exportable=False,
        auto_options=(NOTHING,),
    ),
    Method(
        name="patch",
        fit=groups.patch,
        meaning="shifts of named groups and ranges of scores, the worst first; every change is listed",
        citation="Hébert-Johnson, Kim, Reingold & Rothblum 2018",
        needs_covariates=True,
        needs_both_outcomes=True,
        monotone=False,
        exportable=False,
        smallest_n=10,
    ),
    Method(
        name="boost",
        fit=groups.boost,
        meaning="boosted trees on covariates and logit, kept only where held-out records gain",
        citation="Friedman 2001; Hébert-Johnson et al. 2018; Tax et al. 2025 (MCGrad)",
        needs_covariates=True,
        needs_both_outcomes=True,
        monotone=False,
        exportable=False,
        smallest_n=10,
        auto_options=(NOTHING,),
    ),
    Method(
        name="augment",
        fit=groups.augment,
        meaning="a model refitted with its own prediction as a column, three times; for reproduction",
        citation="Appendix E of the paper on measuring multi-calibration",
        needs_covariates=True,
        monotone=False,
        exportable=False,
    ),
)

_COLUMNS: dict[str, Callable[[Method], str]] = {
    "method": lambda row: row.name,
    "classes": lambda row: "several" if row.fit is None else "two" if row.fit_classes is None else "any",
    "covariates": lambda row: "needed" if row.needs_covariates else "",
    "options": lambda row: ", ".join(f"{name}={value!r}" for name, value in row.options.items()),
    "meaning": lambda row: row.meaning,
}
_TABLE = Catalogue("methods", {row.name: row for row in METHODS}, _COLUMNS)


def recalibrations() -> Mapping[str, Method]:
    """Return the registry: every recalibration method by name, from simple to complex.

    Returns
    -------
    Mapping
        Rows of the registry by name.

    Examples
    --------
    >>> recalibrations()["platt"].keeps_ranks
    True
    """
    return _TABLE


def find_method(name: str) -> Method:
    if name not in _TABLE:
        raise reject_name("method", str(name), ["auto", *_TABLE])
    return _TABLE[name]
