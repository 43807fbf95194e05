"""Attention with scores changed by functions, and its block masks."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
)


def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


def tensors(module: Any, seed: int, *shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [module.tensor(rng.standard_normal(shape).astype(np.float32)) for shape in shapes]


def test_a_causal_mask_is_that_of_dense_attention() -> None:
    """Blocks of any size give what ``is_causal`` gives, values and gradients."""
    expected = found = None
    for size in (2, 4, 128):
        q, k, v = [one.requires_grad_() for one in tensors(tc, 0, (2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 4))]
        mask = create_block_mask(causal, None, None, 5, 5, BLOCK_SIZE=size)
        made = flex_attention(q, k, v, block_mask=mask)
        found = made, *tc.autograd.grad(made.square().sum(), (q, k, v))
        dense = tc.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        expected = dense, *tc.autograd.grad(dense.square().sum(), (q, k, v))
        for one, other in zip(found, expected, strict=True):
            tc.testing.assert_close(one, other)


def test_scores_may_index_tensors() -> None:
    """A score function indexes tensors with its scalars, one after the other, and gradients flow into them."""
    (q,) = tensors(tc, 1, (1, 2, 3, 4))
    bias = tc.arange(10.0).reshape(2, 5).requires_grad_()
    made = flex_attention(q, q, q, lambda s, b, h, i, j: s + bias[h][i - j + 2])
    places = tc.arange(3)[:, None] - tc.arange(3)[None] + 2
    expected = tc.nn.functional.scaled_dot_product_attention(q, q, q, bias[:, places][None])
    tc.testing.assert_close(made, expected)
    found, wanted = (tc.autograd.grad(one.square().sum(), bias)[0] for one in (made, expected))
    tc.testing.assert_close(found, wanted)


def test_blocks_are_counted_and_listed() -> None:
    """Whole blocks are told from those that the function decides about, both ways round."""
    mask = create_block_mask(causal, None, None, 8, 8, BLOCK_SIZE=4)
    assert mask.kv_num_blocks.tolist() == [[[1, 1]]]
    assert mask.kv_indices[0, 0, :, 0].tolist() == [0, 1]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1]]]
    assert mask.full_q_num_blocks.tolist() == [[[1, 0]]]
    assert (mask.shape, mask.numel(), mask.sparsity()) == ((1, 1, 8, 8), 64, 25.0)
    assert mask.to_dense().tolist() == [[[[1, 0], [1, 1]]]]
    assert mask.to("cpu").to_dense().tolist() == mask.to_dense().tolist()


def test_blocks_that_are_not_named_are_not_looked_at() -> None:
    """A window of blocks narrows what the function allows."""
    mask = create_block_mask(causal, None, None, 8, 8, BLOCK_SIZE=4)
    own = BlockMask.from_kv_blocks(mask.kv_num_blocks, mask.kv_indices, BLOCK_SIZE=4, mask_mod=causal)
    q, v = tensors(tc, 2, (1, 1, 8, 4), (1, 1, 8, 4))
    found = flex_attention(q, q, v, block_mask=own)
    second = tc.nn.functional.scaled_dot_product_attention(q[:, :, 4:], q[:, :, 4:], v[:, :, 4:], is_causal=True)
    tc.testing.assert_close(found[:, :, 4:], second)


def test_rows_that_look_nowhere_give_zeros() -> None:
    """Such rows have zeros, and a sum of exponentials of 0."""
    (q,) = tensors(tc, 3, (1, 1, 4, 2))
    mask = create_block_mask(lambda b, h, i, j: i < 2, None, None, 4, 4)
    made, aux = flex_attention(q, q, q, block_mask=mask, return_aux=AuxRequest(lse=True, max_scores=True))
    assert made[0, 0, 2:].tolist() == [[0, 0], [0, 0]]
    assert aux.lse[0, 0, 2:].tolist() == aux.max_scores[0, 0, 2:].tolist() == [float("-inf")] * 2


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda q: flex_attention(q[0], q[0], q[0]), NotImplementedError, "must be 4D"),
        (lambda q: flex_attention(q, q[..., :1], q), ValueError, "same embedding dimension"),
        (lambda q: flex_attention(q, q[:, :1], q[:, :1]), ValueError, "enable_gqa"),
        (lambda q: flex_attention(q, q[:1], q[:1]), ValueError, "same batch size"),
        (
            lambda q: flex_attention(q, q, q, block_mask=create_block_mask(causal, 1, 1, 9, 9)),
            ValueError,
            "create one of these",
        ),
        (lambda q: flex_attention(q, q, q, return_lse=True, return_aux=AuxRequest()), ValueError, "return_aux alone"),
        (lambda q: create_block_mask(lambda s, b, h, i, j: s, 1, 1, 4, 4), AssertionError, "mask_mod function"),
        (lambda q: and_masks(3), RuntimeError, "callable mask_mods"),
    ],
)
def test_wrong_arguments_are_refused(call: Any, error: type[Exception], words: str) -> None:
    """Shapes, lengths and functions that do not fit are named."""
    with pytest.raises(error, match=words):
        call(tc.ones(2, 2, 4, 3))


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_as_in_pytorch(torch: Any) -> None:
    """Documents, biases and grouped heads: values, block tensors, masks and text are PyTorch's."""
    found = []
    for module in (tc, torch):
        flex = importlib.import_module(f"{module.__name__}.nn.attention.flex_attention")
        q, k, v = tensors(module, 4, (2, 4, 10, 8), (2, 2, 12, 8), (2, 2, 12, 6))
        (bias,) = tensors(module, 5, (4, 30))
        text = module.tensor([0] * 5 + [1] * 7)

        def alike(b: Any, h: Any, i: Any, j: Any, text: Any = text) -> Any:
            return text[i] == text[j]

        def first(b: Any, h: Any, i: Any, j: Any) -> Any:
            return (h == 1) & (j < 2)

        def shifted(score: Any, b: Any, h: Any, i: Any, j: Any, bias: Any = bias) -> Any:
            return score + bias[h, i - j + 12]

        both = flex.or_masks(flex.and_masks(causal, alike), first)
        mask = flex.create_block_mask(both, 2, 4, 10, 12, device="cpu", BLOCK_SIZE=(5, 4))
        made = flex.flex_attention(q, k, v, shifted, mask, enable_gqa=True, return_lse=True)
        tables = [mask.kv_num_blocks, mask.kv_indices, mask.full_q_num_blocks, mask.full_q_indices, mask.to_dense()]
        found.append(
            (
                [one.numpy() for one in made],
                [one.tolist() for one in tables],
                flex.create_mask(both, 2, 4, 10, 12, device="cpu").tolist(),
                repr(mask),
            )
        )
    for one, other in zip(found[0][0], found[1][0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert found[0][1:] == found[1][1:]


def test_a_mask_from_scores() -> None:
    """A score function makes a mask of where it leaves something."""
    made = create_mask(lambda s, b, h, i, j: tc.where(i > j, s, float("-inf")), None, None, 2, 2)
    assert made.tolist() == [[[[False, False], [True, False]]]]
