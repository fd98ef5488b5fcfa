"""Colours that stay apart in colour blindness (Okabe & Ito), for light and dark, on screen and on paper."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

# Every colour is used through its name. Charts carry the light value; the page turns it into a CSS variable
# of the same name, so that dark mode and print need no second drawing.
LIGHT: Mapping[str, str] = MappingProxyType(
    {
        "ink": "#1b2733",
        "quiet": "#5d6b79",
        "grid": "#e4e8ec",
        "paper": "#ffffff",
        "band": "#c9d1d9",
        "density": "#a9b4bf",
        "model": "#0072b2",
        "second": "#d55e00",
        "third": "#00795a",
        "mark": "#f3c76b",
    }
)
DARK: Mapping[str, str] = MappingProxyType(
    {
        "ink": "#e6ebf0",
        "quiet": "#9fadba",
        "grid": "#2c3742",
        "paper": "#141b22",
        "band": "#3c4854",
        "density": "#55626f",
        "model": "#56b4e9",
        "second": "#ff9a4d",
        "third": "#3fd1a5",
        "mark": "#8a6a1f",
    }
)
_NAMES = {value: name for name, value in LIGHT.items()}


def with_variables(spec: Any) -> Any:
    """Return a chart specification in which every colour of the palette is a CSS variable.

    >>> with_variables({"mark": {"color": LIGHT["model"]}})
    {'mark': {'color': 'var(--model)'}}
    """
    if isinstance(spec, dict):
        data = ("data", "datasets")  # may hold any text, a colour among them: left alone
        return {key: item if key in data else with_variables(item) for key, item in spec.items()}
    if isinstance(spec, list):
        return [with_variables(item) for item in spec]
    return f"var(--{_NAMES[spec]})" if isinstance(spec, str) and spec in _NAMES else spec


def variables(colours: Mapping[str, str]) -> str:
    """Return the palette as CSS declarations."""
    return " ".join(f"--{name}: {value};" for name, value in colours.items())
