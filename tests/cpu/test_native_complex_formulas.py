"""Functions of complex numbers in C against their twins in NumPy."""

import itertools

import numpy as np
import pytest

import tensorcore

from .native import awkward, kernel, laid_out, layouts, needs_native

pytestmark = needs_native

_INPUTS = {
    "div": 2,
    "sinc": 1,
    "sigmoid": 1,
    "silu": 1,
    "exp2": 1,
    "rsqrt": 1,
    "reciprocal": 1,
    "logaddexp": 2,
    "add_scaled": 2,
    "addcmul": 3,
    "addcdiv": 3,
    "lerp": 3,
}
_OPTIONS = {"add_scaled": {"alpha": 0.5 - 2j}, "addcmul": {"value": 1.5}, "addcdiv": {"value": 2 + 1j}}
_EPSILONS = {np.complex64: 1e-6, np.complex128: 1e-13}


def pairs(dtype, count=67, seed=0):
    """Complex numbers of ordinary sizes."""
    random = np.random.default_rng(seed)
    return (random.standard_normal(count) * 2 + 1j * random.standard_normal(count)).astype(dtype)


def corners(dtype, seed=0):
    """Each awkward part beside each other one, in an order of its own; none whose product is finite only where it is not rounded."""
    parts = awkward(np.zeros((), dtype).real.dtype, 14)
    parts[np.isfinite(parts) & (np.abs(parts) > 1e9)] = 1e9
    made = np.array(list(itertools.product(parts, parts)))
    return np.random.default_rng(seed).permutation(made).view(dtype).reshape(-1)


def assert_near(got, expected, dtype):
    """The same to a few last bits of the larger part, and not finite in the same places."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    finite = np.isfinite(got) & np.isfinite(expected)
    size = np.maximum(np.abs(expected[finite]), 1)
    assert (np.abs(got[finite] - expected[finite]) <= _EPSILONS[dtype] * size).all()
    assert (np.isfinite(got) == np.isfinite(expected)).all()


@pytest.mark.parametrize("layout", sorted(layouts(np.zeros(9))))
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", sorted(_INPUTS))
def test_formulas_are_those_of_numpy(isa, name, dtype, layout):
    """Ordinary numbers in any layout, empty and of no dims too, give NumPy's values in PyTorch's memory order."""
    native, numpy = kernel(name)
    given = [layouts(pairs(dtype, seed=i))[layout] for i in range(_INPUTS[name])]
    got, expected = native(*given, **_OPTIONS.get(name, {})), np.asarray(numpy(*given, **_OPTIONS.get(name, {})))
    assert_near(got, expected, dtype)
    assert got.size < 2 or got.strides == laid_out(expected, *given).strides


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", sorted(_INPUTS))
def test_operands_broadcast_over_threads(isa, name, dtype, threads):
    """Rows, columns and numbers stand beside a matrix that is large enough for threads."""
    before = tensorcore.get_num_threads()
    tensorcore.set_num_threads(threads)
    try:
        native, numpy = kernel(name)
        shapes = [(131, 257), (257,), (131, 1)][: _INPUTS[name]]
        given = [pairs(dtype, int(np.prod(shape)), i).reshape(shape) for i, shape in enumerate(shapes)]
        wide = [one.astype(np.complex128) for one in given]  # the angle of a sine has more digits than single precision
        assert_near(native(*given), np.asarray(numpy(*wide)).astype(dtype), dtype)
    finally:
        tensorcore.set_num_threads(before)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", ["add_scaled", "addcdiv", "addcmul"])
def test_awkward_parts_go_through_sums_products_and_quotients(isa, name, dtype):
    """Infinities, NaN, zeros and denormals come out as NumPy's, part by part."""
    native, numpy = kernel(name)
    given = [corners(dtype, i) for i in range(_INPUTS[name])]
    got, expected = native(*given, **_OPTIONS[name]), np.asarray(numpy(*given, **_OPTIONS[name]))
    for one, other in ((got.real, expected.real), (got.imag, expected.imag)):
        np.testing.assert_allclose(one, other, rtol=10 * _EPSILONS[dtype])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_sinc_of_zeros_and_of_what_is_not_finite(isa, dtype):
    """It is 1 at zero, grows out of range where the imaginary part does, and has no value at NaN and infinities."""
    got = kernel("sinc")[0](
        np.array([0, -0.0, 1, 0.5, 1e5j, complex(np.nan, 1), complex(np.inf, 0), complex(0, np.inf)], dtype)
    )
    np.testing.assert_allclose(got[:4], [1, 1, 0, 2 / np.pi], atol=1e-7)
    assert not np.isfinite(got[4:]).any()
    assert abs(kernel("sinc")[0](np.array([1e-30 + 1e-30j], dtype))[0] - 1) < 1e-7


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_logaddexp_of_infinities(isa, dtype):
    """Two equal infinities give themselves, and a part of nothing changes nothing."""
    x = np.array([-np.inf, np.inf, -np.inf, 2 + 1j], dtype)
    y = np.array([-np.inf, np.inf, 1 + 2j, -np.inf], dtype)
    np.testing.assert_array_equal(kernel("logaddexp")[0](x, y), np.array([-np.inf, np.inf, 1 + 2j, 2 + 1j], dtype))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("weight", [0.25, 0.75])
def test_lerp_by_one_number(isa, weight, dtype):
    """A float is the weight of all elements, from whichever end is nearer."""
    native, numpy = kernel("lerp")
    assert_near(
        native(pairs(dtype), pairs(dtype, seed=1), weight), numpy(pairs(dtype), pairs(dtype, seed=1), weight), dtype
    )


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", sorted(_INPUTS))
def test_formulas_write_where_they_are_told(isa, name, dtype):
    """Results go into ``out``, which may be the first operand itself."""
    native, numpy = kernel(name)
    given = [pairs(dtype, seed=i) for i in range(_INPUTS[name])]
    expected, out = np.asarray(numpy(*given)), np.empty(67, dtype)
    assert native(*given, out=out) is out
    assert_near(out, expected, dtype)
    assert native(*given, out=given[0]) is given[0]
    assert_near(given[0], expected, dtype)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_numbers_stand_on_either_side(isa, name, dtype):
    """A Python number beside an array is a complex number of its dtype; an array of numbers far apart has it for each."""
    native, numpy = kernel(name)
    x = pairs(dtype, 260).reshape(65, 4)
    for number in (2, -0.5, 1.5 - 2j):
        assert_near(native(x, number), numpy(x, number), dtype)
        assert_near(native(number, x[:, ::2]), numpy(number, x[:, ::2]), dtype)
    for one, other in (
        (x, x[0]),
        (x[:, :1], x),
        (x[:, 1:], x[:, :-1]),
        (x.T, x[0].reshape(4, 1)),
        (x, np.array(2j, dtype)),
    ):
        assert_near(native(one, other), numpy(one, other), dtype)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("power", [0, 1, 2, 3, 7, 200, -1, -2, -3, 0.5, -0.5, 2.5])
def test_powers(isa, power, dtype):
    """Numbers and arrays of them, whole ones by products, are exponents; zero has no power that is not positive, but the 0th."""
    native, numpy = kernel("pow")
    x = np.concatenate([pairs(dtype, 67) / 2, np.zeros(1, dtype)])
    expected = np.asarray(numpy(x.astype(np.complex128), power))
    fits = np.isfinite(expected.astype(dtype))
    for one in (x, np.repeat(x, 2)[::2], x[:0]):
        for exponent in (power, np.array(power, dtype), np.full(one.shape, power, dtype)):
            got = native(one, exponent)
            assert got.dtype == dtype
            if one.size:
                assert not np.isfinite(got[~fits]).any()
                np.testing.assert_allclose(
                    got[fits], expected[fits], rtol=100 * _EPSILONS[dtype], atol=np.finfo(dtype).tiny
                )
    exponents = x[np.abs(x) < 3]
    np.testing.assert_allclose(native(2, exponents), numpy(2, exponents), rtol=100 * _EPSILONS[dtype])
    out = np.empty_like(x)
    assert native(x, power, out=out) is out
    np.testing.assert_allclose(out[fits], expected[fits], rtol=100 * _EPSILONS[dtype], atol=np.finfo(dtype).tiny)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_running_products(isa, dtype, dim):
    """Along any dim, of any layout and of nothing."""
    x = pairs(dtype, 3 * 20 * 4).reshape(3, 20, 4)
    native, numpy = kernel("cumprod")
    expected = numpy(x.astype(np.complex128), dim=dim)
    np.testing.assert_allclose(native(x, dim=dim), expected, rtol=100 * _EPSILONS[dtype], atol=np.finfo(dtype).tiny)
    np.testing.assert_allclose(
        native(x.T, dim=2 - dim), expected.T, rtol=100 * _EPSILONS[dtype], atol=np.finfo(dtype).tiny
    )
    assert native(x[:, :0], dim=dim).shape == (3, 0, 4)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_sigmoid_far_from_zero(isa, dtype):
    """It is 0 where the exponential leaves the range, and 1 where that vanishes."""
    np.testing.assert_allclose(
        kernel("sigmoid")[0](np.array([-1e4, 1e4, -100 + 1j, 0], dtype)), [0, 1, 0, 0.5], atol=1e-7
    )


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_cross_products(isa, dtype, dim):
    """Lines of three along any dim, of arrays that broadcast, whatever their strides."""
    native, numpy = kernel("cross")
    x, y = (pairs(dtype, 3 * 3 * 5, seed).reshape(3, 3, 5) for seed in (1, 2))
    assert_near(native(x, y, dim=dim), numpy(x, y, dim=dim), dtype)
    assert_near(native(x.swapaxes(0, 1), y[..., :1], dim=dim), numpy(x.swapaxes(0, 1), y[..., :1], dim=dim), dtype)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_equal_looks_at_both_parts(isa, dtype):
    """Arrays are equal where all parts are, and none that holds a NaN is."""
    x = pairs(dtype, 3000)
    y = x.copy()
    equal = kernel("equal")[0]
    assert equal(x, y)
    y[-1] += 1j
    assert not equal(x, y)
    x[0] = y[0] = np.nan
    assert not equal(y, y)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_running_sums_of_exponentials(isa, dtype, dim):
    """Along any dim they are the logarithms of the sums so far, an infinity among them."""
    x = pairs(dtype, 3 * 20 * 4).reshape(3, 20, 4)
    x[:, 0, 0] = -np.inf
    native, numpy = kernel("logcumsumexp")
    assert_near(native(x, dim=dim), numpy(x, dim=dim), dtype)
    assert native(x[:, :0], dim=dim).shape == (3, 0, 4)
    assert_near(native(x.T, dim=dim), numpy(x.T, dim=dim), dtype)
