"""Attention and alignment beyond the sampled calls: what is masked, what is drawn, what is derived."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.autograd.gradcheck import gradcheck
from tensorcore.backend.xp import XPBackend

F = tc.nn.functional


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).uniform(-2.0, 2.0, shape)


class TestAttention:
    """scaled_dot_product_attention."""

    def test_a_row_that_sees_nothing_gives_zeros(self) -> None:
        """A row whose mask is False throughout has a result and gradients of zeros, not NaN."""
        x = tc.ones(2, 3, requires_grad=True)
        made = F.scaled_dot_product_attention(x, x, x, tc.tensor([[True, False], [False, False]]))
        made.sum().backward()
        assert made.tolist() == [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
        assert x.grad is not None
        assert x.grad.isfinite().all()

    def test_equal_keys_share_the_weight(self) -> None:
        """Queries that meet equal keys get the mean of the values; a causal row only that of the values so far."""
        q = tc.zeros(1, 1, 3, 2)
        v = tc.tensor([[[[3.0], [5.0], [10.0]]]])
        assert F.scaled_dot_product_attention(q, q, v).flatten().tolist() == [6.0, 6.0, 6.0]
        assert F.scaled_dot_product_attention(q, q, v, is_causal=True).flatten().tolist() == [3.0, 4.0, 6.0]

    def test_many_heads_are_worked_on_in_blocks(self) -> None:
        """A call of more scores than a block holds gives, with its gradients, what its batches give one by one."""
        q, k, v = (tc.from_numpy(numbers(3, 4, 200, 4)[:, :heads].copy()) for heads in (4, 2, 2))
        mask = tc.from_numpy(numbers(4, 1, 200)).requires_grad_()
        found = []
        for parts in ([slice(None)], [slice(i, i + 1) for i in range(3)]):
            leaves = [one.clone().requires_grad_() for one in (q, k, v)]
            made = tc.cat([
                F.scaled_dot_product_attention(*[one[part] for one in leaves], mask, enable_gqa=True) for part in parts
            ])  # fmt: skip
            found.append([made, *tc.autograd.grad((made * made).sum(), [*leaves, mask])])
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)

    @pytest.mark.oracle
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_dropout_takes_the_weights_that_pytorch_takes(self, torch: Any, dtype: str) -> None:
        """With one seed the same weights are zeroed, and the weights of a module that needs none are drawn alike."""
        arrays = [numbers(2, 3, 5, 4).astype(dtype) for _ in range(3)]
        found = []
        for module in (torch, tc):
            module.manual_seed(8)
            tensors = [module.from_numpy(one) for one in arrays]
            found.append(module.nn.functional.scaled_dot_product_attention(*tensors, dropout_p=0.3).numpy())
        np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)

    def test_mask_and_causal_exclude_each_other(self) -> None:
        """Two masks at once raise RuntimeError, as in PyTorch."""
        x = tc.ones(2, 2)
        with pytest.raises(RuntimeError, match="is_causal"):
            F.scaled_dot_product_attention(x, x, x, x, is_causal=True)


class TestAlignment:
    """ctc_loss."""

    def test_one_path_has_its_own_probability(self) -> None:
        """Two frames and two different labels allow one path: the loss is minus the sum of two logarithms."""
        logs = tc.tensor([[[0.1, 0.6, 0.3]], [[0.5, 0.2, 0.3]]], dtype=tc.float64).log()
        assert F.ctc_loss(logs, tc.tensor([[1, 2]]), (2,), (2,), reduction="sum").item() == pytest.approx(-np.log(0.18))

    @pytest.mark.parametrize("kernels", [True, False])
    def test_gradient_before_log_softmax_is_confirmed(self, kernels: bool) -> None:
        """Differences confirm the gradient of scores, with fused kernels and without, lengths that vary included."""
        place = tc.device("cpu") if kernels else _WithoutKernels()
        targets = tc.tensor([[1, 1, 2], [3, 0, 0]]).to(place)

        def loss(scores: tc.Tensor) -> tc.Tensor:
            return F.ctc_loss(scores.log_softmax(2), targets, (5, 4), (3, 1), reduction="sum")

        gradcheck(loss, [tc.from_numpy(numbers(5, 2, 4)).to(place).requires_grad_()])

    def test_too_few_frames(self) -> None:
        """Labels that do not fit cost infinity, or nothing with zero_infinity, whose gradient is zero."""
        logs = tc.zeros(1, 1, 3).log_softmax(2).requires_grad_()
        assert F.ctc_loss(logs, tc.tensor([[1, 2]]), (1,), (2,)).item() == float("inf")
        loss = F.ctc_loss(logs, tc.tensor([[1, 2]]), (1,), (2,), zero_infinity=True)
        loss.backward()
        assert loss.item() == 0.0
        assert logs.grad is not None
        assert logs.grad.tolist() == [[[0.0, 0.0, 0.0]]]

    @pytest.mark.parametrize(
        "lengths, counts, options, match",
        [
            ((3,), (1,), {}, "at most 2"),
            ((2,), (3,), {}, "at least 3"),
            ((2,), (1,), {"blank": 3}, "blank"),
            ((2, 2), (1,), {}, "batch_size"),
        ],
    )
    def test_lengths_that_do_not_fit(self, lengths: Any, counts: Any, options: Any, match: str) -> None:
        """Each raises RuntimeError before anything is read out of bounds."""
        with pytest.raises(RuntimeError, match=match):
            F.ctc_loss(tc.zeros(2, 1, 3), tc.tensor([[1, 2]]), lengths, counts, **options)


class _WithoutKernels(XPBackend):
    """NumPy without the fused kernels of this family."""

    def find_kernel(self, name: str) -> Any:
        return None if name.startswith(("ctc_loss", "attention")) else super().find_kernel(name)


def test_attention_of_heads_gives_weights_that_sum_to_one() -> None:
    """The weights asked for are means over the heads, and a padded column has none."""
    x = tc.from_numpy(numbers(3, 2, 4))
    weights = [tc.from_numpy(numbers(*shape)) for shape in ((12, 4), (12,), (4, 4), (4,))]
    padding = tc.tensor([[False, False, True], [False, False, False]])
    made, shown = F.multi_head_attention_forward(
        x, x, x, 4, 2, weights[0], weights[1], None, None, False, 0.0, weights[2], weights[3], key_padding_mask=padding
    )
    assert tuple(made.shape) == (3, 2, 4)
    assert shown is not None
    np.testing.assert_allclose(shown.sum(2).numpy(), np.ones((2, 3)), rtol=1e-12)
    assert shown[0, :, 2].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("count", [0, -1])
def test_a_recurrent_layer_has_at_least_one_layer(count: int) -> None:
    """A number of layers under one is refused by name; Python's division by zero came through."""
    x, h = tc.ones(2, 4, 3), tc.ones(1, 4, 5)
    weights = [tc.ones(5, 3), tc.ones(5, 5)]
    with pytest.raises(RuntimeError, match="at least one layer, got num_layers"):
        tc.rnn_relu(x, h, weights, False, count, 0.0, False, False, False)
