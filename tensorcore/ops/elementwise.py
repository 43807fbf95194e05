"""Elementwise ops: arithmetic, powers and exponentials."""
from __future__ import annotations

from tensorcore.ops import samples
from tensorcore.ops.define import same
from tensorcore.ops.kinds import COMPLEX, FLOATING, NUMBERS, REAL, elementwise

add_ = elementwise("add", "input other", "Sum of two tensors, element by element.",
    grads=dict(input=same, other=same), operator="add", samples=samples.pair)
sub = elementwise("sub", "input other", "Difference.", grads=dict(input=lambda g: g, other=lambda g: -g), operator="sub", samples=samples.pair)
mul = elementwise("mul", "input other", "Product of two tensors, element by element.",
    grads=dict(input=lambda g, other: g * other, other=lambda g, input: g * input), operator="mul", samples=samples.pair)
div = elementwise("div", "input other", "Quotient.", gives="float",
    grads=dict(input=lambda g, other: g / other, other=lambda g, out, other: -g * out / other), operator="truediv", samples=samples.pair)
neg = elementwise("neg", "input", "Negative", grads=dict(input=lambda g: -g), operator="neg", samples=samples.unary)
exp = elementwise("exp", "input", "Exp", gives="float", grads=dict(input=lambda g, out: g*out), samples=samples.unary)
gt = elementwise("gt", "input other", "Greater", gives="bool", takes=REAL, operator="gt", samples=samples.pair)
ne = elementwise("ne", "input other", "Greater", gives="bool", operator="ne", samples=samples.pair)
relu = elementwise("relu", "input", "relu", takes=REAL, grads=dict(input=lambda g, out: g * (out > 0)), samples=samples.unary)
