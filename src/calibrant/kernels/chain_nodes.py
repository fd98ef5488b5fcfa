"""Which nodes the chain program of the lower distance is solved on: few first, then where they are needed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.kernels.chain_bounds import ChainLevels, Floats, Ints
from calibrant.kernels.chain_certificates import Violation

QUANTILES = 2_048  # values that long data are first cut at
WIDEST = 1.0 / 2_048  # gap between the nodes of long data: the constraint bends by less than 1e-7 in it
CUTS_PER_GAP = 64
PLACES = 16  # levels, spread evenly, that one quantile is chosen from


class NodeChoice(NamedTuple):
    """Nodes at `cuts` and at a number of `quantiles` of the levels; none closer than half the `spacing`."""

    cuts: Floats
    quantiles: int
    spacing: float
    widest: float

    def finer(self, nodes: Floats, over: Violation, tolerance: float, apart: float) -> NodeChoice:
        """Return a better choice, where bounds are `apart` and the potentials rise above zero by `over`."""
        choice = self._replace(cuts=_cut(nodes, over.per_gap, self.cuts, tolerance))
        apart -= max(over.worst, 0.0)
        if apart <= tolerance / 2:
            return choice
        share = min(1.0, max(0.4 * tolerance / apart, 1e-3))  # not the cuts: too few nodes
        return choice._replace(quantiles=int(self.quantiles / share), spacing=share * self.spacing)


def first_choice(levels: ChainLevels, tolerance: float) -> NodeChoice:
    """Return the nodes to begin with: all levels of short data, quantiles of long data."""
    spacing = min(tolerance / 8, 1.0 / 128)
    if len(levels.values) > 4 * QUANTILES:
        return NodeChoice(np.array([0.0, 1.0]), QUANTILES, spacing, WIDEST)
    return NodeChoice(np.linspace(0.0, 1.0, 65), len(levels.values), spacing, 1.0)


def chosen_nodes(levels: ChainLevels, choice: NodeChoice, limit: int) -> tuple[Floats, bool]:
    """Return the nodes from 0 to 1, and whether `limit` kept others out."""
    full = False
    while True:
        values = spaced_values(_quantiles(levels, choice.quantiles), choice.spacing)
        nodes = spaced_values(_filled(np.union1d(choice.cuts, values), choice.widest), choice.spacing)
        nodes[-1] = 1.0
        if len(nodes) <= limit:
            return nodes, full
        fewer = min(choice.quantiles, len(levels.values))
        choice = choice._replace(spacing=1.25 * choice.spacing, quantiles=max(int(fewer / 1.25), 2))
        full = True


def _quantiles(levels: ChainLevels, count: int) -> Floats:
    """Return levels that cut the weight into about `count` equal parts; all, where there are no more."""
    if count >= len(levels.values):
        return levels.values
    firsts = np.arange(0, len(levels.values), 1 + len(levels.values) // (PLACES * count))
    below = np.cumsum(np.add.reduceat(levels.weights, firsts))
    at = np.searchsorted(below, np.arange(1, count) * (below[-1] / count))
    cut: Floats = levels.values[firsts[np.unique(np.minimum(at, len(firsts) - 1))]]
    return cut


def _filled(nodes: Floats, widest: float) -> Floats:
    """Cut every gap wider than `widest` into equal parts that are not."""
    pieces = np.ceil(np.diff(nodes) / widest).astype(int)
    wide = np.flatnonzero(pieces > 1)
    return np.union1d(nodes, _inner(nodes, wide, pieces[wide]))


def _inner(nodes: Floats, gaps: Ints, pieces: Ints) -> Floats:
    """Return the points that cut each of some gaps, by number, into equal pieces."""
    left = np.repeat(gaps, pieces - 1)
    step = np.concatenate([np.empty(0), *(np.arange(1, p) / p for p in pieces)])
    cuts: Floats = nodes[left] + step * (nodes[left + 1] - nodes[left])
    return cuts


def spaced_values(values: Floats, spacing: float) -> Floats:
    """Keep at most one value per cell of width `spacing`, and no two closer than half of it."""
    if spacing * len(values) > 1:  # fewer cells than values: look each cell up
        first = np.searchsorted(values, np.arange(0.0, values[-1] + spacing, spacing))
        kept = values[np.unique(first[first < len(values)])]
    else:
        cell = np.floor(values / spacing)
        kept = values[np.concatenate([[True], cell[1:] != cell[:-1]])]
    apart: Floats = kept[np.concatenate([[True], np.diff(kept) >= spacing / 2])]
    return apart


def _cut(nodes: Floats, per_gap: Floats, cuts: Floats, tolerance: float) -> Floats:
    """Add predictions u where the calibration constraint is broken between nodes.

    The excess is quadratic in the width of the gap, so sqrt(excess / allowed) pieces suffice.
    """
    bad = np.flatnonzero(per_gap > tolerance / 4)
    pieces = np.minimum(np.ceil(np.sqrt(per_gap[bad] / (tolerance / 4))) + 1, CUTS_PER_GAP).astype(int)
    return np.union1d(cuts, _inner(nodes, bad, pieces))
