"""Factorisations, solutions and eigenvalues: what the registry's samples do not show."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import linalg
from tensorcore.autograd.gradcheck import gradcheck, gradgradcheck
from tensorcore.testing.invariants import unique

# Of one matrix each, and where matrices of these shapes are asked for: square ones, or any.
SQUARE = (
    "det", "slogdet", "inv", "inv_ex", "eigh", "eigvalsh", "eig", "eigvals", "cholesky", "cholesky_ex", "ldl_factor",
    "ldl_factor_ex", "matrix_exp", "cond",
)  # fmt: skip
ANY = ("pinv", "qr", "svd", "svdvals", "lu", "lu_factor", "lu_factor_ex", "matrix_rank", "matrix_norm")
EMPTY = ((0, 0), (2, 0, 0), (0, 3, 3), (0, 3), (3, 0), (2, 0, 3), (0, 2, 3))


def normal(*shape: int) -> tc.Tensor:
    return tc.randn(*shape, dtype=tc.float64)


def definite(n: int) -> tc.Tensor:
    made = normal(n, n)
    return made @ made.mT + n * tc.eye(n, dtype=tc.float64)


def outcome(function: Any, *args: Any) -> Any:
    """What a call returns, or the exception it raises."""
    try:
        return function(*args)
    except Exception as error:
        return error


class TestEmpty:
    """Matrices without elements."""

    @pytest.mark.oracle
    @pytest.mark.parametrize("name", SQUARE + ANY)
    @pytest.mark.parametrize("dtype", ["float32", "complex128"])
    def test_agree_with_pytorch(self, name: str, dtype: str, torch: Any) -> None:
        """Batches of none, and matrices of no rows or columns, give PyTorch's results, or are refused as there."""
        for shape in EMPTY:
            ours = unique(f"linalg_{name}", outcome(getattr(linalg, name), tc.zeros(shape, dtype=getattr(tc, dtype))))
            theirs = outcome(getattr(torch.linalg, name), torch.zeros(shape, dtype=getattr(torch, dtype)))
            theirs = unique(f"linalg_{name}", theirs)
            if isinstance(theirs, Exception):
                assert isinstance(ours, RuntimeError | IndexError), (shape, ours)
                continue
            pairs = zip(*[one if isinstance(one, tuple) else (one,) for one in (ours, theirs)], strict=True)
            for a, b in pairs:
                assert (tuple(a.shape), str(a.dtype)) == (tuple(b.shape), str(b.dtype)), shape
                np.testing.assert_array_equal(a.numpy(), b.resolve_conj().numpy())

    def test_determinant_of_nothing(self) -> None:
        """The product of no numbers is 1."""
        assert linalg.det(tc.empty(0, 0)).item() == 1.0


class TestSingular:
    """Matrices without the inverse or the factor that is asked for."""

    @pytest.mark.parametrize(
        "call",
        [
            lambda x: linalg.inv(x),
            lambda x: linalg.inv_ex(x, check_errors=True),
            lambda x: linalg.solve(x, tc.ones(2, 1)),
            lambda x: linalg.solve_ex(x, tc.ones(2, 1), check_errors=True),
            lambda x: linalg.lu_factor(x),
            lambda x: linalg.cholesky(x),
            lambda x: linalg.cholesky_ex(x, check_errors=True),
            lambda x: linalg.ldl_factor(x),
            lambda x: linalg.matrix_power(x, -1),
            lambda x: linalg.tensorinv(x, 1),
            lambda x: tc.inverse(x),
            lambda x: tc.cholesky(x),
            lambda x: tc.cholesky_inverse(x),
        ],
    )
    def test_raises(self, call: Any) -> None:
        """The error is a LinAlgError, which is a RuntimeError, and names the matrix of the batch."""
        with pytest.raises(linalg.LinAlgError):
            call(tc.zeros(2, 2))
        if call.__code__.co_names[1:2] != ("tensorinv",):
            with pytest.raises(RuntimeError, match="Batch element 1"):
                call(tc.stack([tc.eye(2), tc.zeros(2, 2)]))

    def test_places_of_zeros(self) -> None:
        """Functions with ``_ex`` answer where the factorisation stopped, and 0 for matrices where it did not."""
        both = tc.stack([tc.eye(2), tc.tensor([[1.0, 2.0], [2.0, 4.0]])])
        assert linalg.inv_ex(both).info.tolist() == [0, 2]
        assert linalg.lu_factor_ex(both).info.tolist() == [0, 2]
        assert linalg.cholesky_ex(both).info.tolist() == [0, 2]
        assert linalg.solve_ex(both, tc.ones(2, 1)).info.tolist() == [0, 2]

    @pytest.mark.parametrize("rank", [0, 1, 2])
    def test_determinant_has_all_derivatives(self, rank: int) -> None:
        """The gradient of the determinant of a singular matrix is its cofactors, and has a derivative itself."""
        x = normal(3, 3)
        x[rank:] = x[:rank].sum(0) if rank else 0.0
        if rank == 2:
            x[2] = x[0] + x[1]
        x.requires_grad_()
        gradcheck(linalg.det, [x])
        gradgradcheck(linalg.det, [x])
        cofactors = np.array([
            [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x.detach().numpy(), i, 0), j, 1)) for j in range(3)]
            for i in range(3)
        ])  # fmt: skip
        (g,) = tc.autograd.grad(linalg.det(x), [x])
        np.testing.assert_allclose(g.numpy(), cofactors, atol=1e-12)

    def test_pseudo_inverse_of_short_rank_has_derivatives(self) -> None:
        """Along changes that keep the rank, the pseudo-inverse is differentiable twice."""
        a, b = normal(4, 2).requires_grad_(), normal(3, 2).requires_grad_()
        gradcheck(lambda a, b: linalg.pinv(a @ b.mT), [a, b])
        gradgradcheck(lambda a, b: linalg.pinv(a @ b.mT), [a, b])

    @pytest.mark.parametrize("shape", [(4, 2), (3, 3), (2, 4), (2, 3, 2)])
    def test_least_squares_have_derivatives(self, shape: tuple[int, ...]) -> None:
        """Solutions are differentiable twice where the rank is full; where it is not, by what keeps it."""
        a, b = normal(*shape).requires_grad_(), normal(*shape[:-1], 2).requires_grad_()
        for driver in ("gelsy", "gels"):
            gradcheck(lambda a, b, driver=driver: linalg.lstsq(a, b, driver=driver).solution, [a, b])
            gradgradcheck(lambda a, b, driver=driver: linalg.lstsq(a, b, driver=driver).solution, [a, b])
        left, right = normal(*shape[:-1], 1).requires_grad_(), normal(1, shape[-1]).requires_grad_()
        gradcheck(lambda left, right: linalg.lstsq(left @ right, b.detach()).solution, [left, right])

    @pytest.mark.parametrize("factor", [1.0, 0.7, 0.0])
    def test_reflections_have_derivatives(self, factor: float) -> None:
        """Products of reflections are differentiable twice, by factors too that reflect nothing, or not by right angles."""
        a, tau = tc.geqrf(normal(4, 3))
        a, tau, c = a.requires_grad_(), (factor * tau).requires_grad_(), normal(4, 4).requires_grad_()
        gradcheck(linalg.householder_product, [a, tau])
        gradgradcheck(linalg.householder_product, [a, tau])
        for left, transpose in ((True, False), (True, True), (False, False), (False, True)):
            gradcheck(lambda *given, how=(left, transpose): tc.ormqr(*given, *how), [a, tau, c])

    @pytest.mark.parametrize("upper", [False, True])
    def test_inverse_of_a_factor_has_derivatives(self, upper: bool) -> None:
        """The inverse from a factor is differentiable twice, by the triangle that is read alone."""
        factor = linalg.cholesky(definite(3), upper=upper).requires_grad_()
        gradcheck(lambda x: tc.cholesky_inverse(x, upper), [factor])
        gradgradcheck(lambda x: tc.cholesky_inverse(x, upper), [factor])
        (g,) = tc.autograd.grad(tc.cholesky_inverse(factor, upper).sum(), [factor])
        assert tc.equal(g, g.triu() if upper else g.tril())

    def test_condition_is_infinite(self) -> None:
        """A matrix without an inverse has an infinite condition in every norm with one."""
        assert linalg.cond(tc.zeros(2, 2), "fro").item() == float("inf")


class TestNotFinite:
    """NaN and infinities."""

    @pytest.mark.parametrize("name", ["eig", "eigvals", "svd", "svdvals", "cholesky"])
    def test_raise(self, name: str) -> None:
        """Where no values can be found, the error says so, and the process lives on."""
        with pytest.raises(RuntimeError, match=r"NaN|non-finite|not positive-definite"):
            getattr(linalg, name)(tc.full((3, 3), float("nan")))

    @pytest.mark.parametrize("shape", [(3, 3), (20, 20), (40, 5), (5, 40)])
    def test_infinite_matrices_have_no_singular_values(self, shape: tuple[int, int]) -> None:
        """An infinity ends in the same error, for small matrices and those that are LAPACK's."""
        x = normal(*shape)
        x[1, 1] = float("inf")
        for function in (linalg.svd, linalg.svdvals):
            with pytest.raises(RuntimeError, match="non-finite"):
                function(x)

    @pytest.mark.parametrize("name", ["det", "inv", "matrix_exp"])
    def test_spread(self, name: str) -> None:
        """Sums and products carry NaN on."""
        assert bool(getattr(linalg, name)(tc.full((3, 3), float("nan"))).isnan().all())


class TestVectors:
    """Eigenvectors and singular vectors."""

    def test_decompositions_multiply_to_the_matrix(self) -> None:
        """Complex matrices are put together again from all their decompositions."""
        x = tc.complex(normal(2, 4, 3), normal(2, 4, 3))
        square = x.mH @ x
        u, s, vh = linalg.svd(x, full_matrices=False)
        q, r = linalg.qr(x, "complete")
        values, v = linalg.eigh(square)
        w, vectors = linalg.eig(square[:, :, :2] @ square[:, :2, :] + square)
        low = linalg.cholesky(square)
        p, lower, upper = linalg.lu(x)
        made = {
            "svd": (u * s.unsqueeze(-2)) @ vh - x,
            "qr": q @ r - x,
            "orthonormal": q.mH @ q - tc.eye(4),
            "eigh": (v * values.unsqueeze(-2)) @ v.mH - square,
            "eig": (square[:, :, :2] @ square[:, :2, :] + square) @ vectors - vectors * w.unsqueeze(-2),
            "cholesky": low @ low.mH - square,
            "lu": p @ lower @ upper - x,
        }
        assert {name: bool(one.abs().max() < 1e-9) for name, one in made.items()} == dict.fromkeys(made, True)

    @pytest.mark.parametrize("function", [linalg.svd, linalg.eigh, linalg.eig])
    def test_a_loss_that_depends_on_the_phase_is_refused(self, function: Any) -> None:
        """Nobody defines the phase of complex vectors, so a gradient along it is an error and no number."""
        x = tc.complex(normal(3, 3), normal(3, 3))
        x = (x + x.mH).requires_grad_()
        vectors = max(function(x), key=lambda one: one.ndim)
        with pytest.raises(RuntimeError, match="phi"):
            (vectors * (1 + 2j)).sum().real.backward()

    def test_triangles(self) -> None:
        """Of a Hermitian matrix the triangle that is named is read, the other one is not."""
        x = definite(3)
        lower, upper = x.tril() + 7.0 * tc.ones(3, 3).triu(1), x.triu() + 7.0 * tc.ones(3, 3).tril(-1)
        expected = linalg.eigvalsh(x).tolist()
        assert linalg.eigvalsh(lower).tolist() == pytest.approx(expected)
        assert linalg.eigvalsh(upper, "U").tolist() == pytest.approx(expected)
        assert tc.allclose(linalg.cholesky(upper, upper=True), linalg.cholesky(x).mT)

    def test_modes_of_qr_without_a_derivative(self) -> None:
        """Columns that complete a basis have no derivative, nor has R without Q; the error names the mode that has."""
        x = normal(4, 2).requires_grad_()
        assert linalg.qr(x, "complete").Q.shape == (4, 4)
        assert linalg.qr(x, "r").Q.numel() == 0
        for mode in ("complete", "r"):
            with pytest.raises(RuntimeError, match="reduced"):
                linalg.qr(x, mode).R.sum().backward()


class TestLayout:
    """Where results lie in memory."""

    @pytest.mark.oracle
    @pytest.mark.parametrize(
        "call",
        [
            lambda m, x, b: m.linalg.inv(x), lambda m, x, b: m.linalg.solve(x, b), lambda m, x, b: m.linalg.cholesky(x),
            lambda m, x, b: m.linalg.eigh(x).eigenvectors, lambda m, x, b: m.linalg.eig(x).eigenvectors,
            lambda m, x, b: m.linalg.svd(x).U, lambda m, x, b: m.linalg.svd(x).Vh, lambda m, x, b: m.linalg.qr(x).Q,
            lambda m, x, b: m.linalg.lu_factor(x).LU, lambda m, x, b: m.linalg.lu_factor(x).pivots,
            lambda m, x, b: m.linalg.lu_solve(*m.linalg.lu_factor(x), b), lambda m, x, b: m.linalg.matrix_exp(x),
            lambda m, x, b: m.linalg.solve_triangular(x, b, upper=True), lambda m, x, b: m.linalg.lu(x).L,
            lambda m, x, b: m.linalg.solve_triangular(x, b.mT, upper=True, left=False), lambda m, x, b: m.geqrf(x).a,
            lambda m, x, b: m.linalg.ldl_factor(x).LD, lambda m, x, b: m.cholesky_solve(b, x),
            lambda m, x, b: m.linalg.solve(x, b.mT, left=False), lambda m, x, b: m.linalg.eigvalsh(x),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("batch", [(), (2,), (2, 20)])
    def test_strides_are_pytorchs(self, call: Any, batch: tuple[int, ...], torch: Any) -> None:
        """Matrices lie column after column where PyTorch's do, row after row elsewhere."""
        rng = np.random.default_rng(1)
        x, b = rng.normal(size=(*batch, 4, 4)), rng.normal(size=(*batch, 4, 3))
        x = x @ x.swapaxes(-1, -2) + 4 * np.eye(4)
        assert call(tc, tc.tensor(x), tc.tensor(b)).stride() == call(torch, torch.tensor(x), torch.tensor(b)).stride()

    def test_strided_and_expanded_matrices(self) -> None:
        """Matrices of any strides are factored as their copies are, and keep their values."""
        x = definite(4)
        for one in (x.mT, tc.stack([x, x], -1)[..., 0], x.expand(3, 4, 4), tc.stack([x] * 40).mT):
            kept = one.clone()
            assert tc.allclose(linalg.inv(one) @ one, tc.eye(4, dtype=tc.float64).expand(one.shape))
            assert bool((one == kept).all())

    def test_a_single_matrix_solves_a_batch(self) -> None:
        """One matrix stands for a whole batch of right sides, without a copy for each."""
        x, b = definite(3), normal(5, 2, 3, 4)
        assert tc.allclose(x @ linalg.solve(x, b), b)
        assert tc.allclose(x.tril() @ linalg.solve_triangular(x, b, upper=False), b)


class TestBatches:
    """Many small matrices, which are factored all at once."""

    @pytest.mark.parametrize("dtype", [tc.float32, tc.float64, tc.complex64, tc.complex128])
    @pytest.mark.parametrize("size", [1, 2, 3, 8])
    def test_are_factored_as_one_by_one(self, dtype: Any, size: int) -> None:
        """A batch of 150 gives what its matrices give alone."""
        real = normal(150, size, size)
        x = (tc.complex(real, normal(150, size, size)) if dtype.is_complex else real).to(dtype)
        x = x + (2 * size * tc.eye(size)).to(dtype)
        b = x[..., :1]
        for call in (
            lambda x, b: linalg.lu_factor(x).LU,
            lambda x, b: linalg.lu_factor(x).pivots,
            lambda x, b: linalg.solve(x, b),
            lambda x, b: linalg.lu_solve(*linalg.lu_factor(x), b, adjoint=True),
            lambda x, b: linalg.lu_solve(*linalg.lu_factor(x), b.mT, left=False),
            lambda x, b: linalg.solve_triangular(x, b, upper=True),
            lambda x, b: linalg.solve_triangular(x, b.mT, upper=False, left=False, unitriangular=True),
            lambda x, b: linalg.inv(x),
            lambda x, b: linalg.qr(x).R.abs(),
            lambda x, b: linalg.svdvals(x),
            lambda x, b: linalg.eigvalsh(x @ x.mH),
            lambda x, b: linalg.cholesky(x @ x.mH),
            lambda x, b: linalg.det(x),
        ):
            alone = tc.stack([call(x[i], b[i]) for i in range(150)])
            tolerance = 2e-3 if dtype.itemsize // (1 + dtype.is_complex) == 4 else 1e-9
            np.testing.assert_allclose(call(x, b).numpy(), alone.numpy(), rtol=tolerance, atol=tolerance)

    def test_right_sides_without_columns(self) -> None:
        """Nothing to solve for has a solution of its shape."""
        x = tc.stack([definite(2)] * 60)
        assert linalg.solve(x, normal(60, 2, 0)).shape == (60, 2, 0)
        assert linalg.solve_triangular(x, normal(60, 0, 2), upper=True, left=False).shape == (60, 0, 2)

    def test_a_batch_with_a_singular_one(self) -> None:
        """One matrix without an inverse does not change the others' results."""
        x = tc.stack([definite(3)] * 60)
        x[7] = 0.0
        made, info = linalg.inv_ex(x)
        assert info.nonzero().tolist() == [[7]]
        assert tc.allclose(made[8] @ x[8], tc.eye(3, dtype=tc.float64))
        assert linalg.cholesky_ex(x).info.nonzero().tolist() == [[7]]
        assert linalg.lu_factor_ex(x).info.tolist()[7] == 1


class TestLargeSpectra:
    """Some eigenvalues of large matrices."""

    @pytest.mark.parametrize("largest", [True, False])
    def test_lobpcg(self, largest: bool) -> None:
        """The pairs found satisfy A x = e B x, from the largest or the smallest on, with B-orthonormal vectors."""
        tc.manual_seed(1)
        a, b = definite(30), definite(30)
        for other in (None, b):
            values, vectors = tc.lobpcg(a, 3, B=other, largest=largest, niter=400, tol=1e-9)
            metric = tc.eye(30, dtype=tc.float64) if other is None else other
            whole = np.linalg.eigvals(np.linalg.solve(metric.numpy(), a.numpy())).real
            expected = np.sort(whole)[::-1][:3] if largest else np.sort(whole)[:3]
            np.testing.assert_allclose(values.numpy(), expected, rtol=1e-6)
            np.testing.assert_allclose((vectors.mT @ metric @ vectors).numpy(), np.eye(3), atol=1e-8)

    def test_lobpcg_has_a_gradient(self) -> None:
        """The values and the vectors' squares are differentiable."""
        x = definite(9).requires_grad_()
        gradcheck(lambda x: tc.lobpcg((x + x.mT) / 2, 2)[0], [x])

    def test_lobpcg_refuses_small_matrices(self) -> None:
        """Fewer rows than three times the values asked for are a ValueError."""
        with pytest.raises(ValueError, match="eigh"):
            tc.lobpcg(definite(5), 2)

    def test_low_rank(self) -> None:
        """Of a matrix of rank 2, two values and vectors give the whole matrix."""
        tc.manual_seed(0)
        x = normal(20, 2) @ normal(2, 15)
        u, s, v = tc.svd_lowrank(x, q=2)
        assert tc.allclose((u * s) @ v.mT, x)
        u, s, v = tc.pca_lowrank(x, q=2)
        assert tc.allclose((u * s) @ v.mT, x - x.mean(0))


def test_scipy_is_imported_at_the_first_factorisation() -> None:
    """A program that multiplies matrices never loads SciPy; one that inverts them does."""
    program = (
        "import sys, tensorcore as torch; x = torch.eye(3); (x @ x).sum(); before = 'scipy' in sys.modules;"
        "torch.linalg.matrix_norm(x); early = 'scipy' in sys.modules; torch.linalg.inv(x);"
        "print(before, early, 'scipy' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "False", "True"]


def test_names_are_pytorchs(torch: Any) -> None:
    """Every function of torch.linalg is in linalg."""
    names = [one for one in dir(torch.linalg) if not one.startswith("_") and callable(getattr(torch.linalg, one))]
    assert [one for one in names if not hasattr(linalg, one)] == []


def test_dtypes_that_do_not_mix() -> None:
    """Two dtypes are refused where PyTorch would read one as the other."""
    with pytest.raises(RuntimeError, match="same dtype"):
        linalg.solve_triangular(tc.eye(2), tc.ones(2, 1, dtype=tc.float64), upper=True)


def test_swaps_out_of_range_are_refused() -> None:
    """Row swaps with rows that are not there never reach memory."""
    lu, pivots = linalg.lu_factor(definite(3))
    for wrong in (pivots + 7, pivots - 3):
        with pytest.raises(RuntimeError, match="between 1 and"):
            tc.lu_unpack(lu, wrong)
        with pytest.raises(RuntimeError, match="between 1 and"):
            linalg.lu_solve(lu, wrong, normal(3, 1))
