"""Elementwise ops: arithmetic and exponentials."""

from __future__ import annotations

from tensorcore.ops import samples
from tensorcore.ops.define import same
from tensorcore.ops.kinds import REAL, elementwise

__all__ = ["add", "div", "exp", "gt", "mul", "ne", "neg", "relu", "sub"]

add = elementwise(
    "add", "input other", "Sum of two tensors, element by element.",
    grads=dict(input=same, other=same), operator="add", samples=samples.pair,
)  # fmt: skip
sub = elementwise(
    "sub", "input other", "Difference of two tensors, element by element.",
    grads=dict(input=same, other=lambda g: -g), operator="sub", samples=samples.pair,
)  # fmt: skip
mul = elementwise(
    "mul", "input other", "Product of two tensors, element by element.",
    grads=dict(input=lambda g, other: g * other, other=lambda g, input: g * input),
    operator="mul", samples=samples.pair,
)  # fmt: skip
div = elementwise(
    "div", "input other", "Quotient of two tensors, element by element.", gives="float",
    grads=dict(input=lambda g, other: g / other, other=lambda g, out, other: -g * out / other),
    operator="truediv", samples=samples.pair,
)  # fmt: skip
neg = elementwise("neg", "input", "The negative of each element.", grads=dict(input=lambda g: -g), operator="neg",
                  samples=samples.unary)  # fmt: skip
exp = elementwise("exp", "input", "e to the power of each element.", gives="float",
                  grads=dict(input=lambda g, out: g * out), samples=samples.unary)  # fmt: skip
relu = elementwise("relu", "input", "The larger of 0 and each element.", takes=REAL,
                   grads=dict(input=lambda g, out: g * (out > 0)), samples=samples.unary)  # fmt: skip
gt = elementwise("gt", "input other", "Whether input > other, element by element.", takes=REAL, gives="bool",
                 operator="gt", writes=False, samples=samples.pair)  # fmt: skip
ne = elementwise("ne", "input other", "Whether input != other, element by element.", gives="bool",
                 operator="ne", writes=False, samples=samples.pair)  # fmt: skip
