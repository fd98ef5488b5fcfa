"""audit(): for which groups are the predictions wrong? audit_table(): the same for several models."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from calibrant.clusters import Clusters, clusters_of
from calibrant.columns import Column, code_columns, named_columns
from calibrant.errors import InvalidInputError, TooFewClustersError, reject_name
from calibrant.forecasts import Forecasts
from calibrant.formatting import pluralize
from calibrant.frames import Inputs, resolve_inputs
from calibrant.groups.audit_result import Audit
from calibrant.groups.audit_sketch import refuse_with_sketch, strata_family
from calibrant.groups.family import FamilyNull, RandomWords, TestFamily
from calibrant.groups.statistics import StatisticName, Variant, VariantName
from calibrant.groups.subpopulations import (
    Lists,
    as_masks,
    combinations,
    everyone,
    masked,
    offered_combinations,
    random_paths,
)
from calibrant.inference.null import ClusterSummary
from calibrant.inputs import finite_number, whole_numbers
from calibrant.kernels.groups import segment_curves
from calibrant.metrics.lookup import HasStrata
from calibrant.parallel import Progress, recorded_seed
from calibrant.records import LABEL_HINTS, Missing, OutcomeKind, Records, ValidRows, check_records
from calibrant.results import Result

NullName = Literal["auto", "exact", "signs"]
AUDIT_DRAWS = 199  # where more could change which groups are wrong, more are made
MIN_COMPILED_WORK = 500_000  # records times subpopulations wanted, from which compiling repays
MAX_FRUITLESS_PATHS = 100  # paths in a row without a new subpopulation after which there are hardly any left


def audit(
    y_true: Any,
    y_prob: Any = None,
    *,
    groups: Any = None,
    covariates: Any = None,
    sample_weight: Any = None,
    subpopulations: int = 1000,
    min_size: int = 10,
    min_variance: float = 0.0,
    draws: int = AUDIT_DRAWS,
    seed: int | None = 0,
    depth: int = 2,
    limit: int = 10_000,
    nominal: Sequence[str] = (),
    statistic: StatisticName = "kuiper",
    variant: VariantName = "plain",
    rho: float = 0.01,
    missing: Missing = "error",
    pos_label: Any = None,
    outcome: str | None = None,
    prediction: str | None = None,
    weight: str | None = None,
    clusters: Any = None,
    null: NullName = "auto",
    progress: Progress | None = None,
) -> Audit:
    """Measure calibration in many subpopulations at once, and whether the worst is more than chance.

    The metric is M = max D_k sigma_0 / sigma_k, eq. (4) of the multi-calibration paper.

    Parameters
    ----------
    y_true, y_prob, sample_weight, missing
        Outcomes (0 or 1), predictions and weights, or Forecasts alone; rows with a gap are an "error", or
        "drop" and count them. Or a Sketch made with ``by=[...]`` alone, of whose columns `groups` may name
        some: statistics then come with bounds on the raw rows. Rows of weight 0 are left out and not counted.
    outcome, prediction, weight, pos_label
        Columns of a frame that is passed alone; `groups` and `covariates` may then name columns of it too.
        `pos_label` is the label that counts as 1, for outcomes that are text, categories or -1 and 1.
    groups, depth, limit
        A mapping of names to boolean masks, or columns (any data frame, mapping or named series) whose values
        are the groups, in combinations of up to `depth` columns; at most `limit` are tested.
    covariates, nominal, subpopulations
        Columns of which `subpopulations` groups are made along random paths of splits (Algorithm 1 of the
        paper); numbers named in `nominal` are categories. Missing values are a category, the lowest.
    min_size, min_variance
        Smaller subpopulations are counted, not tested; so are those whose total outcome would vary by less
        if calibrated: sum W^2 S (1 - S), the largest weight being 1. Where predictions are near 0 or 1, one
        event in a small group is many deviations; a `min_variance` of 5 keeps it from hiding others.
    draws, seed
        Simulated data sets for the p-values, all subpopulations seeing the same ones; 0 for none. Where other
        draws could change which groups are wrong there are more, up to 100 times as many (10 times for large
        data); groups that are still too close to 5% are reported as undecided.
    statistic
        "kuiper" for multi-calibration: residuals that add up over some interval of predictions. "mean" for
        multi-accuracy: the mean residual of each group, which is never more than its Kuiper statistic.
    variant, rho
        "plain", "proportional", "proportional-shifted", "low-prevalence" or "real"; see `Variant`. With
        rho = 0 the proportional variants weigh by 1 / prediction, and every prediction must be above 0.
    clusters, null
        Labels of rows that belong together, or the name of their column. The null is "exact" (outcomes
        drawn from the predictions) or "signs" (a random sign for the residuals of each cluster, or row);
        "auto" uses signs for clusters, censored times and real responses. Errors against their skewness (too
        few large ones, say) count for less, since the few that are missing may be chance; with too few
        records above or below their predictions there are no p-values.
    progress
        Called with the share that is done, from 0 to 1, as the work goes on.

    Returns
    -------
    Audit
        M, the worst group, and statistic, z, direction and p-value of every group.

    Examples
    --------
    >>> y = [0, 1, 1, 0, 1, 1, 1, 1, 0, 1, 0, 0]
    >>> p = [0.3, 0.3, 0.6, 0.4, 0.2, 0.3, 0.2, 0.4, 0.5, 0.6, 0.1, 0.2]
    >>> found = audit(y, p, groups={"city": ["A"] * 4 + ["B"] * 4 + ["C"] * 4}, min_size=4, seed=1)
    >>> found.worst.rule, found.worst.size, found.worst.predictions
    ('city = B', 4, 'too low')
    >>> mean = audit(y, p, groups={"city": ["A"] * 4 + ["B"] * 4 + ["C"] * 4}, min_size=4, statistic="mean")
    >>> round(mean.worst.gap, 3)
    0.725
    """
    given = resolve_inputs(
        y_true,
        y_prob,
        sample_weight,
        outcome=outcome,
        prediction=prediction,
        weight=weight,
        groups=groups,
        covariates=covariates,
        clusters=clusters,
    )
    groups, covariates = given.extra["groups"], given.extra["covariates"]
    whole_numbers(1, subpopulations=subpopulations, depth=depth, limit=limit, min_size=min_size)
    whole_numbers(0, draws=draws)
    finite_number("min_variance", min_variance, least=0)
    kind, seed = Variant(variant, rho, statistic), recorded_seed(seed)
    if outcome is None and isinstance(y_true, HasStrata):  # a Sketch
        refuse_with_sketch(
            {"y_prob": y_prob, "sample_weight": sample_weight, "pos_label": pos_label, "nominal": nominal,
             "covariates": covariates, "variant": variant, "clusters": clusters, "null": null}
        )  # fmt: skip
        family, cells = strata_family(
            y_true.strata().scaled(), groups, depth=depth, limit=limit, min_size=min_size,
            min_variance=min_variance, statistic=statistic, draws=draws, seed=seed, progress=progress,
        )  # fmt: skip
        return _result(family, kind, seed, None, cells)
    if groups is None and covariates is None:
        hint = "groups= takes masks or categorical columns, covariates= makes groups of any columns"
        raise InvalidInputError("groups or covariates", "must be given", "got neither", hint)
    if covariates is None and len(nominal):
        hint, got = "the values of groups= have no order anyway", f"got {nominal!r} and no covariates"
        raise InvalidInputError("nominal", "must name columns of covariates", got, hint)
    rows = _rows(given, missing, kind, pos_label)
    with ThreadPoolExecutor(1) as pool:  # sorting predictions and coding columns take about as long
        sorting = pool.submit(lambda: rows if isinstance(rows, Records) else Records.of(rows))
        masks = {} if groups is None else as_masks(groups, rows.length, rows.labels)
        columns = _coded(groups, rows, "groups") if masks is None else []
        split = [] if covariates is None else _coded(covariates, rows, "covariates", nominal)
    known = [*(masks or {}).values(), *(column.codes for column in columns + split)]
    records = sorting.result().break_ties(known)
    kind.check_predictions(records)
    joint, reason = _clusters(given, rows, records, null, kind, known), ""
    if draws and joint is not None and joint.all_single:
        try:
            _check_enough(joint, records, kind)
        except TooFewClustersError as few:
            draws, reason = 0, f"{few.subject} {few.rule}; {few.got}"
    terms, own = kind.terms_of(records)
    columns, split = ([column.take(records.rows) for column in some] for some in (columns, split))
    offered = 1 + len(masks or {}) + offered_combinations(columns, depth)
    null_seed, path_seed = np.random.SeedSequence(seed).spawn(2)
    random_words = RandomWords(np.random.default_rng(null_seed), len(records) * draws)

    def run(count: int, progress: Progress | None = None) -> TestFamily:
        simulator = FamilyNull(records, kind, count, random_words, joint) if count else None
        dependent = None if joint is None or joint.all_single else joint
        expected = min(1 + limit, offered) + (subpopulations if split else 0)
        family = TestFamily(
            records, terms, simulator, min_size, min_variance, progress, own, dependent, expected
        )
        named = combinations(columns, depth) if columns else masked(masks or {}, records.rows)
        family.take_all(chain([everyone(len(records))], named), 1 + limit, offered)
        if split:
            _fill_from_paths(family, split, subpopulations, np.random.default_rng(path_seed))
        return family

    family = run(draws, progress)
    family.draw_until_decided(run, draws)
    return _result(family, kind, seed, _backend(groups, covariates), reason=reason)


def _clusters(
    given: Inputs,
    rows: ValidRows | Records,
    records: Records,
    null: NullName,
    kind: Variant,
    known: Sequence[npt.NDArray[Any]],
) -> Clusters | None:
    """Return what shares a random sign, in the order of the records; None for the exact null."""
    if null not in get_args(NullName):
        raise reject_name("null", null, list(get_args(NullName)))
    source, found = given.y_true, clusters_of(given.extra["clusters"], rows.length, records.rows)
    if found is None and isinstance(source, Forecasts) and source.clusters is not None:
        codes = np.zeros(rows.length, dtype=np.intp)
        codes[source.records.rows] = source.clusters.codes
        found = Clusters.of(codes[records.rows], source.clusters.name)
    follows = isinstance(source, Forecasts) and source.outcome_weighted
    dependent = found is not None and not found.all_single
    if null == "exact" and kind.real:
        hint = 'null="signs", or "auto"'
        raise InvalidInputError('null="exact"', "must come with outcomes of 0 or 1", hint=hint)
    if null == "exact" or not (null == "signs" or dependent or follows or kind.real):
        return None
    if found is None or found.all_single:  # numbered alike, so that the same signs are drawn
        found = Clusters.of_single_records(len(records))
    else:
        _check_enough(found, records, kind)
        columns = (column[records.rows] for column in known)
        found = found.by_content(records.prediction, records.outcome, records.weight, *columns)
    return found


def _check_enough(clusters: Clusters, records: Records, kind: Variant) -> None:
    columns = records.outcome, records.prediction, records.weight
    ClusterSummary.of_rows(clusters, *columns, real=kind.real, binary=not kind.real)


def _rows(given: Inputs, missing: Missing, kind: Variant, pos_label: Any) -> ValidRows | Records:
    """Check the rows, or take those behind Forecasts, which are in order already."""
    y_true, y_prob, sample_weight = given.y_true, given.y_prob, given.sample_weight
    if not isinstance(y_true, Forecasts):
        if y_prob is None:
            raise InvalidInputError("y_prob", "must be given", "got None")
        outcomes: OutcomeKind = "real" if kind.real else "plain"
        return check_records(y_true, y_prob, sample_weight, missing, kind=outcomes, pos_label=pos_label)
    if any(one is not None for one in (y_prob, sample_weight, pos_label)):
        raise InvalidInputError("Forecasts", "hold predictions and weights already", hint="pass them alone")
    if not kind.real and not y_true.binary:
        raise InvalidInputError("outcomes", "must be 0 or 1", "got fractions", LABEL_HINTS["plain"])
    return y_true.records


def group_codes(groups: Any, length: int) -> list[npt.NDArray[Any]]:
    """Return the masks, or the codes of the columns, that groups are made of."""
    masks = as_masks(groups, length, None)
    if masks is None:
        return [column.codes for column in code_columns(groups, length, "groups")]
    return list(masks.values())


def _coded(
    columns: Any, rows: ValidRows | Records, argument: str, nominal: Sequence[str] = ()
) -> list[Column]:
    coded = code_columns(columns, rows.length, argument, nominal, rows.labels)
    return coded if rows.rows is None else [column.drop_unused_labels(rows.rows) for column in coded]


def _fill_from_paths(
    family: TestFamily, columns: list[Column], wanted: int, rng: np.random.Generator
) -> None:
    """Walk random paths until enough new subpopulations were found, or hardly any new ones come up."""
    if wanted * family.records.n >= MIN_COMPILED_WORK:
        segment_curves.compile_now()
    fruitless = 0
    for steps in random_paths(columns, family.min_size, rng):
        offered = steps[:wanted]
        for subset, rule in offered:
            subset.offered = True
            if rule is None:  # taken before
                family.too_small += len(subset.members) < family.min_size
                family.duplicates += len(subset.members) >= family.min_size
        new = [(rule, subset.members) for subset, rule in offered if rule is not None]
        batch = Lists.of([rule for rule, _ in new], [members for _, members in new])
        measured = family.take(batch, wanted) if new else 0
        wanted -= measured
        fruitless = 0 if measured else fruitless + 1
        if wanted == 0 or fruitless == MAX_FRUITLESS_PATHS:
            return


def _result(
    family: TestFamily, kind: Variant, seed: int, backend: Any, cells: int | None = None, reason: str = ""
) -> Audit:
    ranked = family.ranked()
    sigma = float(family.parts[0].sigma[0])
    ablated = max(ranked, key=lambda group: group.statistic(kind.statistic))
    return Audit(
        metric=ranked[0].metric,
        sigma=sigma,
        pvalue=min((group.pvalue for group in ranked if group.pvalue is not None), default=None),
        ablated=ablated.statistic(kind.statistic),
        ablated_group=ablated,
        groups=ranked,
        curves=family.curves(),
        not_tested=family.not_tested,
        n=family.records.n,
        dropped=family.records.dropped,
        draws=family.drawn,
        seed=seed,
        variant=kind.name,
        statistic=kind.statistic,
        backend=backend,
        lower=max(group.metric_of(group.lower, sigma) for group in ranked),
        upper=max(group.metric_of(group.upper, sigma) for group in ranked),
        cells=cells,
        null="signs" if isinstance(family.null, FamilyNull) and family.null.clusters else "exact",
        reason=reason,
    )


def _backend(*frames: Any) -> Any:
    """Return the kind of the first eager frame given; a lazy one was collected to PyArrow."""
    import narwhals as nw

    for frame in frames:
        known = nw.from_native(frame, pass_through=True)
        if isinstance(known, nw.DataFrame):
            return known.implementation
        if isinstance(known, nw.LazyFrame):
            return "pyarrow"
    return None


THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds, and twice its standard error: 0 where nothing is random."""

    value: float
    margin: float


@dataclass(frozen=True, slots=True)
class AuditedModel:
    """One model: share misclassified, Kuiper of everyone, M, max D_k, and what chance gives its group."""

    name: str
    error: Estimate
    kuiper: Estimate
    multi_calibration: Estimate
    multi_ablate: Estimate
    expectation: Estimate


@dataclass(frozen=True, slots=True, eq=False)
class AuditTable(Result):
    """Models side by side; margins are twice the standard error over seeds of the random subpopulations."""

    models: tuple[AuditedModel, ...]
    n: int
    subpopulations: int
    seeds: tuple[int, ...]
    seed: int

    def __repr__(self) -> str:
        return f"AuditTable({pluralize(len(self.models), 'model')}, n = {self.n:,}, {len(self.seeds)} seeds)"

    def __str__(self) -> str:
        width = max(12, *(len(model.name) for model in self.models)) + 2
        drawn = f"{pluralize(len(self.seeds), 'seed')} (seed {self.seed})"
        lines = [f"{pluralize(self.n, 'row')}, {pluralize(self.subpopulations, 'subpopulation')}, {drawn}"]
        lines.append(" " * 19 + "".join(f"{model.name:>{width}}" for model in self.models))
        for metric in (part.name for part in fields(AuditedModel)[1:]):
            collected = [getattr(model, metric) for model in self.models]
            lines.append(f"{metric:<19}" + "".join(f"{one.value:>{width}.4g}" for one in collected))
            if any(one.margin for one in collected):
                lines.append(
                    " " * 19 + "".join(f"{'± ' + format(one.margin, '.2g'):>{width}}" for one in collected)
                )
        return "\n".join(lines)


def audit_table(
    y_true: Any,
    models: Any,
    covariates: Any,
    *,
    seeds: int = 3,
    sample_weight: Any = None,
    subpopulations: int = 1000,
    min_size: int = 10,
    nominal: Sequence[str] = (),
    missing: Missing = "error",
    seed: int | None = 0,
) -> AuditTable:
    """Audit several models on the same records and the same random subpopulations, seed by seed.

    Parameters
    ----------
    y_true, sample_weight, missing
        Outcomes (0 or 1) and weights; rows with a gap are an "error", or "drop" them, for each model its own.
    models
        Predictions by name: a mapping, or a frame of columns.
    covariates, nominal, subpopulations, min_size
        As for `audit`.
    seeds, seed
        How many times the subpopulations are drawn again, and the seed of those seeds.

    Returns
    -------
    AuditTable

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.random(500), rng.integers(20, 80, 500)
    >>> y = rng.random(500) < p
    >>> found = audit_table(y, {"right": p, "bold": p > 0.5}, {"age": age}, subpopulations=20, seed=1)
    >>> found.models[0].kuiper.value < found.models[1].kuiper.value
    True
    """
    whole_numbers(2, seeds=seeds)
    named = named_columns(models, "models")
    if not named:
        raise InvalidInputError("models", "must have a column", "got none")
    seed = recorded_seed(seed)
    drawn = tuple(int(one) for one in np.random.SeedSequence(seed).generate_state(seeds))
    options = {"sample_weight": sample_weight, "subpopulations": subpopulations, "min_size": min_size}
    options |= {"nominal": nominal, "missing": missing, "covariates": covariates, "draws": 0}
    collected = []
    for name, prediction in named:
        audits = [audit(y_true, prediction, seed=one, **options) for one in drawn]
        records = Records.of(check_records(y_true, prediction, sample_weight, missing, kind="labels"))
        wrong = (records.prediction >= THRESHOLD) != (records.outcome > 0)
        figures: dict[str, list[float]] = {
            "error": [float(np.average(wrong, weights=records.weight))] * seeds,
            "kuiper": [one.everyone.kuiper for one in audits],
            "multi_calibration": [one.metric for one in audits],
            "multi_ablate": [one.ablated for one in audits],
            "expectation": [one.ablated_group.expected for one in audits],
        }
        estimates = {}
        for key, some in figures.items():  # with Bessel's correction as in the paper
            margin = 2.0 * float(np.std(some, ddof=1)) / seeds**0.5 if np.ptp(some) else 0.0
            estimates[key] = Estimate(float(np.mean(some)) if margin else some[0], margin)
        collected.append(AuditedModel(name, **estimates))
    return AuditTable(tuple(collected), audits[0].n, subpopulations, drawn, seed)
