"""Calls to test attention and alignment with; see ``samples/__init__.py`` for what the functions yield."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tensorcore.ops.samples import Call, Make

__all__ = ["attention", "ctc", "heads"]


def attention(array: Make) -> Iterator[Call]:
    """Two to five dims, masks of both kinds, a row that sees nothing, groups of heads, another scale."""
    yield (array(3, 4), array(5, 4), array(5, 2)), {}
    yield (array(2, 3, 4), array(2, 3, 4), array(2, 3, 4)), {"is_causal": True}
    yield (array(2, 2, 3, 4), array(2, 2, 5, 4), array(2, 2, 5, 3), array(3, 5)), {"scale": 0.3}
    seen = np.array([[True, False, True], [False, False, False]])
    yield (array(2, 2, 2, 4), array(2, 2, 3, 4), array(2, 2, 3, 4), seen), {}
    yield (array(2, 4, 3, 2), array(2, 2, 5, 2), array(2, 2, 5, 3)), {"enable_gqa": True}
    yield (array(2, 1, 2, 3, 2), array(2, 3, 2, 4, 2), array(2, 3, 2, 4, 2), array(2, 1, 1, 3, 4)), {}


def heads(array: Make) -> Iterator[Call]:
    """Two heads over a batch, with and without weights, masks, biases of their own, and other sizes of keys and values."""
    base = (array(3, 2, 4), array(5, 2, 4), array(5, 2, 4), 4, 2, array(12, 4), array(12))
    tail = (False, 0.0, array(4, 4), array(4))
    yield (*base, None, None, *tail), {"need_weights": False}
    padding = np.array([[False, False, True, False, True], [False, False, False, False, True]])
    yield (*base, None, None, *tail), {"key_padding_mask": padding}
    yield (*base, array(1, 1, 4), array(1, 1, 4), True, 0.0, array(4, 4), None), {"attn_mask": array(3, 5)}
    yield (*base, None, None, *tail), {"attn_mask": array(4, 3, 5), "key_padding_mask": padding, "need_weights": False}
    yield (
        (array(3, 2, 4), array(5, 2, 3), array(5, 2, 2), 4, 2, None, array(12), None, None, *tail),
        {
            "use_separate_proj_weight": True, "q_proj_weight": array(4, 4), "k_proj_weight": array(4, 3),
            "v_proj_weight": array(4, 2), "average_attn_weights": False,
        },
    )  # fmt: skip
    yield (
        (array(3, 4), array(5, 4), array(5, 4), 4, 2, array(12, 4), None, None, None, False, 0.0, array(4, 4), None),
        {},
    )


def ctc(array: Make) -> Iterator[Call]:
    """Labels in rows and in one row, repeats, none at all, too few frames, one sample."""

    def logs(*shape: int) -> np.ndarray:
        scores = array(*shape)
        return scores - np.log(np.exp(scores).sum(-1, keepdims=True))

    targets = np.array([[1, 2, 2], [3, 1, 0], [2, 0, 0]])
    for reduction in ("mean", "sum", "none"):
        yield (logs(6, 3, 4), targets, (6, 5, 4), (3, 2, 0)), {"reduction": reduction, "zero_infinity": False}
    yield (logs(5, 2, 4), np.array([1, 1, 3]), np.array([5, 4]), np.array([2, 1])), {"blank": 2, "zero_infinity": True}
    yield (
        (logs(3, 2, 4), np.array([[1, 1, 1], [2, 3, 0]]), (3, 3), (3, 2)),
        {"zero_infinity": True, "reduction": "none"},
    )
    yield (logs(4, 3), np.array([1, 2]), np.array(4), np.array(2)), {"reduction": "none", "zero_infinity": False}
