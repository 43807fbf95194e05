"""Smaller rooms that ordinary programs visit, against PyTorch's: nn.grad, make_tensor, attention biases, fake quantisation."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import tensorcore as tc

torch = pytest.importorskip("torch")


def alike(found: Any, expected: Any) -> None:
    assert str(found.dtype) == str(expected.dtype)
    np.testing.assert_array_equal(found.detach().numpy(), expected.detach().numpy())


MADE: dict[str, Any] = {
    "float": lambda lib, make: make(3, 2, dtype=lib.float32, device="cpu"),
    "double in bounds": lambda lib, make: make((3, 2), dtype=lib.float64, device="cpu", low=-1, high=1.5),
    "apart": lambda lib, make: make((2, 3), dtype=lib.int64, device="cpu", noncontiguous=True),
    "bytes": lambda lib, make: make([4], dtype=lib.uint8, device="cpu", low=-5, high=600),
    "bools": lambda lib, make: make(4, dtype=lib.bool, device="cpu"),
    "complex": lambda lib, make: make(4, dtype=lib.complex64, device="cpu"),
    "without zeros": lambda lib, make: make(40, dtype=lib.int32, device="cpu", low=0, high=3, exclude_zero=True),
    "everything": lambda lib, make: make(4, dtype=lib.float32, device="cpu", low=-1e39, high=1e39),
}


@pytest.mark.parametrize("name", MADE)
def test_make_tensor_draws_pytorchs_values(name: str) -> None:
    """The same seed gives the same values, within what the dtype holds."""
    tc.manual_seed(3)
    torch.manual_seed(3)
    from torch.testing import make_tensor as theirs

    found, expected = MADE[name](tc, tc.testing.make_tensor), MADE[name](torch, theirs)
    alike(found, expected)
    assert (found.stride(), found.requires_grad) == (expected.stride(), expected.requires_grad)


def test_make_tensor_refuses_what_pytorch_refuses() -> None:
    """NaN and empty intervals, gradients of integers, and two layouts at once."""
    make = tc.testing.make_tensor
    for options in (
        dict(low=float("nan")), dict(low=2, high=1), dict(requires_grad=True), dict(low=300, dtype=tc.uint8, high=400),
        dict(noncontiguous=True, memory_format=tc.contiguous_format),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="make_tensor"):
            make(3, **{"dtype": tc.int32, "device": "cpu", **options})
    assert make(3, dtype=tc.float32, device="cpu", requires_grad=True).requires_grad


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_gradients_of_convolutions_by_size(ndim: int) -> None:
    """nn.grad gives PyTorch's gradients, with strides, groups and dilation, and their own gradients."""
    rng = np.random.default_rng(ndim)
    input, weight = rng.standard_normal((2, 4, *[7] * ndim)), rng.standard_normal((6, 2, *[3] * ndim))
    options = dict(stride=2, padding=1, dilation=2, groups=2)
    answers = []
    for lib in (tc, torch):
        x, w = lib.tensor(input), lib.tensor(weight, requires_grad=True)
        g = lib.ones_like(getattr(lib.nn.functional, f"conv{ndim}d")(x, w, **options)).cumsum(-1)
        rooms = importlib.import_module(f"{lib.__name__}.nn.grad")
        first = getattr(rooms, f"conv{ndim}d_input")(x.shape, w, g, **options)
        second = getattr(rooms, f"conv{ndim}d_weight")(x, w.shape, g, **options)
        assert not second.requires_grad
        answers.append([first, second, *lib.autograd.grad(first.square().sum(), w)])
    for found, expected in zip(*answers, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("size", [(3, 3), (3, 5)])
@pytest.mark.parametrize("corner", ["causal_upper_left", "causal_lower_right"])
def test_attention_takes_causal_biases(corner: str, size: tuple[int, int]) -> None:
    """A bias gives what its elements as a mask give, and prints as they do."""
    rng = np.random.default_rng(0)
    q, k, v = [rng.standard_normal((2, n, 4)).astype(np.float32) for n in (size[0], size[1], size[1])]
    answers = []
    for lib in (tc, torch):
        bias = getattr(importlib.import_module(f"{lib.__name__}.nn.attention.bias"), corner)(*size)
        attend = lib.nn.functional.scaled_dot_product_attention
        q4, k4, v4 = [lib.tensor(one).unsqueeze(0) for one in (q, k, v)]
        answers.append((attend(q4, k4, v4, bias), repr(bias._materialize())))
        with pytest.raises(ValueError, match="should not be used with causal=True"):
            attend(q4, k4, v4, bias, is_causal=True)
        with pytest.raises(AssertionError):
            getattr(importlib.import_module(f"{lib.__name__}.nn.attention.bias"), corner)(3)
    np.testing.assert_allclose(answers[0][0].numpy(), answers[1][0].numpy(), atol=1e-6)
    assert answers[0][1] == answers[1][1]


VALUES = [[float("nan"), 0.05, -0.35, 1e30], [12.75, 0.15, -1e20, 3.0]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_fake_quantisation_rounds_as_pytorch(dtype: str) -> None:
    """Values are PyTorch's to the bit, and the gradient passes where the value was in range."""
    answers = []
    for lib in (tc, torch):
        x = lib.tensor(VALUES).clamp(max=6e4).to(getattr(lib, dtype)).requires_grad_()
        scale, zero = lib.tensor([0.1, 0.2]), lib.tensor([3, 4], dtype=lib.int32)
        for made in (
            lib.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255),
            lib.fake_quantize_per_tensor_affine(x, lib.tensor(0.3), lib.tensor(-2), -8, 7),
            lib.fake_quantize_per_channel_affine(x, scale, zero, 0, 0, 255),
            lib.fake_quantize_per_channel_affine(x[:, :2], scale, zero.float(), 1, -7, 15),
        ):
            answers.append((made.float(), lib.autograd.grad(made.float().sum(), x)[0].float()))
    for found, expected in zip(answers[:4], answers[4:], strict=True):
        alike(found[0], expected[0])
        alike(found[1], expected[1])


BAD: dict[str, Any] = {
    "integers": lambda lib: lib.fake_quantize_per_tensor_affine(lib.ones(2).int(), 0.1, 0, 0, 9),
    "empty range": lambda lib: lib.fake_quantize_per_tensor_affine(lib.ones(2), 0.1, 0, 9, 0),
    "zero point out of range": lambda lib: lib.fake_quantize_per_tensor_affine(lib.ones(2), 0.1, 10, 0, 9),
    "several scales": lambda lib: lib.fake_quantize_per_tensor_affine(lib.ones(2), lib.ones(2), lib.ones(2), 0, 9),
    "double scale": lambda lib: lib.fake_quantize_per_channel_affine(lib.ones(2), lib.ones(2).double(), lib.ones(2), 0, 0, 9),
    "long zero points": lambda lib: lib.fake_quantize_per_channel_affine(lib.ones(2), lib.ones(2), lib.ones(2).long(), 0, 0, 9),
    "wrong size": lambda lib: lib.fake_quantize_per_channel_affine(lib.ones(2), lib.ones(3), lib.ones(3), 0, 0, 9),
    "wrong axis": lambda lib: lib.fake_quantize_per_channel_affine(lib.ones(2), lib.ones(2), lib.ones(2), 1, 0, 9),
    "repeated offsets": lambda lib: lib.sparse.spdiags(lib.ones(2, 3), lib.tensor([1, 1]), (3, 3)),
    "too few offsets": lambda lib: lib.sparse.spdiags(lib.ones(2, 3), lib.tensor([1]), (3, 3)),
    "short offsets": lambda lib: lib.sparse.spdiags(lib.ones(1, 3), lib.tensor([1]).int(), (3, 3)),
    "a shape of three": lambda lib: lib.sparse.spdiags(lib.ones(1, 3), lib.tensor([1]), (3, 3, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_calls_raise_as_pytorch(name: str) -> None:
    """The same kind of exception in both."""
    with pytest.raises(Exception) as theirs:
        BAD[name](torch)
    with pytest.raises(type(theirs.value)):
        BAD[name](tc)


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_spdiags_sets_diagonals() -> None:
    """Above, on and below the main diagonal, of matrices larger and smaller than the diagonals, in COO and CSR."""
    for shape in ((5, 5), (2, 4), (3, 3)):
        answers = []
        for lib in (tc, torch):
            rows = lib.arange(9.0).reshape(3, 3) + 1
            made = lib.sparse.spdiags(rows, lib.tensor([0, -1, 2]), shape)
            packed = lib.sparse.spdiags(rows, lib.tensor([0, -1, 2]), shape, layout=lib.sparse_csr)
            answers.append((made.to_dense(), packed.to_dense(), made._indices(), packed.crow_indices()))
        for found, expected in zip(*answers, strict=True):
            alike(found, expected)
    # A diagonal wholly outside sets nothing; PyTorch wraps it into another row.
    outside = tc.sparse.spdiags(tc.arange(3.0), tc.tensor([2]), (4, 2))
    assert (outside._nnz(), outside.shape) == (0, (4, 2))


def test_submodules_by_their_names() -> None:
    """What programs import from cpu, cuda and return_types is there, and does what a host does: nothing."""
    for room in ("memory", "random"):
        ours, theirs = importlib.import_module(f"tensorcore.cuda.{room}"), importlib.import_module(f"torch.cuda.{room}")
        assert set(ours.__all__) <= set(theirs.__all__)
        assert all(getattr(ours, name) is getattr(tc.cuda, name) for name in ours.__all__)
    mine = tc.cpu.Stream()
    with tc.cpu.stream(mine):
        assert tc.cpu.current_stream() is mine
        with tc.cpu.stream(None):
            assert tc.cpu.current_stream() is mine
    assert tc.cpu.current_stream() is not mine
    assert (tc.cpu.current_device(), tc.cpu.device_count(), tc.cpu.synchronize()) == ("cpu", 1, None)
    assert set(torch.cpu.__all__) - set(tc.cpu.__all__) == {"get_capabilities"}
    assert isinstance(tc.ones(2, 2).max(0), tc.return_types.max)
    assert isinstance(tc.linalg.qr(tc.ones(2, 2)), tc.return_types.linalg_qr)
    assert not hasattr(tc.return_types, "nothing")
    assert issubclass(tc.testing.DeviceLost, tc.AcceleratorError)
