"""The first kernels on a device: one of each kind, checked against numbers known beforehand, a line for each.

``python -m asv_benchmarks.gpu_first [DEVICE]``; the last line of a run that hangs or dies says which kind did not come back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import tensorcore as tc

__all__ = ["main"]

F = tc.nn.functional


def main(device: str) -> int:
    """How many kinds gave something else than they should."""
    x = tc.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]).to(device)
    kinds: dict[str, tuple[Callable[[], Any], Any]] = {
        "copies": (lambda: x, [[0, 1, 2], [3, 4, 5]]),
        "elementwise": (lambda: x * 2 + x, [[0, 3, 6], [9, 12, 15]]),
        "strided, broadcast": (lambda: x.T[1:] + x[:, 0], [[1, 7], [2, 8]]),
        "casts": (lambda: x.bfloat16() + x.half().bfloat16(), [[0, 2, 4], [6, 8, 10]]),
        "reductions": (lambda: x.sum(1), [3, 12]),
        "columns": (lambda: x.amax(0), [3, 4, 5]),
        "softmax": (lambda: (x - x).softmax(1) * 3, [[1, 1, 1], [1, 1, 1]]),
        "norms": (lambda: F.layer_norm(x[:, ::2], (2,)).round(), [[-1, 1], [-1, 1]]),
        "products": (lambda: x @ x.T, [[5, 14], [14, 50]]),
        "products of bfloat16": (lambda: x.bfloat16() @ x.T.bfloat16(), [[5, 14], [14, 50]]),
        "places": (lambda: x[:, tc.tensor([2, 0], device=device)], [[2, 0], [5, 3]]),
        "sums by index": (
            lambda: tc.zeros(2, device=device).index_add(0, tc.tensor([1, 1], device=device), x[0, 1:]),
            [0, 3],
        ),
        "scans": (lambda: x.cumsum(1), [[0, 1, 3], [3, 7, 12]]),
        "sorting": (lambda: x.topk(2).values, [[2, 1], [5, 4]]),
        "convolution": (lambda: F.conv2d(x[None, None], tc.ones(1, 1, 2, 2, device=device)).flatten(), [8, 12]),
        "attention": (lambda: F.scaled_dot_product_attention(x - x, x, 2 * x).round()[0], [3, 5, 7]),
        "convolution of bfloat16": (
            lambda: (
                F.conv2d(tc.ones(1, 8, 4, 4, device=device).bfloat16(), tc.ones(8, 8, 3, 3, device=device).bfloat16())
                .float()
                .flatten()[::16]
            ),
            [72, 72],
        ),
        "attention of bfloat16": (
            lambda: F.scaled_dot_product_attention(*[tc.ones(1, 2, 8, 64, device=device).bfloat16()] * 3).float().sum(),
            1024,
        ),
        "random numbers": (lambda: (tc.rand(999, device=device) < 1).all(), True),
        "an optimizer": (lambda: _stepped(x), [[-1, 0, 1], [2, 3, 4]]),
        "page-locked memory": (lambda: tc.ones(3).pin_memory().to(device, non_blocking=True) + x[0], [1, 2, 3]),
        "a graph": (lambda: _graphed(x), [[5, 14], [14, 50]]),
    }
    wrong = 0
    for name, (call, expected) in kinds.items():
        print(f"{name}: ", end="", flush=True)
        try:
            found = call().tolist()
            note = "right" if found == expected else f"expected {expected}, got {found}"
        except Exception as error:
            note = f"{type(error).__name__}: {error}"
        wrong += note != "right"
        print(note, flush=True)
    return wrong


def _stepped(x: Any) -> Any:
    one = x.clone().requires_grad_()
    one.grad = tc.ones_like(x)
    tc.optim.SGD([one], lr=1.0).step()
    return one.detach()


def _graphed(x: Any) -> Any:
    graph = tc.cuda.CUDAGraph()
    with tc.cuda.graph(graph):
        made = x @ x.T
    graph.replay()
    return made


if __name__ == "__main__":
    raise SystemExit(min(main(sys.argv[1] if len(sys.argv) > 1 else "cuda:0"), 100))
