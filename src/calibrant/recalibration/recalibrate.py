"""recalibrate: fit a map from predictions to better ones; load_recalibration: read a saved one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from calibrant.columns import cluster_labels, joined_columns
from calibrant.errors import (
    DROP_MISSING,
    CalibrantError,
    InvalidInputError,
    UnreadableFileError,
    reject_name,
    reject_rows,
)
from calibrant.files import parse_json
from calibrant.fits.levels import Levels
from calibrant.forecasts import Forecasts
from calibrant.formatting import pluralize
from calibrant.frames import resolve_inputs
from calibrant.groups.audit_result import Audit, Group
from calibrant.groups.rules import Rule
from calibrant.groups.search import ConfirmedRule, Search
from calibrant.inputs import NamedColumn, check_aligned, check_missing, open_share, to_array
from calibrant.parallel import recorded_seed
from calibrant.recalibration.assess import FAST, SLOW, Assessor
from calibrant.recalibration.choose import AUTO, UNCHANGED
from calibrant.recalibration.maps.base import PrevalenceMap
from calibrant.recalibration.methods.table import find_method, recalibrations
from calibrant.recalibration.registry import Fitted, Method, Report, reporting, silent
from calibrant.recalibration.result import Recalibration, RecalibrationWarning
from calibrant.recalibration.samples import (
    ClassRecords,
    RowSample,
    Sample,
    class_records,
    probabilities_of_logits,
    rows_of,
    sample_of,
)
from calibrant.recalibration.storage import FitFacts
from calibrant.records import Missing, ValidRows, check_records, warn_if_swapped


def rules_of(groups: Any) -> tuple[Rule, ...]:
    kinds = Rule | Group | ConfirmedRule
    items: Any = [groups] if isinstance(groups, kinds) else groups
    if isinstance(groups, Audit | Search):
        items = groups.groups if isinstance(groups, Audit) else groups.findings
    elif not isinstance(items, list | tuple) or not any(isinstance(one, kinds) for one in items):
        return ()
    rules = dict[Rule, None]()
    for item in items:
        rule = getattr(item, "rule", item)
        if not isinstance(rule, Rule):
            hint = "pass the groups of an audit, the findings of a search, or their .rule"
            must = "must be rules that can be applied to rows"
            raise InvalidInputError("groups", must, f"got {item!r}", hint)
        rules[rule] = None
    return tuple(rules)


Weights = Literal["sampling", "frequency"]

MAX_ASSESSED = 20_000  # rows with covariates that are assessed; the map is fitted to all
MIN_EACH_TO_SPLIT = 5  # records of either outcome: fewer are split by chance too often
PERFECT = (
    "A threshold on the predictions splits the outcomes perfectly. If they were made on the rows that the"
    " model was trained on, a recalibration fitted to them is wrong for new rows: use held-out predictions."
)


def recalibrate(
    y_true: Any,
    y_prob: Any = None,
    *,
    logits: Any = None,
    method: str = "auto",
    sample_weight: Any = None,
    weights: Weights = "sampling",
    covariates: Any = None,
    groups: Any = None,
    clusters: Any = None,
    classes: Any = None,
    prevalence: float | None = None,
    missing: Missing = "error",
    pos_label: Any = None,
    outcome: str | None = None,
    prediction: str | Sequence[str] | None = None,
    weight: str | None = None,
    seed: int | None = 0,
    progress: Callable[..., object] | None = None,
    **options: Any,
) -> Recalibration:
    """Fit a map that turns predictions into better calibrated ones.

    The predictions must come from rows that the model was not trained on; that cannot be seen from them.

    Parameters
    ----------
    y_true : array, Forecasts, Sketch or frame
        Outcomes 0 or 1, or fractions; a frame is passed alone, with the names of its columns.
    y_prob : array
        Predictions in [0, 1], pairs of columns whose rows sum to 1, or a column for each of several classes.
    logits : array, optional
        Logits or log-probabilities in place of y_prob, one per row or one per row and class.
    method : str
        A name of `recalibrations()`, or "auto": the simplest within one standard error of the best.
    sample_weight : array, optional
        Record weights.
    weights : {"sampling", "frequency"}
        Whether weights are rescaled to the effective number of records, or count equal records.
    covariates : mapping of columns or frame, optional
        For methods that need them. A column may be among the groups too, if it is the same there.
    groups : mapping of columns, frame, or rules, optional
        Columns whose values are groups to repair; "patch" also takes an audit, a search, or a list of their
        groups, findings or rules, on columns of `covariates`.
    clusters : array, optional
        Cluster labels (patients, races); a cluster is never split over folds.
    classes : sequence, optional
        Labels of the columns of y_prob, where they are neither 0, 1, 2, ... nor columns of a frame.
    prevalence : float, optional
        Base rate where the map will be used, if it differs from that of the records.
    missing : {"error", "drop"}
        Refuse rows with a missing value, or leave them out and count them as "dropped" in `details`.
    pos_label : label, optional
        The label that counts as 1, for two outcomes that are text, categories or -1 and 1.
    outcome, prediction, weight : str, optional
        Columns of the frame, several of `prediction` for several classes; the arguments above may name
        columns of it too.
    seed : int, optional
        Seed of the folds; None draws one. It is recorded.
    progress : callable, optional
        Called with the share of the fits that are done.
    **options
        Of the method; see `recalibrations()[method].options`.

    Returns
    -------
    Recalibration

    Examples
    --------
    >>> p = [0.2] * 4 + [0.8] * 4
    >>> y = [0, 0, 0, 1, 1, 1, 1, 0]
    >>> fitted = recalibrate(y, p, method="platt", shrink=None)
    >>> fitted.predict([0.2, 0.8]).round(6).tolist()
    [0.25, 0.75]
    """
    row = AUTO if method == "auto" else find_method(method)
    if weights not in ("sampling", "frequency"):
        raise reject_name("weights", str(weights), ["sampling", "frequency"])
    if logits is not None:
        if y_prob is not None:
            raise InvalidInputError("logits", "replace y_prob", "got both", "pass one of them")
        y_prob = probabilities_of_logits(logits)
    rules = rules_of(groups)
    given = resolve_inputs(
        y_true, y_prob, sample_weight, outcome=outcome, prediction=prediction, weight=weight,
        covariates=covariates, groups=None if rules else groups, clusters=clusters,
    )  # fmt: skip
    y_true, y_prob, sample_weight = given.y_true, given.y_prob, given.sample_weight
    names: Sequence[str] = ()
    if isinstance(y_prob, dict) and all(isinstance(column, NamedColumn) for column in y_prob.values()):
        names = list(y_prob)  # columns of a frame, one per class
        y_prob = np.column_stack([column.values for column in y_prob.values()])
    extra, used = given.extra, recorded_seed(seed)
    shape = () if y_prob is None else to_array(y_prob, "y_prob").shape
    sample: Sample
    if len(shape) == 2 and shape[1] > 2:
        of_two = {"prevalence": prevalence, "pos_label": pos_label, **extra}
        for name, value in {**of_two, "groups": rules or extra["groups"]}.items():
            if value is not None:
                hint = "name the columns with classes=" if name == "pos_label" else ""
                rule = "must be given for predictions of two classes alone"
                raise InvalidInputError(name, rule, "got it with several classes", hint)
        if row.fit_classes is None:
            hint = f"use {', '.join(name for name, one in recalibrations().items() if one.fit_classes)}"
            rule = "takes two classes only"
            raise InvalidInputError(f"method {row.name!r}", rule, "got several", hint)
        several = class_records(
            y_true, y_prob, sample_weight, classes, frequency=weights == "frequency", missing=missing,
            columns=names,
        )  # fmt: skip
        sample, dropped = several, several.dropped
    else:
        if classes is not None:
            rule = "must be given for predictions of three classes or more alone"
            raise InvalidInputError("classes", rule, f"got {classes!r}")
        sample, dropped = _sample(
            y_true, y_prob, sample_weight, extra, weights == "frequency", missing, pos_label
        )
    if rules:  # only patches can be limited to them
        if row.name != "patch":
            got = f"got method {row.name!r}"
            raise InvalidInputError("groups", "may be rules for patches only", got, 'use "patch"')
        if not isinstance(sample, RowSample) or not sample.covariates:
            hint = "pass covariates= with the columns of the rules"
            raise InvalidInputError("rules", "need covariates", "got none", hint)
        sample = replace(sample, rules=rules)
    with reporting(progress) as report:
        fitted = fit_sample(
            sample, row, options, prevalence=prevalence, weights=weights, seed=used, report=report
        )
    for note in fitted.notes:
        if note != UNCHANGED:
            warnings.warn(note, RecalibrationWarning, stacklevel=2)
    if not dropped:
        return fitted
    return replace(fitted, details=MappingProxyType({**fitted.details, "dropped": dropped}))


def fit_sample(
    sample: Sample, row: Method, options: Mapping[str, Any], *, seed: int,
    prevalence: float | None = None, weights: Weights = "sampling", report: Report = silent,
) -> Recalibration:  # fmt: skip
    several, auto = isinstance(sample, ClassRecords), row.name == "auto"
    ratio = None if prevalence is None else _odds_ratio(prevalence, sample)

    def procedure(part: Sample, report: Report = silent) -> Fitted:
        return row.fit_to(part, options, seed=seed, report=report)

    fitted, levels = procedure(sample, report), sample.levels
    moved = {} if prevalence is None else {"prevalence": float(prevalence)}
    slow, assessed = auto or row.needs_covariates or (several and row.name != "temperature"), sample
    if isinstance(sample, RowSample) and sample.covariates and slow:
        assessed = sample.drawn(MAX_ASSESSED, seed)
    ends = (levels.values <= 0) | (levels.values >= 1)
    facts = FitFacts(
        n=sample.n,
        effective_n=levels.total,
        base_rate=levels.base_rate,
        low=float(levels.values[0]),
        high=float(levels.values[-1]),
        levels=len(levels),
        at_ends=float(levels.weights[ends].sum()),
        weights=weights,
        seed=seed,
    )
    return Recalibration(
        method=row.name,
        chosen=str(fitted.details.get("chosen", row.name)),
        options=MappingProxyType({**({} if several else row.options), **options}),
        map=fitted.map if ratio is None else PrevalenceMap(ratio, fitted.map),
        fit=facts,
        notes=(*fitted.notes, *([PERFECT] if not several and _split(levels) else [])),
        details=MappingProxyType({**fitted.details, **moved}),
        sample=None if several else sample,
        assessor=Assessor(procedure, fitted.map, seed, SLOW if slow else FAST, auto, assessed, sample.n),
        columns=sample.classes if isinstance(sample, ClassRecords) else None,
        classes=sample.names if isinstance(sample, ClassRecords) else (),
    )


def _sample(
    y_true: Any, y_prob: Any, sample_weight: Any, extra: Mapping[str, Any], frequency: bool, missing: Missing,
    pos_label: Any,
) -> tuple[Sample, int]:  # fmt: skip
    further = any(column is not None for column in extra.values())
    made = getattr(y_true, "forecasts", None)  # a Sketch makes its own
    if isinstance(y_true, Forecasts) or callable(made):
        check_missing(missing=missing)
        if y_prob is not None or sample_weight is not None or further:
            rule = "must be passed alone"
            raise InvalidInputError("forecasts", rule, "got further columns")
        if pos_label is not None:
            got = f"got pos_label={pos_label!r}"
            raise InvalidInputError("forecasts", "hold outcomes of 0 and 1 already", got)
        forecasts = made() if callable(made) else y_true
        return sample_of(forecasts, frequency=frequency), forecasts.dropped
    if y_prob is None:
        raise InvalidInputError("y_prob", "must be given with y_true", "got none")
    if further:
        checked = check_records(y_true, y_prob, sample_weight, missing, pos_label=pos_label)
        warn_if_swapped(checked, y_true=y_true, y_prob=y_prob)
        return _rows(checked, extra, frequency, missing)
    forecasts = Forecasts(y_true, y_prob, sample_weight=sample_weight, missing=missing, pos_label=pos_label)
    return sample_of(forecasts, frequency=frequency), forecasts.dropped


def _rows(
    checked: ValidRows, extra: Mapping[str, Any], frequency: bool, missing: Missing
) -> tuple[Sample, int]:
    for name, column in extra.items():
        check_aligned(column, checked.labels, (name, "y_prob"))
    weight = np.full(len(checked), checked.largest) if checked.weight is None else checked.weight
    columns, named = joined_columns(extra["covariates"], extra["groups"], checked.length)
    rows = np.arange(checked.length) if checked.rows is None else checked.rows
    kept, clusters = np.ones(len(rows), dtype=bool), None
    if extra["clusters"] is not None:
        clusters, gaps = cluster_labels(extra["clusters"], checked.length)
        if missing == "error":
            inside = np.zeros_like(gaps)
            inside[rows] = True
            reject_rows("clusters", "must not be missing", clusters, gaps & inside, DROP_MISSING)
        kept = ~gaps[rows]
        if not kept.any():
            got = f"got {pluralize(len(rows), 'row')}, all without"
            raise InvalidInputError("clusters", "must have a row with a label", got)
        clusters = clusters[rows[kept]]
    sample = rows_of(
        checked.outcome[kept], checked.prediction[kept], weight[kept],
        frequency=frequency, clusters=clusters, groups=named,
        covariates={name: column[rows[kept]] for name, column in columns.items()},
    )  # fmt: skip
    return sample, checked.dropped + int(np.count_nonzero(~kept))


def _split(levels: Levels) -> bool:
    """Return whether a threshold splits outcomes, with enough of both that chance does not explain it."""
    ones = float(levels.ones.sum())
    if min(ones, levels.total - ones) < MIN_EACH_TO_SPLIT:
        return False
    return bool(levels.values[levels.rates > 0].min() > levels.values[levels.rates < 1].max())


def _odds_ratio(prevalence: float, sample: Sample) -> float:
    seen, wanted = sample.levels.base_rate, open_share("prevalence", prevalence)
    if not 0 < seen < 1:
        raise InvalidInputError("prevalence", "needs both outcomes", f"got base rate {seen:g}")
    return wanted / (1 - wanted) * (1 - seen) / seen


MAX_FILE_BYTES = 2**30


def load_recalibration(path: str | Path) -> Recalibration:
    """Read what `Recalibration.save` wrote; predictions are equal to the last bit.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Recalibration
        The map, with its assessment where that was saved.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from calibrant import recalibrate
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "map.json"
    >>> recalibrate([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8], method="isotonic").save(file)
    >>> load_recalibration(file).predict([0.5]).tolist()
    [0.5]
    """
    try:
        file = Path(path)
        if file.exists() and not file.is_file():
            got = "got a folder, device or pipe"
            raise UnreadableFileError("recalibration", "must be a file", got)
        if file.stat().st_size > MAX_FILE_BYTES:
            raise UnreadableFileError("recalibration", f"must have at most {MAX_FILE_BYTES:,} bytes")
        return Recalibration.from_dict(parse_json(file.read_text(encoding="utf-8")))
    except OSError as error:
        reason = error.strerror or str(error)
    except CalibrantError as error:
        reason = str(error).rstrip(".")
    except (ValueError, RecursionError) as error:  # not text, not JSON, or a number of thousands of digits
        text = str(error)
        reason = text if text.startswith("got ") else "got a file that is not JSON"
    raise UnreadableFileError(f"file {str(path)!r}", "must be a recalibration", reason)
