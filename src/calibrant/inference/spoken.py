"""Which part of the default test spoke, and what its details say in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.numerals import short

GENERAL = 0.01  # p-value from which on something is said to be wrong beside predictions of exactly 0 and 1
CLEAR = 3.0  # standard deviations from which on a bias is named where Kuiper's range spoke


def speaker(parts: Mapping[str, Any]) -> str:
    """Name the part of the default test that rejected, by its details."""
    return "certainty" if parts.get("impossible", 0.0) > 0 else _strongest(parts)


def _strongest(parts: Mapping[str, Any]) -> str:
    """Name the part with the most evidence, whatever predictions of exactly 0 and 1 say."""
    if parts.get("cox_pvalue", 1.0) >= parts.get("kuiper_pvalue", 0.0):
        return "kuiper"
    return "bias" if abs(parts["bias_z"]) >= abs(parts["slope_z"]) else "slope"


def in_words(parts: Mapping[str, Any], rejected: bool) -> str:
    """Say what is wrong if calibration is rejected, else what would have gone unseen; "" if none knows.

    >>> in_words({"cox_pvalue": 1e-4, "kuiper_pvalue": 0.01, "bias_z": 0.5, "slope_z": -4.2}, True)
    ' Overconfident: predictions are too extreme (slope z = -4.20).'
    >>> in_words({"visible_bias": 0.0731}, False)
    ' A common bias of up to 0.073 could go unseen.'
    """
    if not rejected:
        unseen = parts.get("visible_bias")
        return "" if unseen is None else f" A common bias of up to {short(unseen, 2)} could go unseen."
    if "cox_pvalue" in parts:
        return f" {_SAID[speaker(parts)](parts)}."
    return _stretch(parts) if {"predictions", "start", "stop"} <= parts.keys() else ""


def _range(parts: Mapping[str, Any]) -> str:
    """Kuiper's range sees stretches, and a bias as the longest of them."""
    if abs(parts["bias_z"]) > CLEAR:
        return _bias(parts)
    return "A stretch of predictions is wrong (Kuiper's range); evaluate says which"


def _bias(parts: Mapping[str, Any]) -> str:
    z = parts["bias_z"]
    return f"Predictions are too {'low' if z > 0 else 'high'} on the whole (bias z = {short(z)})"


def _slope(parts: Mapping[str, Any]) -> str:
    z = parts["slope_z"]
    if parts.get("upside_down"):
        return (
            "Predictions point the wrong way: the higher they are, the fewer events come "
            f"(slope z = {short(z)})"
        )
    word, what = ("Overconfident", "extreme") if z < 0 else ("Underconfident", "timid")
    return f"{word}: predictions are too {what} (slope z = {short(z)})"


def _stretch(parts: Mapping[str, Any]) -> str:
    start, stop = parts["start"], parts["stop"]
    span = f"at {start:.3g}" if start == stop else f"between {start:.3g} and {stop:.3g}"
    return f" Predictions are {parts['predictions']} {span}."


def _certainty(parts: Mapping[str, Any]) -> str:
    """Say what is wrong in general first, if anything is: a few certain predictions are not all of them."""
    never = "redictions of exactly 0 or 1 were wrong, which calibrated ones never are"
    if min(parts["kuiper_pvalue"], parts["cox_pvalue"]) > GENERAL:
        return f"P{never}"
    return f"{_SAID[_strongest(parts)](parts)}. Also, p{never}"


_SAID = {
    "certainty": _certainty,
    "kuiper": _range,
    "bias": _bias,
    "slope": _slope,
}
