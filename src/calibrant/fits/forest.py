"""Trees as tables, ready for JSON: the sum of their leaves for any rows, and how they are to be grown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError
from calibrant.kernels.forest import forest_sums
from calibrant.results import Array

MAX_CODES = 2**24  # of a category: a question holds a bit for each
MACHINE_CODE_ABOVE = 5_000  # walks down a tree, from which compiling repays


@dataclass(frozen=True, slots=True)
class Node:
    """A leaf (`feature` -1) with its value, or a question about one feature.

    A number goes left where it is at most `threshold`; a category where its code is among `codes`. What is
    missing goes where `missing_left` says.
    """

    feature: int
    left: int
    right: int
    missing_left: bool
    threshold: float
    codes: tuple[int, ...] | None
    value: float

    @classmethod
    def leaf(cls, value: float) -> Node:
        return cls(-1, -1, -1, False, 0.0, None, value)

    def to_dict(self) -> dict[str, Any]:
        if self.feature < 0:
            return {"value": self.value}
        question = {"codes": list(self.codes)} if self.codes is not None else {"at_most": self.threshold}
        missing = "left" if self.missing_left else "right"
        return {
            "feature": self.feature,
            **question,
            "left": self.left,
            "right": self.right,
            "missing": missing,
        }

    @classmethod
    def from_dict(cls, item: Mapping[str, Any]) -> Node:
        try:
            if "value" in item:
                return cls.leaf(float(item["value"]))
            codes = tuple(map(int, item["codes"])) if "codes" in item else None
            threshold = 0.0 if codes is not None else float(item["at_most"])
            left, right, missing = int(item["left"]), int(item["right"]), item["missing"] == "left"
            return cls(int(item["feature"]), left, right, missing, threshold, codes, 0.0)
        except (KeyError, TypeError, ValueError, AttributeError):
            rule = "must be a leaf or a question"
            raise InvalidInputError("a node", rule, f"got {item!r}") from None


Tree = Sequence[Node]  # the root first; children are places in this sequence


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees whose leaves add up."""

    trees: tuple[Tree, ...]

    def __len__(self) -> int:
        return len(self.trees)

    def filled(self, count: int) -> Forest:
        """Return `count` trees: those that are missing because growth ended early add nothing."""
        return Forest((*self.trees, *[(Node.leaf(0.0),)] * (count - len(self))))

    def predict(self, rows: Array) -> Array:
        if not self.trees:
            return np.zeros(len(rows))
        return self.staged(rows, len(self))[:, -1]

    def staged(self, rows: Array, every: int) -> Array:
        """Return the sums after `every`, 2 `every`, ... trees, one column each."""
        sums = np.zeros((len(rows), len(self) // every))
        if len(rows) * len(self) >= MACHINE_CODE_ABOVE:
            forest_sums.compile_now()
        nodes, thresholds, values, bits, roots = self._arrays
        given = np.ascontiguousarray(rows, dtype=np.float64)
        forest_sums(given, nodes, thresholds, values, bits, roots, every, sums)
        return sums

    @cached_property
    def _arrays(self) -> tuple[npt.NDArray[Any], ...]:
        roots = np.cumsum([0, *(len(tree) for tree in self.trees)])
        nodes = [node for tree in self.trees for node in tree]
        table = np.zeros((len(nodes), 6), dtype=np.int64)
        below = np.repeat(roots[:-1], np.diff(roots))
        table[:, 0] = [node.feature for node in nodes]
        table[:, 1] = [node.left for node in nodes] + below
        table[:, 2] = [node.right for node in nodes] + below
        table[:, 3] = [node.missing_left for node in nodes]
        words, at = [np.zeros(0, dtype=np.uint64)], 0
        for k, node in enumerate(nodes):
            if node.codes is not None:
                words.append(np.zeros(max(node.codes, default=0) // 64 + 1, dtype=np.uint64))
                for code in node.codes:  # a bit for each
                    words[-1][code // 64] |= np.uint64(1) << np.uint64(code % 64)
                table[k, 4], table[k, 5] = at, len(words[-1])
                at += len(words[-1])
        thresholds = np.array([node.threshold for node in nodes])
        values = np.array([node.value for node in nodes])
        return table, thresholds, values, np.concatenate(words), roots[:-1].astype(np.int64)

    def to_list(self) -> list[list[dict[str, Any]]]:
        return [[node.to_dict() for node in tree] for tree in self.trees]

    @classmethod
    def from_list(cls, trees: Sequence[Sequence[Mapping[str, Any]]], features: int) -> Forest:
        forest = cls(tuple(tuple(Node.from_dict(item) for item in tree) for tree in trees))
        for k, tree in enumerate(forest.trees):
            if not _is_tree(tree, features):
                raise InvalidInputError(f"tree {k}", "must be a table of nodes, root first")
        return forest


def _is_tree(tree: Tree, features: int) -> bool:
    """Return whether children come after their parents, so that every walk ends, and numbers make sense."""
    for place, node in enumerate(tree):
        if node.feature < 0:
            if node.feature != -1 or not np.isfinite(node.value):
                return False
            continue
        inside = place < node.left < len(tree) and place < node.right < len(tree)
        sensible = node.feature < features and not np.isnan(node.threshold)
        codes = node.codes or (0,)
        if not (inside and sensible and min(codes) >= 0 and max(codes) < MAX_CODES):
            return False
    return len(tree) > 0


@dataclass(frozen=True, slots=True)
class TreeParams:
    """How trees grow; the columns in `categorical` hold codes of categories, NaN is missing everywhere.

    `scattered` trees draw one threshold per column at random. Greedy trees hardly ever ask about two columns
    that say nothing one by one and much together.
    """

    categorical: tuple[int, ...] = ()
    trees: int = 400
    learning_rate: float = 0.03
    leaves: int = 15
    smallest_leaf: int = 100
    ridge: float = 10.0
    seed: int = 1
    scattered: bool = False
