"""Programs to compile: of one kernel each, and random ones that hypothesis draws."""

import numpy as np
from hypothesis import strategies as st

import tensorcore as tc
from tensorcore.plugin import Program, Spec, Step, Value, dtypes

__all__ = ["BINARY", "COMPARED", "CPU", "UNARY", "build", "drawn", "drawn_rows", "one_step", "same_bits"]

CPU = tc.device("cpu")
UNARY = ["neg", "abs", "square", "relu", "sign", "sqrt", "rsqrt", "reciprocal", "floor", "ceil", "trunc", "round", "exp",
         "expm1", "log", "log1p", "tanh", "sigmoid", "silu", "erf", "sin", "cos", "atan", "log2", "positive", "clone"]  # fmt: skip
BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max", "atan2", "remainder"]
COMPARED = ["eq", "ne", "lt", "le", "gt", "ge"]


class build:
    """A program in the making: ``call`` writes a step down and runs its kernel.

    That is on arrays in row-major order, because some functions of NumPy's have other bits on other strides.
    """

    def __init__(self, *arrays):
        self.inputs = [Spec(one.shape, dtype_of(one)) for one in arrays]
        self.arrays = list(arrays)
        self.values = [one.copy() for one in arrays]
        self.steps = []

    def call(self, kernel, *operands, **options):
        """The number of the new value. Operands are numbers of values as ``Value``, or Python numbers."""
        given = [self.values[one.number] if isinstance(one, Value) else one for one in operands]
        with np.errstate(all="ignore"):
            made = np.asarray(CPU.kernels[kernel](*given, **options))
        self.steps.append(Step(kernel, operands, options, (Spec(made.shape, dtype_of(made)),)))
        self.values.append(made)
        return Value(len(self.values) - 1)

    def program(self, *outputs):
        """The program that answers with those values."""
        return Program(tuple(self.inputs), tuple(self.steps), outputs)


def dtype_of(array):
    """The library's dtype of an array."""
    return next(one for one in dtypes.ALL if one.numpy == array.dtype)


def one_step(kernel, *operands, **options):
    """A program of one step over arrays and numbers, the arrays, and what the kernel itself answers."""
    made = build(*[one for one in operands if isinstance(one, np.ndarray)])
    at = iter(range(len(operands)))
    value = made.call(kernel, *[Value(next(at)) if isinstance(one, np.ndarray) else one for one in operands], **options)
    return made.program(value), made.arrays, made.values[-1]


def same_bits(got, expected):
    """Dtype, shape and every bit, but for which NaN it is."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(got, expected)
    if got.dtype.kind == "f":
        sure = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[sure], np.signbit(expected)[sure])


@st.composite
def drawn(draw):
    """A random elementwise program over broadcast and strided arrays of float32 or float64, with a mask or two."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.sampled_from([(), (1,), (5,), (67,), (3000,), (4, 7), (37, 129), (3, 1, 33), (2, 3, 4, 5), (0, 3)]))
    kind = draw(st.sampled_from([np.float32, np.float64]))
    arrays = []
    for _ in range(draw(st.integers(1, 4))):
        own = [1 if draw(st.integers(0, 4)) == 0 else size for size in shape]
        own = own[draw(st.integers(0, len(own))) if draw(st.booleans()) else 0 :]
        values = random.standard_normal([2 * size for size in own]).astype(kind)
        if values.size > 6:
            values.reshape(-1)[random.integers(0, values.size, 6)] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310]
        step = draw(st.sampled_from([1, 2, -1]))
        values = values[tuple([slice(None, None, step)] * len(own))]
        values = values[tuple([slice(0, size) for size in own])]
        arrays.append(np.array(values) if draw(st.booleans()) else np.asarray(values))
    made = build(*arrays)
    floats, masks = [Value(i) for i in range(len(arrays))], []
    for _ in range(draw(st.integers(1, 14))):
        x, y = draw(st.sampled_from(floats)), draw(st.sampled_from([*floats, 2, 0.5, -1.25]))
        choice = draw(st.integers(0, 9))
        if choice < 4:
            floats.append(made.call(draw(st.sampled_from(UNARY)), x))
        elif choice < 7:
            pair = (x, y) if isinstance(y, Value) or draw(st.booleans()) else (y, x)
            name = draw(st.sampled_from(BINARY))
            floats.append(made.call(name, *(pair if not name.startswith("clamp") else (x, y))))
        elif choice == 7:
            masks.append(made.call(draw(st.sampled_from(COMPARED)), x, y))
        elif choice == 8 and masks:
            floats.append(made.call("where", draw(st.sampled_from(masks)), x, y))
        elif masks:
            floats.append(made.call("cast", draw(st.sampled_from(masks)), dtype=dtype_of(arrays[0])))
    first = len(arrays)
    every = [Value(i) for i in range(first, len(made.values))]
    last = every[-1:] or [Value(0)]
    return made, made.program(*draw(st.lists(st.sampled_from(every or last), max_size=3)), *last)


@st.composite
def drawn_rows(draw):
    """A random program of ops that lose no digits, with reductions over the last dims and what follows them."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.sampled_from([(6, 10), (3, 9000), (2, 3, 50), (20000,), (2, 2, 5000), (40, 1), (1, 7), (5, 8192)]))
    made = build(
        random.uniform(0.5, 1.5, shape), random.uniform(0.5, 1.5, shape[-1:]), random.uniform(0.5, 1.5, shape[:1])
    )
    values = [Value(0), Value(1)] + [Value(2)] * (len(shape) == 1)
    for _ in range(draw(st.integers(2, 12))):
        x = draw(st.sampled_from(values))
        choice, size = draw(st.integers(0, 9)), made.values[x.number].shape
        if choice < 3 and size:
            kept = draw(st.integers(0, len(size) - 1))
            name = draw(st.sampled_from(["mean", "amax", "amin"]))
            dims = tuple(range(kept, len(size))) if kept or draw(st.booleans()) else None
            values.append(made.call(name, x, dim=dims, keepdim=draw(st.booleans())))
        elif choice < 7:
            y = draw(st.sampled_from([*values, 0.5]))
            try:
                joint = np.broadcast_shapes(size, np.shape(made.values[y.number] if isinstance(y, Value) else y))
            except ValueError:
                continue
            if len(joint) <= len(shape) and np.prod(joint) <= 2e5:
                values.append(made.call(draw(st.sampled_from(["add", "mul", "maximum"])), x, y))
                values.append(made.call("tanh", values[-1]))
        else:
            values.append(made.call(draw(st.sampled_from(["sigmoid", "sqrt", "square", "clone"])), x))
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=4))
    return made, made.program(*outputs, values[-1])
