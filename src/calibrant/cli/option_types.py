"""What the values of options may be, how they are read and how the shell completes them."""

from __future__ import annotations

import csv
from typing import Any

import click

from calibrant.measures.registry.lookup import measures


class Name(click.ParamType):  # type: ignore[type-arg] # generic from click 8.4 on
    """The name of a column: any text that is not blank; columns of the files typed complete in the shell."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name as it is."""
        if not str(value).strip():
            self.fail(f"{value!r} is an empty name", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the columns whose names begin so."""
        from calibrant.cli.completion import columns_typed, starting_with

        return starting_with(incomplete, columns_typed(ctx))


class NameList(click.ParamType):  # type: ignore[type-arg]
    """Several names with commas between them; quotes around a name that has a comma itself."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Split the text as a line of CSV; a list (of a TOML file) is taken as it is."""
        if isinstance(value, (list, tuple)):
            cells = list(value)
        else:
            cells = self._split(str(value), param, ctx)
        names = [cell.strip() for cell in cells]
        if not names or not all(names):
            self.fail(f"{value!r} has an empty name in it", param, ctx)
        return names

    def _split(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        try:
            return next(csv.reader([text], skipinitialspace=True), [])
        except csv.Error:
            self.fail(f"{text!r} needs quotes around a name that has a line break", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the columns whose names begin so; after a comma the next one."""
        from calibrant.cli.completion import columns_typed, next_of_list

        return next_of_list(incomplete, columns_typed(ctx))


class MeasureNames(NameList):
    """Names of measures, which complete in the shell."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the measures whose names begin so; after a comma the next one."""
        from calibrant.cli.completion import next_of_list

        return next_of_list(incomplete, measures())


class MeasureName(Name):
    """The name of a measure, which completes in the shell."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the measures whose names begin so."""
        from calibrant.cli.completion import starting_with

        return starting_with(incomplete, measures())


class Limit(MeasureName):
    """MEASURE=LIMIT, taken apart by whoever holds the limits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the measures whose names begin so, ready for the limit."""
        from calibrant.cli.completion import starting_with

        return [] if "=" in incomplete else starting_with(incomplete, (f"{name}=" for name in measures()))


class MethodName(Name):
    """The name of a recalibration method, which completes in the shell."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the methods whose names begin so."""
        from calibrant.cli.completion import starting_with
        from calibrant.recalibration.table import recalibrations

        return starting_with(incomplete, ["auto", *recalibrations()])


class Thresholds(click.ParamType):  # type: ignore[type-arg]
    """Several numbers with commas between them."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        """Read the numbers; a list (of a TOML file) is taken as it is."""
        cells = value if isinstance(value, (list, tuple)) else str(value).split(",")
        try:
            return [float(cell) for cell in cells]
        except (TypeError, ValueError):
            self.fail(f"{value!r} must be numbers with commas between them, such as 0.1,0.2", param, ctx)
