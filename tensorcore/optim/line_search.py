"""A line search for quasi-Newton steps: a point where the strong Wolfe conditions hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["strong_wolfe"]


class Point(NamedTuple):
    """What is known at one length along the direction: the value, the gradient, the slope."""

    t: float
    value: float
    gradient: Any
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], tuple[float, Any]],
    t: float,
    d: Any,
    value: float,
    gradient: Any,
    slope: float,
    *,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance: float = 1e-9,
    most: int = 25,
) -> tuple[float, Any, float, int]:
    """Bracket a good point, then zoom in (Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6).

    Args:
        evaluate: gives value and gradient at a length along ``d``.
        t: the first length to try.
        value, gradient, slope: at length 0.
        c1, c2: how much the value must fall, and how flat the slope must be, for a point to be good.
        tolerance: the least width of a bracket.
        most: how often to interpolate.

    Returns:
        Value, gradient, length, and the number of evaluations.
    """

    def at(t: float) -> Point:
        value, gradient = evaluate(t)
        return Point(t, value, gradient, gradient.dot(d).item())

    def too_high(one: Point) -> bool:
        return one.value > value + c1 * one.t * slope

    def flat(one: Point) -> bool:
        return abs(one.slope) <= -c2 * slope

    start = Point(0.0, value, gradient.clone(), slope)
    before, here, count, rounds = start, at(t), 1, 0
    bracket: list[Point] | None = None
    while rounds < most:
        if too_high(here) or (rounds > 1 and here.value >= before.value):
            bracket = [before, here]
            break
        if flat(here):
            return here.value, here.gradient, here.t, count
        if here.slope >= 0:
            bracket = [before, here]
            break
        longer = _cubic(before, here, here.t + 0.01 * (here.t - before.t), here.t * 10)
        before, here = here, at(longer)
        count, rounds = count + 1, rounds + 1
    if bracket is None:
        bracket = [start, here]

    width = d.abs().max().item()
    stuck = False
    low, high = (0, 1) if bracket[0].value <= bracket[1].value else (1, 0)
    while rounds < most and abs(bracket[1].t - bracket[0].t) * width >= tolerance:
        left, right = min(one.t for one in bracket), max(one.t for one in bracket)
        t = _cubic(*bracket, left, right)
        # A point that stays near one end makes no progress: the second time, go a tenth of the way in.
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        here = at(t)
        count, rounds = count + 1, rounds + 1
        if too_high(here) or here.value >= bracket[low].value:
            bracket[high] = here
            low, high = (0, 1) if bracket[0].value <= bracket[1].value else (1, 0)
            continue
        done = flat(here)
        if not done and here.slope * (bracket[high].t - bracket[low].t) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = here
        if done:
            break
    best = bracket[low]
    return best.value, best.gradient, best.t, count


def _cubic(a: Point, b: Point, left: float, right: float) -> float:
    """The minimum of the cubic through two points with their slopes, within bounds (Nocedal and Wright, 3.59)."""
    if a.t > b.t:
        a, b = b, a
    if a.t == b.t:
        return min(max(a.t, left), right)
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (left + right) / 2.0
    d2 = square**0.5
    below = b.slope - a.slope + 2 * d2
    return min(max(b.t - (b.t - a.t) * ((b.slope + d2 - d1) / below), left), right) if below else (left + right) / 2.0
