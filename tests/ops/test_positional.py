"""Layers and losses called through ``torch`` itself, whose positions differ from those of ``nn.functional``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(5)
X, Y = RNG.standard_normal((4, 3, 5)).astype(np.float32), RNG.standard_normal((4, 3, 5)).astype(np.float32)
ROW = RNG.uniform(0.5, 2.0, (4, 3)).astype(np.float32)
SIGNS = np.array([1, -1, 1, -1])


def channels(lib: Any) -> list[Any]:
    """Scale, shift and statistics of three channels."""
    return [lib.tensor(one) for one in ROW]


CALLS: dict[str, Any] = {
    "embedding": lambda lib, x, y: lib.embedding(x[0], lib.tensor([2, 0, 2])),
    "embedding, padding": lambda lib, x, y: lib.embedding(x[0], lib.tensor([2, 0, 2]), 2, True, False),
    "batch_norm": lambda lib, x, y: lib.batch_norm(x, *channels(lib), False, 0.1, 1e-3, True),
    "batch_norm, training": lambda lib, x, y: lib.batch_norm(x, *channels(lib), training=True, momentum=0.1, eps=1e-3, cudnn_enabled=False),
    "instance_norm": lambda lib, x, y: lib.instance_norm(x, *channels(lib), True, 0.1, 1e-3, True),
    "layer_norm": lambda lib, x, y: lib.layer_norm(x, (5,), y[0, 0], y[1, 0], 1e-3, False),
    "group_norm": lambda lib, x, y: lib.group_norm(x, 3, *channels(lib)[:2], 1e-3, False),
    "binary_cross_entropy_with_logits": lambda lib, x, y: lib.binary_cross_entropy_with_logits(x, y.abs(), y.abs(), y.exp(), 2),
    "kl_div": lambda lib, x, y: lib.kl_div(x, y, 0, log_target=True),
    "ctc_loss": lambda lib, x, y: lib.ctc_loss(
        x.log_softmax(-1), lib.tensor([[1, 2], [3, 1], [4, 4]]), (4, 4, 4), (2, 1, 1), 0, 2, True
    ),
    "cosine_embedding_loss": lambda lib, x, y: lib.cosine_embedding_loss(x[:, 0], y[:, 0], lib.tensor(SIGNS), 0.1, 0),
    "hinge_embedding_loss": lambda lib, x, y: lib.hinge_embedding_loss(x[:, 0, 0], lib.tensor(SIGNS), 0.5, 2),
    "margin_ranking_loss": lambda lib, x, y: lib.margin_ranking_loss(x[:, 0, 0], y[:, 0, 0], lib.tensor(SIGNS), 0.5, 0),
    "poisson_nll_loss": lambda lib, x, y: lib.poisson_nll_loss(x, y.exp().round(), True, True, 1e-8, 2),
    "triplet_margin_loss": lambda lib, x, y: lib.triplet_margin_loss(x[:, 0], y[:, 0], x[:, 1], 2.0, 1.0, 1e-6, True, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_positions_are_those_of_torch(name: str) -> None:
    """Results and gradients are PyTorch's where each argument stands at its own place."""
    answers = []
    for lib in (tc, torch):
        x, y = lib.tensor(X, requires_grad=True), lib.tensor(Y)
        made = CALLS[name](lib, x, y)
        made.sum().backward()
        answers.append([made, x.grad])
    for found, expected in zip(*answers, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("reduction, kind", [("mean", TypeError), (True, TypeError), (3, ValueError), (-1, ValueError)])
def test_a_reduction_is_a_number_there(reduction: Any, kind: type[Exception]) -> None:
    """A name is refused as in PyTorch, and so is a number that is no reduction, which PyTorch takes for one."""
    with pytest.raises(kind, match=r"kl_div.*reduction"):
        tc.kl_div(tc.ones(2), tc.ones(2), reduction)
    if kind is TypeError:
        with pytest.raises(TypeError):
            torch.kl_div(torch.ones(2), torch.ones(2), reduction)
