"""Random signs per cluster, written as the definition reads: one loop per draw, one per record."""

from __future__ import annotations

import itertools


def kuiper(residuals):
    """The largest absolute sum of residuals over an interval."""
    n = len(residuals)
    return max((abs(sum(residuals[i:j])) for i in range(n) for j in range(i + 1, n + 1)), default=0.0)


def all_patterns(clusters):
    """Every assignment of a sign to each cluster."""
    names = sorted(set(clusters))
    for signs in itertools.product((1.0, -1.0), repeat=len(names)):
        yield dict(zip(names, signs, strict=True))


def values_of_patterns(residuals, clusters, statistic=kuiper):
    """The statistic of the residuals under every pattern of signs."""
    return [
        statistic([signs[c] * r for r, c in zip(residuals, clusters, strict=True)])
        for signs in all_patterns(clusters)
    ]


def level_sums(residuals, levels, clusters, signs, width):
    """The signed residuals of each level."""
    sums = [0.0] * width
    for r, level, c in zip(residuals, levels, clusters, strict=True):
        sums[level] += signs[c] * r
    return sums
