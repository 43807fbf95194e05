"""Compiled programs beside their steps: elementwise ones have the same bits, reductions agree to a few roundings."""

import numpy as np
import pytest
from hypothesis import given, settings

import tensorcore as tc
from tensorcore.plugin import Program, Spec, Value
from tensorcore_cpu import fused, native

from .native import awkward, layouts
from .programs import BINARY, COMPARED, CPU, UNARY, build, drawn, drawn_rows, one_step, same_bits

pytestmark = pytest.mark.usefixtures("isa")

FLOATS = ["float32", "float64"]


def compiled(program):
    """What compile answers, which has to be something."""
    kernel = CPU.compile(program)
    assert kernel is not None
    return kernel


def has_own_loop(kernel, dtype):
    """Whether a kernel in C computes in a way that no loop of a fused group has: it stays by itself."""
    return native.available() and kernel in {"float32": ("atan", "atan2", "log2"), "float64": ("sin", "cos")}[dtype]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kernel", UNARY)
def test_one_operand(kernel, dtype):
    """Over NaN, infinities, denormals, tails and strides a compiled kernel has the bits of the kernel."""
    for values in layouts(awkward(dtype, 100)).values():
        program, arrays, expected = one_step(kernel, values)
        if has_own_loop(kernel, dtype):
            assert CPU.compile(program) is None
            continue
        same_bits(compiled(program)(*arrays)[0], expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kernel", [*BINARY, *COMPARED, "logical_and", "pow", "copysign"])
def test_two_operands(kernel, dtype):
    """Arrays of one shape, rows and columns beside a matrix, numbers on either side."""
    values = awkward(dtype, 100)
    matrix, other = values.reshape(10, 10), values[::-1].reshape(10, 10)
    pairs = [(matrix, other), (matrix, other.T), (matrix, other[0]), (matrix[:, :1], other), (matrix.T, other[:, 2:3]),
             (matrix[3, 3:4].reshape(()), other)]  # fmt: skip
    if kernel not in ("pow", "logical_and"):
        pairs += [(matrix, 2.5), (matrix, 3)] + [(0.5, matrix)] * (not kernel.startswith("clamp"))
    for pair in pairs:
        program, arrays, expected = one_step(kernel, *pair)
        if has_own_loop(kernel, dtype):
            assert CPU.compile(program) is None
            continue
        same_bits(compiled(program)(*arrays)[0], expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kernel", ["exp", "log", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh"])
def test_functions_within_a_chain(kernel, dtype):
    """Between cheap steps a function has the bits of its kernel, over whole tiles, single vectors and what is left of one."""
    values = np.concatenate([awkward(dtype, 200), np.linspace(-110, 110, 463, dtype=dtype)])
    options = {"approximate": "tanh"} if kernel == "gelu_tanh" else {}
    made = build(values)
    x = made.call("mul", Value(0), 0.5)
    x = made.call(kernel.removesuffix("_tanh"), x, **options)
    x = made.call(kernel.removesuffix("_tanh"), made.call("add", x, Value(0)), **options)
    same_bits(compiled(made.program(x))(*made.arrays)[0], made.values[x.number])


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_stored_past_the_caches(dtype, monkeypatch):
    """Results too large for the caches have the same bits, also where they end, or begin, within a vector."""
    monkeypatch.setattr(fused, "_LAST_CACHE", 0)
    values = awkward(dtype, 3001)
    made = build(values, values[::-1].copy())
    x, y = Value(0), Value(1)
    product = made.call("mul", x, y)
    sum_ = made.call("add", product, y)
    power = made.call("exp", sum_)
    ends = [product, made.call("sub", made.call("neg", power), x), made.call("add", power, y)]
    kernel = compiled(made.program(*ends))
    expected = [made.values[one.number] for one in ends]
    for got, wanted in zip(kernel(*made.arrays), expected, strict=True):
        same_bits(got, wanted)
    places = [np.empty(3002, dtype)[1:] for _ in ends]
    for got, wanted in zip(kernel(*made.arrays, out=tuple(places)), expected, strict=True):
        same_bits(got, wanted)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "kernel, options",
    [("gelu", {}), ("gelu", {"approximate": "tanh"}), ("leaky_relu", {"negative_slope": 0.1}), ("elu", {}), ("selu", {}),
     ("celu", {"alpha": 0.7}), ("softplus", {"beta": 2.0, "threshold": 20.0}), ("mish", {}), ("log_sigmoid", {})],
)  # fmt: skip
def test_activations(kernel, options, dtype):
    """Kernels with options, and their numbers."""
    if kernel in ("elu", "selu", "celu") and not native.available():
        pytest.skip("composed where there is no kernel in C")
    values = awkward(dtype, 100)
    program, arrays, expected = one_step(kernel, values, **options)
    same_bits(compiled(program)(*arrays)[0], expected)


@pytest.mark.parametrize("kernel", ["gelu_backward", "silu_backward", "mish_backward", "log_sigmoid_backward"])
def test_slopes(kernel):
    """Gradients of activations, with a gradient that is one number throughout too."""
    values = awkward("float32", 100)
    for g in (values[::-1], np.broadcast_to(np.float32(2), values.shape)):
        program, arrays, _ = one_step(kernel, g, values)
        same_bits(compiled(program)(*arrays)[0], CPU.kernels[kernel](g.copy(), values))


def test_powers():
    """Exponents for which a product is exact, and others."""
    values = awkward("float32", 100)
    for exponent in (2, 3, 0.5, -1, -0.5, -2, 1.7, 0, -3.0):
        program, arrays, expected = one_step("pow", values, exponent)
        same_bits(compiled(program)(*arrays)[0], expected)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "bool"])
def test_integers_and_bools(dtype):
    """Sums, products, comparisons and choices of them; casts from them and to them."""
    values = awkward(dtype, 100)
    for kernel in ("add", "mul", "maximum", "bitwise_xor", "eq", "logical_or"):
        program, arrays, expected = one_step(kernel, values, values[::-1])
        same_bits(compiled(program)(*arrays)[0], expected)
    for to in ("float32", "int64", "bool"):
        program, arrays, expected = one_step("cast", values, dtype=getattr(tc, to))
        same_bits(compiled(program)(*arrays)[0], expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_round_after_each_step(dtype):
    """As the kernels do, one by one."""
    kind = getattr(tc, dtype).numpy
    made = build(awkward(np.float32, 100).astype(kind), np.linspace(-3, 3, 100).astype(kind))
    x, y = Value(0), Value(1)
    t = made.call("exp", made.call("sub", made.call("mul", x, y), y))
    mask = made.call("gt", t, y)
    t = made.call("where", mask, t, made.call("tanh", y))
    got, chosen = compiled(made.program(t, mask))(*made.arrays)
    assert got.dtype == kind
    np.testing.assert_array_equal(got.astype(np.float32), made.values[t.number].astype(np.float32))
    same_bits(chosen, made.values[mask.number])


@given(drawn())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_random_programs_have_the_bits_of_their_steps(sample):
    """Chains, masks, broadcast and strided operands, values that are read twice, several outputs."""
    made, program = sample
    if CPU.compile(program) is None:
        last = [program.steps[one.number - len(program.inputs)] for one in program.outputs]
        assert all(has_own_loop(step.kernel, step.makes[0].dtype.name) for step in last)
        return
    answers = compiled(program)(*made.arrays)
    assert len(answers) == len(program.outputs)
    for value, got in zip(program.outputs, answers, strict=True):
        same_bits(got, made.values[value.number])


@given(drawn_rows())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_random_programs_with_reductions(sample):
    """Rows short and long, values of rows beside those of elements, several reductions, one after the other."""
    made, program = sample
    for value, got in zip(program.outputs, compiled(program)(*made.arrays), strict=True):
        expected = made.values[value.number]
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def softmax_like(x, dim, keepdim=True):
    made = build(x)
    top = made.call("amax", Value(0), dim=dim, keepdim=keepdim)
    power = made.call("exp", made.call("sub", Value(0), top))
    return made, made.call("div", power, made.call("sum", power, dim=dim, keepdim=keepdim))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(7, 10), (3, 700), (2, 9000), (70001,), (1, 33000), (40, 3), (2, 5, 6), (20, 8193)])
def test_reduce_then_map_over_the_row(shape, dtype):
    """A softmax in parts, rows shorter and longer than a block, agrees with its steps to four roundings."""
    x = np.random.default_rng(8).standard_normal(shape).astype(dtype)
    made, value = softmax_like(x, (len(shape) - 1,))
    (got,) = compiled(made.program(value))(x)
    np.testing.assert_allclose(got, made.values[value.number], rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kernel", ["sum", "mean", "amax", "amin", "prod"])
@pytest.mark.parametrize("dim, keepdim", [((2,), False), ((1, 2), True), (None, False), ((0, 1, 2), True)])
def test_reductions_at_the_end(kernel, dim, keepdim, dtype):
    """What is reduced needs no array; a sum of n values is as exact as a pairwise one."""
    random = np.random.default_rng(8)
    for shape in ((5, 3, 11), (2, 3, 9001), (1, 1, 1)):
        x = random.uniform(0.999, 1.001, shape).astype(dtype)
        made = build(x, random.uniform(0.999, 1.001, shape[-1]).astype(dtype))
        last = made.call(kernel, made.call("mul", Value(0), Value(1)), dim=dim, keepdim=keepdim)
        (got,) = compiled(made.program(last))(*made.arrays)
        axes = dim if dim is None else tuple(dim)
        exact = getattr(np, kernel)(made.values[-2].astype(np.longdouble), axis=axes, keepdims=keepdim)
        places = x.size if kernel == "prod" else 2 if native.available() else np.log2(x.size) + 2
        assert (got.dtype, got.shape) == (x.dtype, np.shape(exact))
        np.testing.assert_allclose(got, exact.astype(dtype), rtol=places * np.finfo(dtype).eps)


def test_sums_of_many_values_are_exact_to_a_rounding():
    """1e6 values of alternating size, where each small one is lost when they are added in turn."""
    x = np.tile(np.array([1.0, 1e-7], np.float32), 500_000)
    made = build(x)
    total = made.call("sum", made.call("mul", Value(0), 3.0), dim=None)
    (got,) = compiled(made.program(total))(x)
    exact = float((x.astype(np.float64) * np.float32(3)).sum())
    assert abs(float(got) - exact) <= np.spacing(np.float32(exact))


def test_extremes_and_sums_with_nan_and_infinities():
    """A NaN is the result of its row, an infinity that of a sum."""
    x = np.ones((4, 9000), np.float32)
    x[1, 8500], x[2, 3], x[3, 4] = np.nan, np.inf, -np.inf
    made = build(x)
    y = made.call("mul", Value(0), 1.0)
    values = [made.call(name, y, dim=(1,)) for name in ("amax", "amin", "sum", "mean")]
    for value, got in zip(values, compiled(made.program(*values))(x), strict=True):
        np.testing.assert_array_equal(got, made.values[value.number])


def test_truth_of_rows():
    """any and all of comparisons."""
    x = np.random.default_rng(8).standard_normal((50, 300)).astype(np.float32)
    made = build(x)
    some, most = made.call("gt", Value(0), 3.2), made.call("gt", Value(0), -3.2)
    values = [made.call("any", some, dim=(1,), keepdim=False), made.call("all", most, dim=(1,), keepdim=False)]
    for value, got in zip(values, compiled(made.program(*values))(x), strict=True):
        assert 0 < made.values[value.number].sum() < 50
        same_bits(got, made.values[value.number])


def test_row_values_are_computed_once_for_each_row():
    """What follows a reduction and is as small as its result, with and without the dims that were reduced."""
    random = np.random.default_rng(8)
    for width in (6, 9000):
        x, bias = random.standard_normal((13, width)), random.standard_normal(13)
        made = build(x, bias)
        total = made.call("sum", made.call("square", Value(0)), dim=(1,), keepdim=False)
        shifted = made.call("add", made.call("sqrt", total), Value(1))
        (got,) = compiled(made.program(shifted))(*made.arrays)
        np.testing.assert_allclose(got, made.values[shifted.number], rtol=1e-15)


def test_results_can_have_places():
    """``out`` names an array or None for each output; one that is an input in the same order may be written over."""
    x, y = (np.random.default_rng(seed).standard_normal(3001).astype(np.float32) for seed in (1, 2))
    made = build(x, y)
    t = made.call("mul", Value(0), Value(1))
    u = made.call("add", t, Value(0))
    kernel, expected = compiled(made.program(t, u)), (made.values[2].copy(), made.values[3].copy())
    place = np.empty_like(x)
    answers = kernel(x, y, out=(None, place))
    assert answers[1] is place
    for got, wanted in zip(answers, expected, strict=True):
        same_bits(got, wanted)
    given = x.copy()
    answers = kernel(given, y, out=(None, given))
    assert answers[1] is given
    same_bits(given, expected[1])


def test_a_place_that_is_still_read_is_written_last():
    """An output over an input that later steps read, and over one of another order."""
    x = np.random.default_rng(1).standard_normal((30, 30)).astype(np.float32)
    made = build(x)
    t = made.call("exp", Value(0))
    u = made.call("sub", t, Value(0))
    v = made.call("mul", Value(0), 2.0)
    kernel, given = compiled(made.program(t, u, v)), x.copy()
    answers = kernel(given, out=(given, None, None))
    for value, got in zip((t, u, v), answers, strict=True):
        same_bits(got, made.values[value.number])
    given = x.copy()
    (_, _, got) = kernel(given.T, out=(None, None, given))
    same_bits(got, x.T * np.float32(2))


def test_inputs_may_be_outputs_and_outputs_may_repeat():
    """An input that is answered with is the array itself."""
    x = np.arange(5.0)
    made = build(x)
    y = made.call("add", Value(0), 1)
    got = compiled(made.program(Value(0), y, y))(x)
    assert got[0] is x
    assert got[1].tolist() == got[2].tolist() == [1, 2, 3, 4, 5]
    place = np.empty(5)
    got = compiled(made.program(y, y))(x, out=(place, None))
    assert got[1].tolist() == [1, 2, 3, 4, 5]


def test_other_arguments_than_those_specified_are_computed_as_they_are():
    """The steps run one by one where an argument has another shape, or lies out of line."""
    x = np.arange(12, dtype=np.float32)
    made = build(x)
    kernel = compiled(made.program(made.call("mul", made.call("add", Value(0), 1), 2)))
    assert kernel(x[:3])[0].tolist() == [2, 4, 6]
    raw = np.zeros(49, np.uint8)[1:]
    skewed = raw.view(np.float32)
    skewed[:] = x
    assert kernel(skewed)[0].tolist() == (2 * (x + 1)).tolist()
    with pytest.raises(TypeError):
        kernel()


def test_what_it_does_not_take():
    """Complex numbers, kernels with several results, unknown ones: None, and nothing raised."""
    spec, pair = Spec((3,), tc.complex64), Spec((3,), tc.float32)
    from tensorcore.plugin import Step

    for step, given_ in (
        (Step("view_as_real", (Value(0),), {}, (Spec((3, 2), tc.float32),)), spec),
        (Step("var_mean", (Value(0),), {"dim": None, "keepdim": False, "correction": 1.0, "root": False}, (pair, pair)), pair),
        (Step("sort", (Value(0),), {"dim": 0, "descending": False, "stable": True}, (pair, pair)), pair),
    ):  # fmt: skip
        assert CPU.compile(Program((given_,), (step,), (Value(1),))) is None


@pytest.mark.parametrize("place", [False, True])
def test_a_kernel_that_cannot_be_fused_is_called_in_between(place):
    """lgamma has no loop, a sum over the first dim is no row: what stands around them is fused all the same."""
    x = np.random.default_rng(8).uniform(0.5, 3, (40, 33)).astype(np.float32)
    made = build(x)
    t = made.call("exp", made.call("mul", Value(0), 0.5))
    t = made.call("lgamma", made.call("add", t, Value(0)))
    u = made.call("abs", made.call("sub", made.call("mul", t, 2.0), Value(0)))
    total = made.call("sum", made.call("sqrt", u), dim=(0,), keepdim=False)
    last = made.call("add", made.call("tanh", made.call("div", u, total)), made.call("square", total))
    out = (x if place else None, None) if place else None
    got = compiled(made.program(last, total))(x, out=out)
    assert not place or got[0] is x
    for value, one in zip((last, total), got, strict=True):
        np.testing.assert_allclose(one, made.values[value.number], rtol=1e-6)


def test_threads_make_no_difference():
    """The same bits on one thread and on two, sums included."""
    x = np.random.default_rng(8).standard_normal((3, 100_003)).astype(np.float32)
    made, value = softmax_like(x, (1,))
    total = made.call("sum", value, dim=None)
    kernel = compiled(made.program(value, total))
    before, found = tc.get_num_threads(), []
    try:
        for threads in (1, 2):
            tc.set_num_threads(threads)
            found.append(kernel(x))
    finally:
        tc.set_num_threads(before)
    for one, other in zip(*found, strict=True):
        same_bits(one, other)


def test_many_steps_and_many_arrays():
    """More values, inputs and outputs than there is room for on the stack."""
    arrays = [np.full((3, 5), i, np.float32) for i in range(60)]
    made = build(*arrays)
    values = []
    for i in range(60):
        t = Value(i)
        for k in range(5):
            t = made.call(("mul", "add", "sub", "exp", "maximum")[k], t, *(() if k == 3 else (0.5,)))
        values.append(t)
    for value, got in zip(values, compiled(made.program(*values))(*arrays), strict=True):
        same_bits(got, made.values[value.number])


@pytest.mark.parametrize("name, options", [("gelu", {}), ("gelu", {"approximate": "tanh"}), ("silu", {}), ("leaky_relu", {}),
                                           ("leaky_relu", {"negative_slope": 2.0})])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_activations_write_where_they_are_told(name, options, dtype):
    """A compiled plan gives each elementwise kernel a place: the array it is given, or another, gets the whole result."""
    kernel = tc.device("cpu").kernels[name]
    x = np.linspace(-3, 3, 24).astype(dtype)[::2]
    expected = np.array(kernel(x.copy(), **options))
    for place in (np.empty(12, dtype), np.empty(24, dtype)[::2], x):
        kernel(x, out=place, **options)
        np.testing.assert_allclose(place, expected, rtol=1e-5, atol=1e-6)
