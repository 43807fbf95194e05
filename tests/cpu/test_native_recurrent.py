"""The recurrent layers in C against NumPy's, forward and backward, over whole and shrinking batches."""

import numpy as np
import pytest

from .native import kernel, needs_native

pytestmark = [needs_native, pytest.mark.usefixtures("isa")]

GATES = {"lstm_steps": 4, "gru_steps": 3, "rnn_steps": 1}
SIZES = {"one": (1,), "even": (3, 3, 3), "shrinking": (5, 5, 3, 1, 1), "many rows": (100, 61), "long": (2,) * 40}
# The error of one rounding, many times over: states go through each step and its functions.
TOLERANCE = {"float32": 3e-5, "float64": 1e-13}


def drawn(rng, *shape, dtype, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(dtype)


def inputs(name, sizes, size, dtype, bias=True):
    """Arguments of a forward kernel."""
    rng = np.random.default_rng(8)
    gates, batch = GATES[name], max(sizes)
    x = drawn(rng, sum(sizes), gates * size, dtype=dtype)
    weight = drawn(rng, gates * size, size, dtype=dtype, scale=size**-0.5)
    states = [drawn(rng, batch, size, dtype=dtype) for _ in range(2 if name == "lstm_steps" else 1)]
    middle = [drawn(rng, gates * size, dtype=dtype) if bias else None] if name == "gru_steps" else []
    return [x, weight, *middle, *states]


def options_of(name, sizes, reverse=False, nonlinearity="tanh"):
    return {"sizes": sizes, "reverse": reverse} | ({"nonlinearity": nonlinearity} if name == "rnn_steps" else {})


def gradients(name, sizes, size, dtype):
    rng = np.random.default_rng(9)
    return [drawn(rng, sum(sizes), size, dtype=dtype)] + [
        drawn(rng, max(sizes), size, dtype=dtype) for _ in range(2 if name == "lstm_steps" else 1)
    ]


def assert_close(got, expected, dtype):
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        if other is None:
            assert one is None
            continue
        assert type(one) is np.ndarray
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        scale = max(1.0, float(np.abs(other).max(initial=0.0)))
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE[dtype] * scale)


def both_ways(name, sizes, size, dtype, grads=None, needs=None, bias=True, **given):
    """Runs both kernels in C and in NumPy and compares everything."""
    args, options = inputs(name, sizes, size, dtype, bias), options_of(name, sizes, **given)
    forward, forward_numpy = kernel(name)
    made, expected = forward(*args, **options), forward_numpy(*args, **options)
    assert_close(made, expected, dtype)
    results = {"lstm_steps": 3, "gru_steps": 2, "rnn_steps": 2}[name]
    grads = gradients(name, sizes, size, dtype) if grads is None else grads
    needs = (True,) * len(args) if needs is None else needs
    backward, backward_numpy = kernel(f"{name}_backward")
    got = backward(grads, *args, *made[results:], needs=needs, **options)
    assert_close(got, backward_numpy(grads, *args, *expected[results:], needs=needs, **options), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("name", GATES)
def test_sequences(name, sizes, dtype):
    """States, what the backward kernel wants back, and all gradients are NumPy's but for rounding."""
    for size in (1, 7, 16, 33):
        both_ways(name, sizes, size, dtype)


@pytest.mark.parametrize("name", GATES)
def test_long_sums(name):
    """Layers whose products are made in several parts are as right as small ones."""
    both_ways(name, (4, 2), 300, "float32")


@pytest.mark.parametrize("name", GATES)
def test_reverse(name):
    """The last step comes first, and sequences join as it goes."""
    both_ways(name, (5, 3, 1), 20, "float32", reverse=True)


def test_relu():
    """Elman's network with relu lets nothing below zero through, either way."""
    both_ways("rnn_steps", (5, 3, 1), 20, "float32", nonlinearity="relu")


def test_without_bias():
    """A GRU may have no bias of its own."""
    both_ways("gru_steps", (3, 2), 9, "float64", needs=(True, True, False, True), bias=False)


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("missing", [0, 1])
def test_gradients_that_did_not_come(name, missing):
    """A result that nothing was made of has no gradient, which counts as zeros."""
    grads = gradients(name, (3, 2), 9, "float32")
    grads[missing] = None
    both_ways(name, (3, 2), 9, "float32", grads=grads)


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("which", ["weight", "h0"])
def test_what_is_not_needed(name, which):
    """The gradients of the weight and of the first state are not made where nobody wants them."""
    without = 1 if which == "weight" else 3 if name == "gru_steps" else 2
    args = inputs(name, (3, 2), 9, "float32")
    both_ways(name, (3, 2), 9, "float32", needs=tuple(i != without for i in range(len(args))))


@pytest.mark.parametrize("name", GATES)
def test_gradient_that_is_spread(name):
    """The gradient of a sum has one number in the place of an array; it is read as what it stands for."""
    grads = gradients(name, (3, 2), 9, "float32")
    grads[0] = np.broadcast_to(np.float32(1.0), (5, 9))
    both_ways(name, (3, 2), 9, "float32", grads=grads)


@pytest.mark.parametrize("name", GATES)
def test_inputs_stay(name):
    """No kernel writes to what it was given."""
    args, options = inputs(name, (3, 2), 9, "float32"), options_of(name, (3, 2))
    grads = gradients(name, (3, 2), 9, "float32")
    before = [one.copy() for one in (*args, *grads)]
    made = kernel(name)[0](*args, **options)
    kept = made[len(grads) :]
    kept_before = [one.copy() for one in kept]
    kernel(f"{name}_backward")[0](grads, *args, *kept, needs=(True,) * len(args), **options)
    for one, other in zip((*args, *grads, *kept), (*before, *kept_before), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", GATES)
def test_nan_stays_in_its_row(name):
    """NaN in one sequence of a batch reaches no other."""
    args = inputs(name, (3, 3), 9, "float32")
    args[0][1, 2] = np.nan
    made = kernel(name)[0](*args, **options_of(name, (3, 3)))[0]
    assert np.isnan(made[4]).all()
    assert not np.isnan(made[[0, 2, 3, 5]]).any()


@pytest.mark.parametrize("name", GATES)
def test_large_numbers(name):
    """Gates far out are 0 or 1, not NaN."""
    args = inputs(name, (2, 2), 9, "float32")
    args[0][:] *= 1e30
    made = kernel(name)[0](*args, **options_of(name, (2, 2)))
    assert all(np.isfinite(one).all() for one in made[:1])


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("size", [31, 32, 41, 56])
def test_numbers_out_of_the_ordinary(name, size):
    """Infinities, NaN, denormals and zeros of either sign give what NumPy's kernel gives, in whichever lane of a vector they are."""
    odd = np.array([np.inf, -np.inf, np.nan, 1e-42, -1e-42, 0.0, -0.0, 88.0, -104.0, 3e38], "float32")
    args, options = inputs(name, (3, 2), size, "float32"), options_of(name, (3, 2))
    args[0].flat[::7] = np.resize(odd, args[0].flat[::7].size)
    args[-1].flat[::5] = np.resize(odd[3:7], args[-1].flat[::5].size)
    with np.errstate(all="ignore"):
        assert_close(kernel(name)[0](*args, **options), kernel(name)[1](*args, **options), "float32")


@pytest.mark.parametrize("name", GATES)
def test_layouts_and_half_types(name):
    """Arguments in other layouts and dtypes give what NumPy's kernel gives."""
    args, options = inputs(name, (3, 2), 9, "float32"), options_of(name, (3, 2))
    turned = [None if one is None else np.repeat(one, 2, -1)[..., ::2] for one in args]
    assert_close(kernel(name)[0](*turned, **options), kernel(name)[1](*args, **options), "float32")
    turned[1] = np.asfortranarray(args[1])
    assert_close(kernel(name)[0](*turned, **options), kernel(name)[1](*args, **options), "float32")
    half = [one.astype(np.float16) for one in args]
    assert kernel(name)[0](*half, **options)[0].dtype == np.float16


def test_threads_do_not_change_the_result():
    """A layer gives the same to the last bit on one thread and on several."""
    import tensorcore

    sizes = (30, 30, 17, 9, 2)
    args, options = inputs("lstm_steps", sizes, 200, "float32"), options_of("lstm_steps", sizes)
    before, made = tensorcore.get_num_threads(), []
    try:
        for count in (1, 3):
            tensorcore.set_num_threads(count)
            results = kernel("lstm_steps")[0](*args, **options)
            sent = [np.ones_like(one) for one in results[:3]]
            needs = (True,) * 4
            made.append(
                (*results, *kernel("lstm_steps_backward")[0](sent, *args, *results[3:], needs=needs, **options))
            )
    finally:
        tensorcore.set_num_threads(before)
    for one, other in zip(*made, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("state", [0.0, 0.25, np.inf])
@pytest.mark.parametrize("name", GATES)
def test_rows_of_the_first_state_that_are_alike(name, state, reverse):
    """Sequences that begin with the same state, whose products are made once for all, get the bits that each gets alone."""
    sizes, size, dtype = (14, 14, 9), 37, "float32"
    args, options = inputs(name, sizes, size, dtype), options_of(name, sizes, reverse=reverse)
    states = 2 if name == "lstm_steps" else 1
    for one in args[-states:]:
        one[...] = state
    forward, _ = kernel(name)
    made = forward(*args, **options)
    for row in (0, 8, 13):
        steps = [t for t, n in enumerate(sizes) if n > row]
        places = [sum(sizes[:t]) + row for t in steps]
        alone = [args[0][places], *args[1:-states], *[one[row : row + 1] for one in args[-states:]]]
        found = forward(*alone, **options_of(name, (1,) * len(steps), reverse=reverse))
        np.testing.assert_array_equal(made[0][places], found[0])
        np.testing.assert_array_equal(made[1][row : row + 1], found[1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", GATES)
def test_a_first_state_of_zeros_adds_nothing_to_the_gradient_of_the_weight(name, reverse, dtype):
    """That of a state of zeros is NumPy's; and a gradient that is not finite, times such a state, is NaN as ever."""
    sizes, size = (5, 5, 2), 12
    args, options = inputs(name, sizes, size, dtype), options_of(name, sizes, reverse=reverse)
    for one in args[-2 if name == "lstm_steps" else -1 :]:
        one[...] = 0
    forward, forward_numpy = kernel(name)
    backward, backward_numpy = kernel(f"{name}_backward")
    results = {"lstm_steps": 3, "gru_steps": 2, "rnn_steps": 2}[name]
    needs = (True,) * len(args)
    for of_first in (1.0, np.nan, np.inf):
        grads = gradients(name, sizes, size, dtype)
        grads[0][0] = of_first
        kept, expected = forward(*args, **options)[results:], forward_numpy(*args, **options)[results:]
        with np.errstate(invalid="ignore"):
            wanted = backward_numpy(grads, *args, *expected, needs=needs, **options)
        got = backward(grads, *args, *kept, needs=needs, **options)
        np.testing.assert_array_equal(np.isnan(got[1]), np.isnan(wanted[1]))
        if of_first == 1:
            assert_close(got, wanted, dtype)


def test_a_sequence_of_one_step_from_zeros():
    """All rows of the state are zeros then, and so is the gradient of the weight."""
    args, options = inputs("rnn_steps", (4,), 9, "float32"), options_of("rnn_steps", (4,))
    args[-1][...] = 0
    forward, _ = kernel("rnn_steps")
    backward, _ = kernel("rnn_steps_backward")
    kept = forward(*args, **options)[2:]
    assert not backward(gradients("rnn_steps", (4,), 9, "float32"), *args, *kept, needs=(True,) * 3, **options)[1].any()
