"""Trees as tables, ready for JSON: the sum of their leaves for any rows, and how they are to be grown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError
from calibrant.kernels.fits import forest_sums
from calibrant.results import Array

MAX_CODES = 2**24  # of a category: a question holds a bit for each
MACHINE_CODE_ABOVE = 5_000  # walks down a tree, from which compiling pays off


# Nodes are as files have them. A leaf has a "value". A question has the number of a "feature", the places of
# its "left" and "right" child, and where "missing" goes; a number goes left where it is "at_most" a
# threshold, a category where its code is among "codes".
Node = Mapping[str, Any]
Tree = Sequence[Node]  # the root first


@dataclass(frozen=True, eq=False)
class Forest:
    trees: tuple[Tree, ...]

    def __len__(self) -> int:
        return len(self.trees)

    def filled(self, count: int) -> Forest:
        """Return `count` trees: those that are missing because growth ended early add nothing."""
        return Forest((*self.trees, *[({"value": 0.0},)] * (count - len(self))))

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
        for column, name in enumerate(("feature", "left", "right")):
            table[:, column] = [node.get(name, -1) for node in nodes]
        table[:, 1:3] += below[:, None]
        table[:, 3] = [node.get("missing") == "left" for node in nodes]
        words, at = [np.zeros(0, dtype=np.uint64)], 0
        for k, node in enumerate(nodes):
            if "codes" in node:
                words.append(np.zeros(max(node["codes"], default=0) // 64 + 1, dtype=np.uint64))
                for code in node["codes"]:  # a bit for each
                    words[-1][code // 64] |= np.uint64(1) << np.uint64(code % 64)
                table[k, 4], table[k, 5] = at, len(words[-1])
                at += len(words[-1])
        thresholds, values = (np.array([node.get(x, 0.0) for node in nodes]) for x in ("at_most", "value"))
        return table, thresholds, values, np.concatenate(words), roots[:-1].astype(np.int64)

    def to_list(self) -> list[list[dict[str, Any]]]:
        return [[dict(node) for node in tree] for tree in self.trees]

    @classmethod
    def from_list(cls, trees: Sequence[Sequence[Node]], features: int) -> Forest:
        """Read trees back: children come after their parents, so that every walk ends."""
        for k, tree in enumerate(trees):
            for place, node in enumerate(tree):
                if not _is_node(node, place, len(tree), features):
                    rule = "must be a table of leaves and questions, root first"
                    raise InvalidInputError(f"tree {k}", rule, f"got {node!r}")
            if not tree:
                raise InvalidInputError(f"tree {k}", "must have a root")
        return cls(tuple(tuple(tree) for tree in trees))


def _is_node(node: Any, place: int, size: int, features: int) -> bool:
    try:
        if "value" in node:
            return math.isfinite(node["value"])
        codes = node.get("codes", (0,))
        inside = place < node["left"] < size and place < node["right"] < size
        known = 0 <= node["feature"] < features and node["missing"] in ("left", "right")
        whole = all(type(item) is int for item in (node["feature"], node["left"], node["right"], *codes))
        asked = "codes" in node or not math.isnan(node["at_most"])
        return inside and known and whole and asked and all(0 <= code < MAX_CODES for code in codes)
    except (AttributeError, KeyError, OverflowError, TypeError):
        return False


@dataclass(frozen=True, slots=True)
class TreeParams:
    """How trees grow; the columns in `categorical` hold codes of categories, NaN is missing everywhere.

    `scattered` trees draw thresholds at random: greedy ones miss two columns that matter only together.
    """

    categorical: tuple[int, ...] = ()
    trees: int = 400
    learning_rate: float = 0.03
    leaves: int = 15
    smallest_leaf: int = 100
    ridge: float = 10.0
    seed: int = 1
    scattered: bool = False
