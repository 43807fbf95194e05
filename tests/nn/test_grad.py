"""nn.grad, the gradients of convolutions by size, against PyTorch's."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import tensorcore as tc

torch = pytest.importorskip("torch")


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
