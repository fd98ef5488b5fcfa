"""The registry of recalibration methods, in order of simplicity: one row per method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from calibrant.errors import reject_name
from calibrant.recalibration.methods import binning, classes, curves, groups
from calibrant.recalibration.registry import Fitted, Method, Report, silent
from calibrant.recalibration.samples import ClassRecords
from calibrant.results import NOTHING, Catalogue

UNSHRUNK = MappingProxyType({"shrink": None})


def _one_vs_rest(
    records: ClassRecords, *, seed: int, inner: str = "spline", report: Report = silent
) -> Fitted:
    return classes.one_vs_rest(records, find_method(inner), seed=seed, report=report)


def _top_label(records: ClassRecords, *, seed: int, inner: str = "platt", report: Report = silent) -> Fitted:
    return classes.top_label(records, find_method(inner), find_method("platt"), seed=seed, report=report)


_logistic = partial(Method, needs_both_outcomes=True, keeps_calibrated=True, law_options=UNSHRUNK)
_of_classes = partial(Method, monotone=False, repetition=False)
_of_groups = partial(
    Method, needs_covariates=True, needs_both_outcomes=True, monotone=False, repetition=False
)

METHODS: tuple[Method, ...] = (
    Method(
        "identity",
        "no change; always among the candidates of auto",
        "none",
        curves.identity,
        keeps_ranks=True,
        keeps_calibrated=True,
        auto=True,
    ),
    Method(
        "limits",
        "no change, but predictions of exactly 0 and 1 move off them, by at most 0.05",
        "Wrinch & Jeffreys 1919; Krichevsky & Trofimov 1981",
        curves.limits,
    ),
    _logistic(
        "shift",
        "adds a constant to the logit: corrects predictions that are too high or too low throughout",
        "Cox 1958; Saerens, Latinne & Decaestecker 2002",
        curves.shift,
        needs_both_outcomes=False,
        keeps_ranks=True,
        mean_kept=True,
    ),
    _logistic(
        "temperature",
        "multiplies the logit: corrects over- and underconfidence around one half",
        "Guo, Pleiss, Sun & Weinberger 2017",
        curves.temperature,
        classes.temperature,
        keeps_ranks=True,
    ),
    _logistic(
        "platt",
        "intercept and slope of the logit (logistic recalibration, Cox), shrunk toward no change",
        "Cox 1958; Platt 1999",
        curves.platt,
        keeps_ranks=True,
        mean_kept=True,
        auto=True,
    ),
    _logistic(
        "beta",
        "powers of p and of 1 - p: Platt with different slopes at the two ends",
        "Kull, Silva Filho & Flach 2017",
        curves.beta,
        mean_kept=True,
        auto=True,
    ),
    _logistic(
        "spline",
        "a smooth shift of the logit, shrunk toward none; penalties by evidence",
        "Lucena 2018 (spline calibration); MacKay 1992 (evidence)",
        curves.spline,
        law_options=NOTHING,
        auto=True,
    ),
    Method(
        "centered-isotonic",
        "isotonic regression with one knot per block: keeps ranks and stays off 0 and 1",
        "Oron & Flournoy 2017; Krichevsky & Trofimov 1981",
        curves.centered_isotonic,
        keeps_ranks=True,
        auto=True,
    ),
    Method(
        "venn-abers",
        "isotonic values of a new record under either outcome: an interval, and one number from it",
        "Vovk & Petej 2014",
        curves.venn_abers,
        guarantee="one of the two values is perfectly calibrated (exchangeable 0/1 records of equal weight)",
        auto=True,
    ),
    Method(
        "isotonic",
        "the best non-decreasing map, with ends that stay off 0 and 1",
        "Ayer et al. 1955; Zadrozny & Elkan 2002; Krichevsky & Trofimov 1981",
        curves.isotonic,
        mean_kept=True,
        keeps_calibrated=True,
        law_options=MappingProxyType({"ends": "raw"}),
    ),
    Method(
        "bounded-slope",
        "the best gentle correction (slope between 0 and 2): gains at least the squared smooth error",
        "Błasiok, Gopalan, Hu & Nakkiran 2023",
        curves.bounded_slope,
        mean_kept=True,
        keeps_calibrated=True,
    ),
    Method(
        "histogram",
        "the outcome rate of bins of equal mass, with limits that hold for all bins at once",
        "Zadrozny & Elkan 2001; Gupta & Ramdas 2021",
        binning.histogram,
        monotone=False,
        guarantee="all bins within a stated tolerance of their true rates, at a stated confidence",
        smallest_n=2,
        symmetric=False,
    ),
    Method(
        "scaling-binning",
        "Platt, then the mean of its output in bins of equal mass: few values, small error",
        "Kumar, Liang & Ma 2019",
        binning.scaling_binning,
        needs_both_outcomes=True,
        symmetric=False,
    ),
    _of_classes(
        "vector",
        "several classes: a slope and an intercept per class, shrunk toward one temperature",
        "Guo, Pleiss, Sun & Weinberger 2017",
        fit_classes=classes.vector,
    ),
    _of_classes(
        "dirichlet",
        "several classes: a full matrix of the logarithms, shrunk toward one temperature",
        "Kull et al. 2019",
        fit_classes=classes.dirichlet,
    ),
    _of_classes(
        "one-vs-rest",
        "several classes: each class against the rest by a binary method, then normalized",
        "Zadrozny & Elkan 2002",
        fit_classes=_one_vs_rest,
    ),
    _of_classes(
        "top-label",
        "several classes: the probability of the predicted class, with a map per class",
        "Gupta & Ramdas 2022",
        fit_classes=_top_label,
    ),
    _of_groups(
        "hierarchical",
        "one shift of the logit per level of every covariate, shrunk by evidence: a readable table",
        "Fellner 1986; Schall 1991; Wood & Fasiolo 2017",
        groups.hierarchical,
        auto=True,
    ),
    _of_groups(
        "patch",
        "shifts of named groups and ranges of scores, the worst first; every change is listed",
        "Hébert-Johnson, Kim, Reingold & Rothblum 2018",
        groups.patch,
        smallest_n=10,
    ),
    _of_groups(
        "boost",
        "boosted trees on covariates and logit, kept only where held-out records gain",
        "Friedman 2001; Hébert-Johnson et al. 2018; Tax et al. 2025 (MCGrad)",
        groups.boost,
        smallest_n=10,
        auto=True,
    ),
    _of_groups(
        "augment",
        "a model refitted with its own prediction as a column, three times; for reproduction",
        "Appendix E of the paper on measuring multi-calibration",
        groups.augment,
        needs_both_outcomes=False,
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
