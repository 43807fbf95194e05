"""nn.attention.bias against PyTorch's."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import tensorcore as tc

torch = pytest.importorskip("torch")


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
