"""Columns of files, one kind at a time."""

from __future__ import annotations

from calibrant.io.read import read_table


def read_columns(path, names, notation=None):
    """Return numeric columns as float64 arrays."""
    return read_table(path, names, [], notation)[0]


def read_categories(path, names, notation=None):
    """Return columns of any type."""
    return read_table(path, [], names, notation)[1]
