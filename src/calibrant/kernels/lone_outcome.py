"""The nearest calibrated distribution in closed form, where one outcome stands at a single prediction.

Let all mass q of outcome 1 stand at w, and masses of outcome 0 at predictions v. A feasible pair of
potentials is a number b for outcome 1 and a number a(v) for each v with

    (1 - u) a(v) + u b <= (1 - u) |u - v| + u |u - w|    for all u in [0, 1].

For v <= w the right side is linear or concave between 0, v, w and 1, so that only those u count. For v > w it
is convex between w and v and has one tangent. With b = 1 - w - 2 t^2 the largest a(v) is explicit. The u that
is tight says where outcomes 0 of v meet outcomes 1 of w; the larger t, the less of outcome 1 is needed there.
The best t is the one at which all of them together need q.

Up to three records always look like this, or like its mirror image. A meeting point u is stored as its
distance from 1, which is the share of outcome 0 there and may be small.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

TINY = 1e-14  # ends of pieces that differ by rounding are one end


class Zeros(NamedTuple):
    """Outcomes 0 of one prediction v, and the mass of them."""

    v: float
    mass: float

    def potential(self, w: float, t: float) -> float:
        """Return the largest a(v) when b = 1 - w - 2 t^2."""
        v = self.v
        if t >= math.sqrt(1 - w):
            return v
        if v <= w:
            return min(v, -v + 2 * t * t * w / (1 - w), v * (2 * w - v - 1 + 2 * t * t) / (1 - v))
        tangent = min(max(t, 1 - v), 1 - w)
        return min(v, v - 2 + 2 * tangent + 2 * t * (1 - tangent) * (t / tangent if tangent > 0 else 1.0))

    def ends(self, w: float) -> tuple[float, ...]:
        """Return the t at which a piece of the potential ends."""
        return (math.sqrt(self.v * (1 - w)),) if self.v <= w else (1 - self.v, 1 - w)

    def meetings(self, w: float, t: float) -> tuple[float, float]:
        """Return 1 - u where the outcomes meet those of w, just below t and just above it."""
        if self.v <= w:
            (end,) = self.ends(w)
            below, above = (1 - (w if t <= end + TINY else self.v), 1 - (w if t < end - TINY else self.v))
        else:
            below = above = min(max(t, 1 - self.v), 1 - w)
        if t >= math.sqrt(1 - w) - TINY:
            above = 1.0
        return (below if t > 0 else above), above

    def needed(self, meeting: float) -> float:
        """Return how much of outcome 1 it takes to meet there."""
        return self.mass * (1 - meeting) / meeting if meeting > 0 else math.inf


class LonePlan(NamedTuple):
    """Where the outcomes go: the nodes, what each absorbs, and what all of it costs."""

    nodes: list[float]
    absorbed: list[float]
    cost: float


class LoneOutcome(NamedTuple):
    """The value that the potentials prove, the plan, and the potentials r_0 and r_1 at `corners`."""

    value: float
    plan: LonePlan
    corners: list[float]
    potentials: list[list[float]]


def lone_outcome(zeros: list[Zeros], q: float, w: float) -> LoneOutcome:
    """Solve for outcomes 0 at several predictions, ascending, and the mass q of outcome 1 at w."""
    t = _best(zeros, q, w)
    value = q * (1 - w - 2 * t * t) + sum(z.mass * z.potential(w, t) for z in zeros)
    return LoneOutcome(value, _plan(zeros, q, w, t), *_on_corners(zeros, w, t))


def _best(zeros: list[Zeros], q: float, w: float) -> float:
    """Return the t at which the meetings need q in all: inside a piece, or at an end where they jump past."""
    last = math.sqrt(1 - w)
    ends = sorted({0.0, last, *(min(end, last) for z in zeros for end in z.ends(w))})
    for low, high in pairwise(ends):
        if sum(z.needed(z.meetings(w, low)[1]) for z in zeros) <= q:
            return low
        if sum(z.needed(z.meetings(w, high)[0]) for z in zeros) < q:
            return min(max(_inside(zeros, q, w, (low + high) / 2), low), high)
    return last


def _inside(zeros: list[Zeros], q: float, w: float, middle: float) -> float:
    """Solve sliding (1 / t - 1) + fixed = q: some meetings slide along with t, the others stay."""
    slides = [1 - z.v < middle < 1 - w for z in zeros]
    sliding = sum(z.mass for z, moves in zip(zeros, slides, strict=True) if moves)
    fixed = sum(
        z.needed(z.meetings(w, middle)[0]) for z, moves in zip(zeros, slides, strict=True) if not moves
    )
    return sliding / (sliding + q - fixed) if sliding > 0 else middle


def _plan(zeros: list[Zeros], q: float, w: float, t: float) -> LonePlan:
    """Return the plan that t proves best: where meetings jump at t, both sides are mixed as q needs it."""
    meetings = [z.meetings(w, t) for z in zeros]
    most, least = (sum(z.needed(m[side]) for z, m in zip(zeros, meetings, strict=True)) for side in (0, 1))
    upper = min(max((q - least) / (most - least), 0.0), 1.0) if most > least else 0.0
    absorbed, cost, used = {0.0: 0.0, 1.0: 0.0}, 0.0, 0.0
    for z, (below, above) in zip(zeros, meetings, strict=True):
        for meeting, part in ((below, upper), (above, 1 - upper)):
            u, ones = 1 - meeting, part * z.needed(meeting)
            absorbed[u] = absorbed.get(u, 0.0) + part * z.mass + ones
            cost += part * z.mass * abs(u - z.v) + ones * abs(u - w)
            used += ones
    absorbed[1.0] += max(q - used, 0.0)
    nodes = sorted(absorbed)
    return LonePlan(nodes, [absorbed[u] for u in nodes], cost + max(q - used, 0.0) * (1 - w))


def _on_corners(zeros: list[Zeros], w: float, t: float) -> tuple[list[float], list[list[float]]]:
    """Return the potentials on all of [0, 1]: the highest cone of slope 1 below each a(v), and that of b."""
    cones = [(z.v, z.potential(w, t)) for z in zeros]
    crossings = (min(max((v + x + a - b) / 2, v), x) for (v, a), (x, b) in pairwise(cones))
    corners = sorted({0.0, w, 1.0, *crossings, *(v for v, _ in cones)})
    of_zeros = [max(a - abs(u - v) for v, a in cones) for u in corners]
    return corners, [of_zeros, [1 - w - 2 * t * t - abs(u - w) for u in corners]]
