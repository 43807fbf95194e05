"""What is timed on a GPU: programs of tensorcore and of PyTorch alike, with the bytes or operations that they must move."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

__all__ = ["ROWS", "Row", "Sizes"]

Program = Callable[[], Any]


class Sizes(NamedTuple):
    """How large the rows are: those of a GPU, or those of a rehearsal."""

    elements: int = 100_000_000
    side: int = 8192
    rows: int = 16384
    classes: int = 32768
    batch: int = 64
    length: int = 4096
    copied: int = 1 << 28


SMALL = Sizes(elements=4000, side=32, rows=16, classes=24, batch=2, length=16, copied=1 << 12)


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        name: what it times.
        make: takes the library (``tensorcore`` or ``torch``), the device and the sizes, and answers the program.
        bytes, operations: what a run must move or compute at least, from the sizes; 0 where that is not the point.
        target: the promised ratio to PyTorch's time.
        peer: what PyTorch runs in its place; the same where None.
    """

    name: str
    make: Callable[[Any, str, Sizes], Program]
    bytes: Callable[[Sizes], int] = lambda sizes: 0
    operations: Callable[[Sizes], int] = lambda sizes: 0
    target: float = 1.0
    peer: Callable[[Any, str, Sizes], Program] | None = None


def tiny(t: Any, device: str, sizes: Sizes) -> Program:
    x = t.ones(8, device=device)
    return lambda: x + x


def added(t: Any, device: str, sizes: Sizes) -> Program:
    x, y = t.ones(sizes.elements, device=device), t.ones(sizes.elements, device=device)
    out = t.empty_like(x)
    return lambda: t.add(x, y, out=out)


def gelu(t: Any, device: str, sizes: Sizes) -> Program:
    x = t.randn(sizes.elements, device=device)
    return lambda: t.nn.functional.gelu(x)


def summed(t: Any, device: str, sizes: Sizes) -> Program:
    x = t.randn(sizes.elements, device=device)
    return lambda: x.sum()


def row_means(t: Any, device: str, sizes: Sizes) -> Program:
    x = t.randn(sizes.rows, sizes.elements // sizes.rows, device=device)
    return lambda: x.mean(0)


def softmax(t: Any, device: str, sizes: Sizes) -> Program:
    x = t.randn(sizes.rows, sizes.elements // sizes.rows, device=device)
    return lambda: t.softmax(x, 1)


def layer_norm(t: Any, device: str, sizes: Sizes) -> Program:
    n = sizes.elements // sizes.rows
    x, layer = t.randn(sizes.rows, n, device=device), t.nn.LayerNorm(n).to(device)
    return lambda: layer(x)


def cross_entropy(t: Any, device: str, sizes: Sizes) -> Program:
    rows = max(sizes.elements // sizes.classes, 1)
    x = t.randn(rows, sizes.classes, device=device, requires_grad=True)
    target = t.randint(0, sizes.classes, (rows,), device=device)

    def run() -> None:
        x.grad = None
        t.nn.functional.cross_entropy(x, target).backward()

    return run


def adam(t: Any, device: str, sizes: Sizes) -> Program:
    parameters = [t.zeros(sizes.elements // 100, device=device).requires_grad_() for _ in range(100)]
    for one in parameters:
        one.grad = t.ones_like(one)
    optimizer = t.optim.AdamW(parameters, fused=True)
    return optimizer.step


def product(dtype: str, tf32: bool = False) -> Callable[[Any, str, Sizes], Program]:
    def make(t: Any, device: str, sizes: Sizes) -> Program:
        n = sizes.side
        x, y = (t.randn(n, n, device=device).to(getattr(t, dtype)) for _ in range(2))

        def run() -> Any:
            t.backends.cuda.matmul.allow_tf32 = tf32
            return x @ y

        return run

    return make


def convolution(channels: int, out: int, size: int, kernel: int) -> Callable[[Any, str, Sizes], Program]:
    def make(t: Any, device: str, sizes: Sizes) -> Program:
        size_now = size if sizes.batch > 2 else 6
        wide = 1 if sizes.batch > 2 else 16
        x = t.randn(sizes.batch, channels // wide, size_now, size_now, device=device).to(t.bfloat16)
        layer = (
            t.nn.Conv2d(channels // wide, out // wide, kernel, padding=kernel // 2, bias=False)
            .to(device)
            .to(t.bfloat16)
        )
        return lambda: layer(x)

    return make


def attention(t: Any, device: str, sizes: Sizes) -> Program:
    q, k, v = (t.randn(4, 16, sizes.length, 64, device=device).to(t.bfloat16) for _ in range(3))
    return lambda: t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def sent(t: Any, device: str, sizes: Sizes) -> Program:
    x = t.zeros(sizes.copied // 4).pin_memory()
    target = t.empty(sizes.copied // 4, device=device)
    return lambda: target.copy_(x, non_blocking=True)


def fetched(t: Any, device: str, sizes: Sizes) -> Program:
    x = t.zeros(sizes.copied // 4, device=device)
    return lambda: x.to("cpu", non_blocking=True)


def pageable(t: Any, device: str, sizes: Sizes) -> Program:
    x = t.zeros(sizes.copied // 4)
    return lambda: x.to(device)


# Training steps


def mlp(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def cnn(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 49, 10),
    )  # fmt: skip


def gpt(t: Any, wide: int, layers: int, heads: int, words: int, length: int) -> Any:
    nn = t.nn

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, wide), nn.Parameter(t.zeros(length, wide))
            self.blocks = nn.ModuleList(
                [
                    nn.TransformerEncoderLayer(wide, heads, 4 * wide, 0.0, "gelu", batch_first=True, norm_first=True)
                    for _ in range(layers)
                ]
            )
            self.norm, self.head = nn.LayerNorm(wide), nn.Linear(wide, words, bias=False)

        def forward(self, x: Any) -> Any:
            h = self.words(x) + self.places
            for block in self.blocks:
                h = block(h)
            return self.head(self.norm(h))

    return Decoder()


def step(kind: str, way: str) -> Callable[[Any, str, Sizes], Program]:
    """A training step: ``eager``, ``compiled`` or ``graphed``."""

    def make(t: Any, device: str, sizes: Sizes) -> Program:
        full = sizes.batch > 2
        if kind == "gpt":
            shape = (256, 4, 8, 8000, 256) if full else (16, 1, 2, 20, 8)
            model = gpt(t, *shape).to(device)
            x = t.randint(0, shape[3], (32 if full else 2, shape[4]), device=device)
            target = x.reshape(-1)
        else:
            model = (mlp if kind == "mlp" else cnn)(t).to(device)
            n = 256 if full else 2
            x = t.randn(n, 784, device=device) if kind == "mlp" else t.randn(n, 1, 28, 28, device=device)
            target = t.randint(0, 10, (n,), device=device)
        optimizer = t.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        forward = t.compile(model) if way == "compiled" else model

        def run() -> Any:
            optimizer.zero_grad(set_to_none=way != "graphed")
            out = forward(x)
            loss = t.nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), target)
            loss.backward()
            optimizer.step()
            return loss

        if way != "graphed":
            return run
        side = t.cuda.Stream()
        side.wait_stream(t.cuda.current_stream())
        with t.cuda.stream(side):
            for _ in range(3):
                run()
        t.cuda.current_stream().wait_stream(side)
        graph = t.cuda.CUDAGraph()
        with t.cuda.graph(graph):
            run()

        def replay(keep: Any = run) -> None:
            graph.replay()  # it keeps its own memory alive, and nothing that it reads: model and batch are the program's

        return replay

    return make


def _rows() -> Iterator[Row]:
    yield Row("tiny: add of 8 floats", tiny, target=1.2)
    yield Row("elementwise: add", added, bytes=lambda s: 12 * s.elements)
    yield Row("elementwise: gelu", gelu, bytes=lambda s: 8 * s.elements)
    yield Row("reduction: sum", summed, bytes=lambda s: 4 * s.elements)
    yield Row("reduction: means over rows", row_means, bytes=lambda s: 4 * s.elements)
    yield Row("softmax", softmax, bytes=lambda s: 8 * s.elements)
    yield Row("layer_norm", layer_norm, bytes=lambda s: 8 * s.elements)
    yield Row("cross_entropy, forward and backward", cross_entropy, bytes=lambda s: 12 * s.elements)
    yield Row("AdamW step", adam, bytes=lambda s: 28 * s.elements)
    for name, dtype, tf32 in (("f32", "float32", False), ("tf32", "float32", True), ("bf16", "bfloat16", False)):
        yield Row(f"GEMM {name}", product(dtype, tf32), operations=lambda s: 2 * s.side**3, target=1.05)
    for channels, out, size, kernel in ((64, 64, 56, 3), (256, 64, 56, 1), (128, 128, 28, 3), (512, 512, 7, 3)):
        count = 2 * channels * out * size * size * kernel * kernel
        yield Row(
            f"conv bf16 {channels} to {out}, {size}x{size}, {kernel}x{kernel}", convolution(channels, out, size, kernel),
            operations=lambda s, count=count: s.batch * count, target=1.05,
        )  # fmt: skip
    yield Row("attention bf16, causal", attention, operations=lambda s: 4 * 16 * 2 * s.length**2 * 64, target=1.05)
    yield Row("copy to the device, pinned", sent, bytes=lambda s: s.copied)
    yield Row("copy to the host, pinned", fetched, bytes=lambda s: s.copied)
    yield Row("copy to the device, pageable", pageable, bytes=lambda s: s.copied)
    for kind in ("mlp", "cnn", "gpt"):
        for way, target in (("eager", 1.0), ("compiled", 1.1), ("graphed", 0.9)):
            peer = step(kind, "eager") if way == "graphed" else None
            yield Row(f"{kind} step, {way}", step(kind, way), target=target, peer=peer)
    yield Row(
        "gpt step, graphed, beside torch.compile", step("gpt", "graphed"), target=1.1, peer=step("gpt", "compiled")
    )


ROWS = tuple(_rows())
