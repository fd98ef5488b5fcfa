"""Certificates of several streams add up; states do not."""

from __future__ import annotations

from collections.abc import Iterable

from calibrant.errors import InvalidInputError, sentence
from calibrant.online.base import Stream


def total_certificate(streams: Iterable[Stream]) -> float:
    """Return a certificate for the union of several streams: the sum of theirs.

    The distance to calibration, the expected calibration error and the decision loss, times the number of
    records, of a union of streams are at most the sums over the streams.

    Parameters
    ----------
    streams : iterable
        Forecasters or calibrators that certify the same kind of error.

    Returns
    -------
    float

    Examples
    --------
    >>> from calibrant.online import DistanceForecaster
    >>> parts = [DistanceForecaster(), DistanceForecaster()]
    >>> _ = parts[0].run([1, 1, 0, 1]), parts[1].run([0])
    >>> total_certificate(parts)
    1.75
    """
    if not isinstance(streams, Iterable):
        raise InvalidInputError(sentence("streams", "must be a list", f"got {streams!r}", "write [a, b]"))
    parts = list(streams)
    for part in parts:
        if not isinstance(part, Stream) or part.certificate is None:
            rule = "must each have a certificate"
            raise InvalidInputError(sentence("streams", rule, f"got {part!r}"))
    kinds = sorted({part.certifies for part in parts})
    if len(kinds) > 1:
        rule = "must certify the same error to be added"
        raise InvalidInputError(sentence("streams", rule, f"got {' and '.join(kinds)}"))
    return float(sum(part.certificate or 0.0 for part in parts))
