"""A cheaper grouping by local search: move one item, merge two groups, split one, while that helps.

Every grouping is one way to be calibrated, so whatever the search finds is an upper bound on the cheapest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.partitions import grouping_cost

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

SWEEPS = 40
GAIN = 1e-14  # smaller gains are rounding


class _Groups:
    """Items in groups, numbered 0 to `room` - 1, the cost of each group, and its sums."""

    def __init__(self, values: Floats, weights: Floats, outcomes: Floats, group: Ints, alpha: float) -> None:
        self.values, self.weights, self.outcomes, self.alpha = values, weights, outcomes, alpha
        self.group = np.unique(group, return_inverse=True)[1].astype(np.intp)
        self.room = len(values) + 1  # one number is always free, for a group of its own
        self.refresh()

    def refresh(self) -> None:
        """Sum every group anew, so that rounding does not pile up."""
        self.weight = self._sums(self.weights)
        self.outcome = self._sums(self.outcomes)
        self.cost = self.costs(self.weight, self.outcome)

    def costs(self, weight: Floats, outcome: Floats) -> Floats:
        """Return the cost of each group if it had these sums, and so this mean, for its present members."""
        mean = np.divide(outcome, weight, out=np.zeros(self.room), where=weight > 0)
        moved = self.weights * np.abs(self.values - mean[self.group]) ** self.alpha
        return self._sums(moved)

    def _sums(self, terms: Floats) -> Floats:
        return np.bincount(self.group, terms, self.room).astype(np.float64, copy=False)

    def move_best(self, item: int) -> float:
        """Move an item to the group where it costs least, if that helps; return the gain."""
        home, w, a = self.group[item], self.weights[item], self.outcomes[item]
        weight, outcome = self.weight + w, self.outcome + a  # every group with the item added
        mean = np.clip(outcome / weight, 0.0, 1.0)
        joined = self.costs(weight, outcome) + w * np.abs(self.values[item] - mean) ** self.alpha - self.cost
        self.group[item] = self.room - 1  # out of its group, to see what is left
        rest_weight = float(self.weights @ (self.group == home))
        left = 0.0
        if rest_weight > 0:
            members = self.group == home
            rest = float(self.outcomes @ members) / rest_weight
            left = float((self.weights * np.abs(self.values - rest) ** self.alpha) @ members)
        freed = float(self.cost[home]) - left
        joined[home] = freed  # to stay costs what leaving would free
        best = int(np.argmin(joined))
        gain = freed - float(joined[best])
        self.group[item] = best if gain > GAIN else home
        if gain > GAIN:
            self.refresh_pair(int(home), best)
        return max(0.0, gain) if gain > GAIN else 0.0

    def refresh_pair(self, one: int, other: int) -> None:
        """Sum two groups anew."""
        for number in (one, other):
            members = self.group == number
            self.weight[number] = float(self.weights @ members)
            self.outcome[number] = float(self.outcomes @ members)
            mean = self.outcome[number] / self.weight[number] if members.any() else 0.0
            moved = self.weights * np.abs(self.values - mean) ** self.alpha
            self.cost[number] = float(moved @ members)
        if self.group.max() == self.room - 1:  # keep the last number free
            self.group = np.unique(self.group, return_inverse=True)[1].astype(np.intp)
            self.refresh()

    def merge_best(self) -> float:
        """Merge the two groups whose union saves most, if any does; return the gain."""
        numbers = np.flatnonzero(self.weight > 0)
        best, pair = GAIN, None
        for k, one in enumerate(numbers[:-1]):
            others = numbers[k + 1 :]
            weight, outcome = self.weight.copy(), self.outcome.copy()
            weight[others] += self.weight[one]
            outcome[others] += self.outcome[one]
            mean = outcome[others] / weight[others]
            members = self.group == one
            moved = np.abs(self.values[members][:, None] - mean[None, :]) ** self.alpha
            union = self.costs(weight, outcome)[others] + self.weights[members] @ moved
            gains = self.cost[one] + self.cost[others] - union
            if gains.max() > best:
                best, pair = float(gains.max()), (one, others[int(np.argmax(gains))])
        if pair is None:
            return 0.0
        self.group[self.group == pair[1]] = pair[0]
        self.refresh()
        return best

    def split_best(self) -> float:
        """Cut one group in two at a prediction, where that saves most, if it does; return the gain."""
        best, chosen = GAIN, None
        for number in np.flatnonzero(np.bincount(self.group, minlength=self.room) > 1):
            members = np.flatnonzero(self.group == number)
            for cut in range(1, len(members)):
                parts = (members[:cut], members[cut:])
                gain = float(self.cost[number]) - sum(self._alone(part) for part in parts)
                if gain > best:
                    best, chosen = gain, parts[1]
        if chosen is None:
            return 0.0
        self.group[chosen] = self.group.max() + 1
        self.group = np.unique(self.group, return_inverse=True)[1].astype(np.intp)
        self.refresh()
        return best

    def _alone(self, part: Ints) -> float:
        w = self.weights[part]
        mean = self.outcomes[part].sum() / w.sum()
        return float(w @ np.abs(self.values[part] - mean) ** self.alpha)


def searched_grouping(
    values: Floats, weights: Floats, outcomes: Floats, starts: list[Ints], alpha: float = 1.0
) -> tuple[float, Ints]:
    """Return the cheapest grouping that local search reaches from any of `starts`, and its cost."""
    best, chosen = np.inf, starts[0]
    for start in starts:
        groups = _Groups(values, weights, outcomes, start, alpha)
        for _ in range(SWEEPS):
            gain = sum(groups.move_best(item) for item in range(len(values)))
            if gain <= GAIN and groups.merge_best() + groups.split_best() <= GAIN:
                break
        for group in (start, groups.group):
            cost = grouping_cost(values, weights, outcomes, group, alpha)
            if cost < best:
                best, chosen = cost, group
    return best, np.unique(chosen, return_inverse=True)[1].astype(np.intp)
