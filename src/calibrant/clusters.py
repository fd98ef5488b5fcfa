"""Clusters: rows that belong together, such as the patients of a hospital or the questions on one text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.columns import cluster_labels, number_labels
from calibrant.errors import reject_rows
from calibrant.results import Array


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """The cluster of each record, numbered from 0, in the order of the records."""

    codes: npt.NDArray[np.intp]
    number: int
    name: str = "cluster"  # what sentences call a cluster: the name of the column

    @classmethod
    def of(cls, labels: npt.NDArray[Any], name: str = "cluster") -> Clusters:
        """Number the labels in sorted order, which does not depend on the order of the rows."""
        codes, number = number_labels(labels)
        return cls(codes, number, name)

    @classmethod
    def of_single_records(cls, n: int) -> Clusters:
        return cls(np.arange(n), n, "record")

    @property
    def all_single(self) -> bool:
        return self.number == len(self.codes)

    def take(self, which: npt.NDArray[Any] | slice) -> Clusters:
        """Return the clusters of some of the records, numbered again from 0."""
        found, codes = np.unique(self.codes[which], return_inverse=True)
        return Clusters(codes.reshape(-1), len(found), self.name)

    def by_content(self, *columns: npt.NDArray[Any]) -> Clusters:
        """Number the clusters by what their records hold, so that neither labels nor row order matter."""
        mixed = np.zeros(len(self.codes), dtype=np.uint64)  # a hash of each record
        for column in columns:
            mixed ^= np.add(column, 0.0, dtype=np.float64).view(np.uint64)  # -0.0 is 0
            mixed *= np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        rank = np.empty(self.number, dtype=np.intp)
        size = np.bincount(self.codes, minlength=self.number)  # records of zeros only have the hash 0
        rank[np.lexsort((size, self.total(mixed / 2.0**64)))] = np.arange(self.number)
        return Clusters(rank[self.codes], self.number, self.name)

    def total(self, terms: Array) -> Array:
        return np.asarray(np.bincount(self.codes, weights=terms, minlength=self.number), dtype=np.float64)

    def matrix(self, terms: Array, places: npt.NDArray[Any], width: int) -> Any:
        """Sum `terms` by the place of each record (its level, cell or group) and its cluster, sparse."""
        from scipy.sparse import csc_array

        # by cluster first: long rows of a level are then in order without a sort, in a third of the time
        return csc_array((terms, (places, self.codes)), shape=(width, self.number)).tocsr()


def clusters_of(labels: Any, length: int, rows: npt.NDArray[np.int64]) -> Clusters | None:
    """Number the clusters of the `rows` that are kept, among `length` labels."""
    if labels is None:
        return None
    values, gaps = cluster_labels(labels, length)
    used = np.isin(np.arange(length), rows)
    hint = "leave such rows out, or give each a label of its own"
    reject_rows("clusters", "must not be missing", values, gaps & used, hint)
    return Clusters.of(values[rows])
