"""Numeric families beyond the sampled calls: edges that depend on values, ranges of approximations, exact constants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.backend.xp import XPBackend


class TestSpecialFunctions:
    """Values against constants of 17 digits, in each range of the approximations."""

    @pytest.mark.parametrize(
        ("name", "x", "expected"),
        [
            ("bessel_j0", 2.4048255576957727, 0.0), ("bessel_j0", 10.0, -0.24593576445134834),
            ("bessel_j0", 100.0, 0.019985850304223122), ("bessel_j1", 10.0, 0.04347274616886144),
            ("bessel_y0", 10.0, 0.05567116728359939), ("bessel_y1", 10.0, 0.24901542420695388),
            ("airy_ai", -10.0, 0.04024123848644319), ("airy_ai", 5.0, 0.0001083444281360744),
            ("i0", 30.0, 781672297823.9775), ("modified_bessel_k1", 0.1, 9.853844780870606),
            ("scaled_modified_bessel_k0", 50.0, 0.17680715585742706), ("erfcx", 1e5, 5.641895835195491e-06),
            ("log_ndtr", -40.0, -804.6084420137538), ("ndtri", 1e-300, -37.0470962993612),
            ("i0e", math.inf, 0.0), ("entr", 0.0, 0.0), ("entr", -1.0, -math.inf),
        ],
    )  # fmt: skip
    def test_value_is_exact_to_thirteen_digits(self, name: str, x: float, expected: float) -> None:
        """Relative to the value, or to 1 at a zero."""
        found = getattr(tc.special, name)(tc.tensor(x, dtype=tc.float64)).item()
        assert found == pytest.approx(expected, rel=1e-13, abs=1e-15)

    @pytest.mark.parametrize("a", [0.001, 0.5, 3.0, 50.0, 150.0, 1e4, 1e8])
    def test_incomplete_gamma_functions_sum_to_one(self, a: float) -> None:
        """On both sides of the parameter, where the method changes."""
        x = tc.tensor([a * one for one in (0.3, 0.9, 1.0, 1.1, 3.0)], dtype=tc.float64)
        shape = tc.full_like(x, a)
        total = tc.special.gammainc(shape, x) + tc.special.gammaincc(shape, x)
        np.testing.assert_allclose(total.numpy(), 1.0, rtol=2e-14)

    def test_incomplete_gamma_functions_of_whole_parameters(self) -> None:
        """For a parameter of 3 the upper one is exp(-x) (1 + x + x**2 / 2)."""
        x = tc.tensor([0.1, 2.0, 40.0], dtype=tc.float64)
        expected = (-x).exp() * (1 + x + x * x / 2)
        np.testing.assert_allclose(tc.special.gammaincc(tc.full_like(x, 3.0), x).numpy(), expected.numpy(), rtol=1e-13)

    def test_zeta_is_known_at_even_numbers(self) -> None:
        """zeta(2) is pi**2 / 6; a shift of 0 or of a negative integer is a pole."""
        found = tc.special.zeta(tc.tensor([2.0, 2.0, 2.0, 1.0, 0.5], dtype=tc.float64),
                                tc.tensor([1.0, 0.0, -3.0, 2.0, 2.0], dtype=tc.float64)).tolist()  # fmt: skip
        assert found[0] == pytest.approx(math.pi**2 / 6, rel=1e-15)
        assert found[1:4] == [math.inf] * 3
        assert math.isnan(found[4])

    def test_half_precision_is_computed_in_single(self) -> None:
        """A bfloat16 argument gives the rounded result of the same number in float32."""
        x = tc.tensor([0.5, 7.0], dtype=tc.bfloat16)
        assert tc.equal(tc.special.i1e(x), tc.special.i1e(x.float()).bfloat16())

    def test_complex_numbers_are_refused(self) -> None:
        """PyTorch raises RuntimeError, as NotImplementedError."""
        with pytest.raises(NotImplementedError, match="i0"):
            tc.special.i0(tc.ones(2, dtype=tc.complex64))


class TestFourier:
    """Transforms on a device that has none of its own."""

    @pytest.mark.parametrize("n", [1, 2, 31, 37, 64, 96, 210, 1000])
    def test_products_of_matrices_give_the_transform(self, n: int) -> None:
        """Prime, highly composite and long sizes agree with NumPy's transform, and come back."""

        class Bare(XPBackend):
            def find_kernel(self, name: str) -> Any:
                return None if name.startswith("fft_") else super().find_kernel(name)

        signal = np.random.default_rng(n).normal(size=(2, n))
        x = tc.from_numpy(signal).to(Bare(np, "bare"))
        made = tc.fft.rfft(x)
        np.testing.assert_allclose(made.cpu().numpy(), np.fft.rfft(signal), atol=1e-11)
        np.testing.assert_allclose(tc.fft.irfft(made, n).cpu().numpy(), signal, atol=1e-12)

    def test_a_dim_of_numpys(self) -> None:
        """An int of NumPy's names one dim of several, as anywhere."""
        assert tc.fft.fftn(tc.ones(2, 3), dim=np.int64(0)).tolist() == [[2, 2, 2], [0, 0, 0]]

    def test_single_precision_stays_single(self) -> None:
        """float32 is transformed to complex64 and back to float32."""
        made = tc.fft.rfft(tc.ones(8))
        assert (made.dtype, tc.fft.irfft(made).dtype) == (tc.complex64, tc.float32)

    def test_signal_survives_its_spectrogram(self) -> None:
        """istft undoes stft wherever windows overlap."""
        signal = tc.arange(64.0, dtype=tc.float64).sin()
        window = tc.hann_window(16, dtype=tc.float64)
        made = tc.stft(signal, 16, window=window, return_complex=True)
        assert tuple(made.shape) == (9, 17)
        np.testing.assert_allclose(tc.istft(made, 16, window=window).numpy(), signal.numpy(), atol=1e-14)

    @pytest.mark.oracle
    @pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann", "kaiser"])
    @pytest.mark.parametrize("length", [0, 1, 2, 9])
    def test_windows_are_those_of_pytorch(self, name: str, length: int, torch: Any) -> None:
        """Periodic and symmetric ones, with no element, one, and several."""
        for periodic in (True, False):
            ours, theirs = (getattr(one, f"{name}_window")(length, periodic, dtype=one.float64) for one in (tc, torch))
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-12)


class TestCounts:
    """Histograms whose edges come from the values, and quantiles of odd inputs."""

    @pytest.mark.oracle
    def test_edges_from_the_values_are_those_of_pytorch(self, torch: Any) -> None:
        """The smallest and the largest element, widened where both are equal; nothing in an empty tensor."""
        for values in ([0.5, 2.0, 1.0, -3.0], [1.0, 1.0], []):
            ours, theirs = (one.histogram(one.tensor(values), 3) for one in (tc, torch))
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy())
            np.testing.assert_allclose(
                tc.histc(tc.tensor(values), 4).numpy(), torch.histc(torch.tensor(values), 4).numpy()
            )

    def test_nan_is_in_no_bin(self) -> None:
        """Nor is what lies outside; the last bin holds its right edge."""
        assert tc.histc(tc.tensor([math.nan, -5.0, 0.0, 1.0, 2.0]), 2, 0, 2).tolist() == [1.0, 2.0]

    def test_quantiles_come_first_in_the_result(self) -> None:
        """A vector of parts gives one more dim, in front."""
        x = tc.tensor([[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]])
        assert tc.quantile(x, tc.tensor([0.0, 0.5]), 1).tolist() == [[0.0, 1.0], [2.0, 3.0]]

    @pytest.mark.parametrize("q", [-0.1, 1.5])
    def test_parts_outside_zero_and_one_are_refused(self, q: float) -> None:
        """PyTorch raises RuntimeError."""
        with pytest.raises(RuntimeError, match="range"):
            tc.quantile(tc.ones(3), q)

    def test_slopes_of_even_steps_leave_the_middle_out(self) -> None:
        """An infinity is in the slopes beside it and not in its own; no step at all makes all of them infinite."""
        (slopes,) = tc.gradient(tc.tensor([1.0, math.inf, 3.0, 4.0]))
        assert slopes.tolist() == [math.inf, 1.0, -math.inf, 1.0]
        (slopes,) = tc.gradient(tc.tensor([1.0, 2.0, 5.0]), spacing=0.0)
        assert slopes.tolist() == [math.inf] * 3

    def test_membership_among_many_goes_through_a_search(self) -> None:
        """More elements than are compared one by one, NaN among them, which equals nothing."""
        x = tc.arange(0, 1000, dtype=tc.float64)
        among = tc.cat([tc.arange(0, 2000, 2, dtype=tc.float64), tc.tensor([math.nan], dtype=tc.float64)])
        assert tc.isin(x, among).tolist() == [i % 2 == 0 for i in range(1000)]
        assert not tc.isin(tc.tensor([math.nan] * 100, dtype=tc.float64), among).any()


class TestNumbersApart:
    """Mantissas, divisors, and methods that write."""

    def test_denormal_and_endless_numbers_have_exponents(self) -> None:
        """0 and infinities have the exponent 0, and 2**-1074 has -1073."""
        made = tc.frexp(tc.tensor([0.0, 5e-324, math.inf, 1.0], dtype=tc.float64))
        assert made.mantissa.tolist() == [0.0, 0.5, math.inf, 0.5]
        assert made.exponent.tolist() == [0, -1073, 0, 1]

    def test_divisors_are_never_negative(self) -> None:
        """The divisor of two zeros is 0."""
        a, b = tc.tensor([0, -12, 5]), tc.tensor([0, 18, 0])
        assert (tc.gcd(a, b).tolist(), tc.lcm(a, b).tolist()) == ([0, 6, 5], [0, 36, 0])

    def test_resize_shows_the_memory_row_by_row(self) -> None:
        """A smaller shape hides elements, a larger one brings them back, and memory grows where it must."""
        x = tc.arange(6.0).reshape(2, 3)
        x.resize_(2, 2)
        assert x.tolist() == [[0.0, 1.0], [2.0, 3.0]]
        assert x.resize_(7)[:6].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        with pytest.raises(RuntimeError, match="require grad"):
            tc.ones(2, requires_grad=True).resize_(3)

    def test_diagonal_wraps_below_a_tall_matrix(self) -> None:
        """With ``wrap`` every (columns + 1)-th element is written, and its gradient is lost."""
        x = tc.ones(5, 2, requires_grad=True)
        y = (x * 2).fill_diagonal_(7.0, wrap=True)
        y.sum().backward()
        assert y.tolist() == [[7.0, 2.0], [2.0, 7.0], [2.0, 2.0], [7.0, 2.0], [2.0, 7.0]]
        assert x.grad.tolist() == [[0.0, 2.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0], [2.0, 0.0]]

    def test_python_functions_run_over_elements(self) -> None:
        """``apply_`` and ``map_`` write what the function returns."""
        x = tc.tensor([1.0, 2.0])
        assert x.apply_(lambda one: one + 1).map_(tc.tensor([3.0]), lambda a, b: a * b).tolist() == [6.0, 9.0]

    def test_type_is_a_word_or_a_conversion(self) -> None:
        """Without an argument the word of old programs, with a word or a dtype a tensor of it."""
        x = tc.ones(2)
        assert x.type() == "torch.FloatTensor"
        assert x.type("torch.LongTensor").dtype is tc.int64
        assert x.type(tc.float64).type() == "torch.DoubleTensor"
        assert (x.new([1, 2]).tolist(), tuple(x.new(3, 1).shape)) == ([1.0, 2.0], (3, 1))
        with pytest.raises(ValueError, match="invalid type"):
            x.type("torch.Tensors")

    def test_tensor_knows_its_kind_of_device(self) -> None:
        """A tensor in host memory is on the CPU and on nothing else."""
        x = tc.ones(1)
        assert (x.is_cpu, x.is_cuda, x.is_sparse, x.is_quantized) == (True, False, False, False)


class TestDraws:
    """Random numbers whose parameters are tensors."""

    @pytest.mark.oracle
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_numbers_are_those_of_pytorch(self, dtype: str, torch: Any) -> None:
        """One after the other from one generator: counts below and above the change of method, gammas below and above 1."""
        found = []
        for one in (tc, torch):
            kind = getattr(one, dtype)
            one.manual_seed(11)
            rates = one.linspace(0, 40, 60, dtype=kind)
            found.append([
                one.poisson(rates), one._standard_gamma(rates / 10), one.binomial(rates.floor(), rates / 40),
                one.randn(3, dtype=kind), one._sample_dirichlet(rates.reshape(20, 3) + 0.1), one.rand(2, dtype=kind),
            ])  # fmt: skip
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6 if dtype == "float32" else 1e-15)

    def test_gradient_of_a_gamma_number_follows_its_quantile(self) -> None:
        """Where the distribution function stays the same, the number moves with the shape as the gradient says."""
        alpha = tc.tensor([0.3, 1.0, 5.0, 60.0], dtype=tc.float64)
        x = tc.tensor([0.2, 1.5, 4.0, 70.0], dtype=tc.float64)
        step = 1e-6
        change = tc.special.gammainc(alpha + step, x) - tc.special.gammainc(alpha - step, x)
        density = ((alpha - 1) * x.log() - x - tc.lgamma(alpha)).exp()
        expected = -change / (2 * step) / density
        np.testing.assert_allclose(tc._standard_gamma_grad(alpha, x).numpy(), expected.numpy(), rtol=1e-6)

    def test_negative_rate_is_refused(self) -> None:
        """PyTorch raises RuntimeError."""
        with pytest.raises(RuntimeError, match="non-negative"):
            tc.poisson(tc.tensor([-1.0]))


@pytest.mark.parametrize("kind", [tc.int32, tc.int64])
@pytest.mark.parametrize("dtype", [tc.float16, tc.bfloat16, tc.float32, tc.float64])
def test_whole_powers_of_two_beyond_the_dtype(dtype, kind):
    """Only the result of ``ldexp`` is rounded: 0 and infinities stay, and what the power overflows the product need not."""
    inf, least = float("inf"), tc.finfo(dtype).smallest_normal
    x = tc.tensor([0.0, inf, least, 1.0, -1.0, 3 * least], dtype=dtype)
    far = {tc.float16: 28, tc.float64: 2040}.get(dtype, 250)
    exponents = tc.tensor([5000, -5000, far, 5000, -5000, -2], dtype=kind)
    expected = [0.0, inf, float(least) * 2.0 ** (far // 2) * 2.0 ** (far - far // 2), inf, -0.0, 0.75 * float(least)]
    assert tc.ldexp(x, exponents).tolist() == expected
    assert x.ldexp_(exponents).tolist() == expected


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_whole_powers_of_two_are_pytorchs(torch, name):
    """Numbers of all sizes, denormals among them, times powers of all sizes: one rounding."""
    random = np.random.default_rng(8)
    most = {"float16": 45, "float64": 2200}.get(name, 300)
    exponents = random.integers(-most, most, 4000)
    values = np.ldexp(random.standard_normal(4000), random.integers(-most, most, 4000) // 3)
    ours, theirs = (
        one.ldexp(one.tensor(values).to(getattr(one, name)), one.tensor(exponents)).double().numpy()
        for one in (tc, torch)
    )
    np.testing.assert_array_equal(ours, theirs)
