"""assert_calibrated: the gate as one line of a test suite."""

from __future__ import annotations

from collections.abc import Mapping

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.evaluation.gate import DRAWS, Finding, judge
from calibrant.forecasts import Forecasts
from calibrant.measures.registry.calling import of_rows
from calibrant.measures.registry.lookup import measures
from calibrant.numerals import counted
from calibrant.options import confidence_or_none, number, whole_number
from calibrant.seeds import check_drawing, recorded_seed


@of_rows
def assert_calibrated(
    forecasts: Forecasts,
    *,
    max: Mapping[str, float],
    confidence: float = 0.95,
    fewest: int | None = None,
    draws: int = DRAWS,
    seed: int | None = None,
) -> list[Finding]:
    """Raise AssertionError unless every limit is surely kept; for test suites.

    The rules are those of ``calibrant check``: a limit is kept, or broken, when the whole confidence interval
    lies on one side of it. Undecided limits fail here too, and the message says that more data are needed.

    Parameters
    ----------
    forecasts
        Outcomes, predictions and weights (``y_true, y_prob, sample_weight=``), Forecasts alone, or a frame
        with ``outcome=``, ``prediction=`` and ``weight=``.
    max
        Largest value allowed per measure; of a signed measure, the largest distance from its ideal.
    confidence
        How sure a verdict must be; 0 compares the plain values.
    fewest
        Fewer records than that decide nothing; 20 by default, 1 with confidence 0.
    draws, seed
        Simulations, and the seed of everything random.

    Returns
    -------
    list of Finding
        One per limit, all of them passed.

    Examples
    --------
    >>> y, p = [0, 0, 0, 1] * 500, [0.25] * 2000
    >>> [finding.outcome for finding in assert_calibrated(y, p, max={"smooth": 0.05}, seed=1)]
    ['pass']
    >>> assert_calibrated(y, [0.5] * 2000, max={"smooth": 0.05}, seed=1)
    Traceback (most recent call last):
    ...
    AssertionError: 1 of 1 limit not kept (2,000 records, seed 1)
    smooth: broken: 0.250, approximately between 0.232 and 0.268 at confidence 0.95: above the limit 0.05
    """
    if not isinstance(max, Mapping) or not max:
        raise InvalidInputError(
            sentence("max", "must map measures to limits", f"got {max!r}", 'max={"smooth": 0.02}')
        )
    for name, limit in max.items():
        if name not in measures():
            raise reject_name("measure of max", name, list(measures()))
        if number(f"limit of {name!r}", limit) < 0:
            raise InvalidInputError(
                sentence(f"limit of {name!r}", "must be a number from 0", f"got {limit!r}")
            )
    confidence_or_none("confidence", confidence)
    if fewest is not None:
        whole_number("fewest", fewest, 1)
    check_drawing(draws, seed, None)
    used = recorded_seed(seed)
    findings = judge(forecasts, max, confidence=confidence, draws=draws, seed=used, fewest=fewest)
    wrong = [finding for finding in findings if finding.outcome != "pass"]
    if wrong:
        words = {"fail": "broken", "unclear": "undecided"}
        lines = [f"{finding.name}: {words[finding.outcome]}: {finding.reason}" for finding in wrong]
        data = f"{counted(forecasts.n, 'record')}, seed {used}"
        head = f"{len(wrong)} of {counted(len(findings), 'limit')} not kept ({data})"
        raise AssertionError("\n".join([head, *lines]))
    return findings
