"""Runs families of C kernels while one of their allocations fails after the other; prints what went wrong."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator

import numpy as np

import tensorcore as tc
import tensorcore.nn.functional as F
from tensorcore_cpu import native

MOST = 8  # allocations of one call that are let fail


def drawn(*shape: int) -> tc.Tensor:
    return tc.randn(*shape)


def slopes(function: Callable[..., tc.Tensor], *inputs: tc.Tensor) -> Callable[[], list[tc.Tensor]]:
    """A call that gives the result and the gradient of each input."""

    def run() -> list[tc.Tensor]:
        leaves = [one.detach().clone().requires_grad_(True) for one in inputs]
        made = function(*leaves)
        return [made, *tc.autograd.grad(made.sum(), leaves)]

    return run


def stepped() -> list[tc.Tensor]:
    ones = [tc.nn.Parameter(tc.ones(300, 300)) for _ in range(3)]
    for one in ones:
        one.grad = tc.ones_like(one)
    tc.optim.Adam(ones).step()
    return ones


def calls() -> dict[str, Callable[[], list[tc.Tensor]]]:
    x, tall, image = drawn(200, 1500), drawn(1500, 200), drawn(2, 32, 24, 24)
    at, rows = tc.arange(3000) * 7 % 200, drawn(3000, 64)
    layer = tc.nn.LSTM(20, 40)
    program = tc.compile(lambda x: (F.gelu(x * 2 + 1) - x.mean(-1, keepdim=True)).sum(-1))
    square, drawn_once, steps = drawn(60, 60) + 9 * tc.eye(60), drawn(300), drawn(40, 3, 7).log_softmax(-1)
    halves = [drawn(2, 4, 70, 32) for _ in range(3)]
    return {
        "elementwise": lambda: [x + x, x + tall.t(), x.exp(), x.half()],
        "products": slopes(lambda a, b: F.relu(a) @ b, x, tall),
        "reductions": lambda: [x.sum(), x.sum(0), x.amax(0), x.norm(dim=0), x.cumsum(0)],
        "softmax": slopes(lambda x: x.softmax(0), x),
        "losses": slopes(lambda x: F.cross_entropy(x, tc.arange(1500) % 200) + F.mse_loss(x, x * 2), tall),
        "norms": slopes(lambda x, w: F.layer_norm(x, (1500,), w), x, drawn(1500)),
        "batch norms": slopes(lambda x: F.batch_norm(x, None, None, training=True), image),
        "winograd": slopes(lambda x, w: F.conv2d(x, w, padding=1), image, drawn(32, 32, 3, 3)),
        "taps": slopes(lambda x, w: F.conv2d(x, w, stride=2), image, drawn(16, 32, 5, 5)),
        "pointwise": slopes(lambda x, w: F.conv2d(x, w, stride=2), image, drawn(16, 32, 1, 1)),
        "depthwise": slopes(lambda x, w: F.conv2d(x, w, padding=1, groups=32), image, drawn(32, 1, 3, 3)),
        "pools": slopes(lambda x: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2), image),
        "wide pools": slopes(lambda x: F.max_pool2d(x, 3) + F.avg_pool2d(x, 3), drawn(1, 2, 6, 3000)),
        "sorts": lambda: [*x.sort(), *x.topk(7), *x.kthvalue(5)],
        "places": lambda: [
            x.index_add(0, at[:100], x[:100]),
            x.scatter_add(0, tc.zeros_like(x).long(), x),
            x.scatter_reduce(0, tc.zeros_like(x).long(), x, "mean"),
            tc.nonzero(x > 0),
            x[x > 0],
        ],
        "rows": slopes(lambda x: F.embedding(at, x), drawn(200, 64)),
        "sums of rows": lambda: [tc.zeros(200, 64).index_add(0, at, rows)],
        "folded windows": slopes(lambda x, w: F.conv_transpose2d(x, w, stride=2), image, drawn(32, 16, 4, 4)),
        "segments": slopes(lambda x: tc.segment_reduce(x, "amax", lengths=tc.tensor([50, 0, 150])), x),
        "counts": lambda: [
            tc.count_nonzero(x.t()),
            tc.bincount(at),
            tc.searchsorted(rows.sort()[0], rows * 2),
            tc.histc(x.t(), 9),
            tc.unique_consecutive(at // 3),
        ],
        "draws": lambda: [tc.multinomial(x.abs().t(), 3, generator=tc.Generator().manual_seed(8)).t()],
        "transforms": lambda: [tc.fft.rfft(x.t()).abs(), *[tc.fft.fft(drawn_once[:n]).real for n in (97, 289)]],
        "factors": lambda: [
            tc.linalg.solve(square, x[:60, :60]),
            tc.linalg.svdvals(square),
            tc.linalg.qr(square)[1].abs(),
        ],
        "samples": slopes(lambda x, at: F.grid_sample(x, at, align_corners=False), image, drawn(2, 9, 9, 2)),
        "columns": slopes(lambda x: F.fold(F.unfold(x, 3), (24, 24), 3), image),
        "margins and paths": lambda: [
            F.multi_margin_loss(tall, at[:1500] % 200),
            F.ctc_loss(steps, at[:30].reshape(3, 10) % 5 + 1, tc.tensor([40] * 3), tc.tensor([10] * 3)),
        ],
        "attention": slopes(F.scaled_dot_product_attention, *halves),
        "layers with steps": slopes(lambda x: layer(x)[0], drawn(15, 6, 20)),
        "distances": slopes(tc.cdist, drawn(50, 20), drawn(60, 20)),
        "optimizers": stepped,
        "programs": lambda: [program(x), program(x.reshape(3, -1))],
    }


def extent() -> tuple[int, int]:
    """Where the extension lies in memory."""
    found = []
    with open("/proc/self/maps") as lines:
        for line in lines:
            if line.rstrip().endswith(native._library.__file__):
                found += [int(one, 16) for one in line.split()[0].split("-")]
    return min(found), max(found)


def wrong(name: str, call: Callable[[], list[tc.Tensor]], shortage: Callable[..., int]) -> Iterator[str]:
    """What one family does that is neither right nor a MemoryError."""
    expected = [one.detach().numpy().copy() for one in call()]
    begin, end = (ctypes.c_void_p(one) for one in extent())
    for also in (0, 1):
        for number in range(MOST):
            made, failed = None, ""  # what was made before lies unused by then
            native.empty_cache()
            shortage(number, also, begin, end)
            try:
                made = call()
            except MemoryError:
                pass
            except Exception as error:
                failed = repr(error)
            asked = shortage(-1, 0, begin, end)
            if failed or (made is not None and not same(made, expected)):
                yield f"{name}: allocation {number}, {'and all after it' if also else 'alone'}: {failed or 'wrong values'}"
            if not asked:
                yield f"{name}: asks for no memory"
            if asked <= number:
                break


def same(made: list[tc.Tensor], expected: list[np.ndarray]) -> bool:
    return all(
        np.allclose(one.detach().numpy(), other, rtol=1e-3, atol=1e-3)
        for one, other in zip(made, expected, strict=True)
    )


if __name__ == "__main__":
    shortage = ctypes.CDLL(sys.argv[1]).shortage
    shortage.restype = ctypes.c_long
    tc.manual_seed(8)
    tc.set_num_threads(2)
    found = [line for name, call in calls().items() for line in wrong(name, call, shortage)]
    print("\n".join(found) or "right")
