"""Subpopulations taken together: what any batch of them offers, and batches of index lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibrant.cores import WORKERS, on_all_cores
from calibrant.groups.metric import SUMS, WORTH_SHARING, Curves, curves_of
from calibrant.groups.rules import Rule
from calibrant.groups.variants import Terms
from calibrant.kernels.segments import Index, Offsets, segment_curves, successive_variances


class Batch(Protocol):
    """Subpopulations that are measured together; members are positions in the global order, ascending."""

    def __len__(self) -> int: ...

    @property
    def offered(self) -> int:
        """How many there are before any look at the records, those without members among them."""

    @property
    def rules(self) -> Sequence[Rule]:
        """Who is in each, in words."""

    @property
    def lists(self) -> Lists:
        """The same with the members of each as a list."""

    def members_of(self, k: int) -> Index:
        """Return the members of subpopulation k."""

    def select(self, kept: Sequence[int]) -> Batch:
        """Return some of the subpopulations."""

    def measure(self, terms: Terms) -> Curves:
        """Return what the curve of each says."""


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Subpopulations as index lists, one after another in `members`."""

    rules: Sequence[Rule]
    members: Index
    offsets: Offsets

    @classmethod
    def of(cls, rules: Sequence[Rule], lists: Sequence[Index]) -> Lists:
        """Put index lists one after another."""
        offsets = np.concatenate(([0], np.cumsum([len(one) for one in lists]))).astype(np.int64)
        members = np.concatenate([*lists, np.empty(0, dtype=np.int32)]).astype(np.int32, copy=False)
        return cls(rules, members, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def offered(self) -> int:
        """All of these."""
        return len(self)

    def members_of(self, k: int) -> Index:
        """Return the index list of subpopulation k."""
        return self.members[self.offsets[k] : self.offsets[k + 1]]

    def select(self, kept: Sequence[int]) -> Lists:
        """Return some of the subpopulations."""
        if len(kept) == len(self):
            return self
        return Lists.of([self.rules[k] for k in kept], [self.members_of(k) for k in kept])

    @property
    def lists(self) -> Lists:
        """These."""
        return self

    def share_out(self, run: Callable[[slice], None]) -> None:
        """Call run(range) for ranges of subpopulations with about as many members, on all cores."""
        workers = 1 if len(self.members) < WORTH_SHARING else min(WORKERS, len(self))
        aims = np.linspace(0, len(self.members), workers + 1)[1:-1]
        cuts = [0, *np.searchsorted(self.offsets, aims).tolist(), len(self)]
        on_all_cores(run, map(slice, cuts[:-1], cuts[1:]))

    def measure(self, terms: Terms) -> Curves:
        """Measure every list in one pass over its members."""
        sums, ends = np.zeros((len(self), SUMS)), np.zeros((len(self), 4), dtype=np.int64)

        def run(part: slice) -> None:
            offsets = self.offsets[part.start : part.stop + 1]
            segment_curves(self.members, offsets, terms.rows, sums[part], ends[part])

        self.share_out(run)
        if terms.successive:
            sums[:, 3] = 0.0
            successive_variances(self.members, self.offsets, terms.rows, sums[:, 3])
        return curves_of(sums, ends, terms)
