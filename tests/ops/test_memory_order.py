"""In which order results lie in memory: as PyTorch's do, for inputs with their channels innermost or their dims in another order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorcore as tc
from tensorcore_cpu import native

torch = pytest.importorskip("torch")

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "row-major": lambda x: x.reshape(2, 8, 6, 6),
    "channels last": lambda x: x.reshape(2, 6, 6, 8).permute(0, 3, 1, 2),
    "one image": lambda x: x.reshape(2, 6, 6, 8)[:1].permute(0, 3, 1, 2),
    "half of the channels": lambda x: x.tile(2).reshape(2, 6, 6, 16).permute(0, 3, 1, 2)[:, :8],
    "transposed": lambda x: x.reshape(2, 8, 6, 6).transpose(2, 3),
    "rows before channels": lambda x: x.reshape(2, 6, 8, 6).transpose(1, 2),
}
OPS: dict[str, Callable[[Any, Any], Any]] = {
    "conv": lambda t, x: t.conv2d(x, t.ones(5, 8, 3, 3), padding=1),
    "conv, weight": lambda t, x: t.conv2d(x, t.ones(5, 8, 3, 3).to(memory_format=t.channels_last)),
    "conv, pointwise": lambda t, x: t.conv2d(x, t.ones(5, 8, 1, 1)),
    "conv, groups": lambda t, x: t.conv2d(x, t.ones(8, 1, 3, 3), groups=8),
    "conv_transpose": lambda t, x: t.conv_transpose2d(x, t.ones(8, 4, 2, 2), stride=2),
    "batch_norm": lambda t, x: t.nn.functional.batch_norm(x, None, None, t.ones(8), t.ones(8), True),
    "batch_norm, running": lambda t, x: t.nn.functional.batch_norm(x, t.zeros(8), t.ones(8)),
    "group_norm": lambda t, x: t.nn.functional.group_norm(x, 2),
    "instance_norm": lambda t, x: t.nn.functional.instance_norm(x),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, x.shape[1:]),
    "rms_norm": lambda t, x: t.nn.functional.rms_norm(x, x.shape[-1:]),
    "local_response_norm": lambda t, x: t.nn.functional.local_response_norm(x, 3),
    "max_pool": lambda t, x: t.nn.functional.max_pool2d(x, 2),
    "max_pool, indices": lambda t, x: t.nn.functional.max_pool2d(x, 2, return_indices=True)[1],
    "avg_pool": lambda t, x: t.nn.functional.avg_pool2d(x, 2),
    "adaptive_avg_pool": lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, 4),
    "adaptive_max_pool": lambda t, x: t.nn.functional.adaptive_max_pool2d(x, 3),
    "adaptive_max_pool, uneven": lambda t, x: t.nn.functional.adaptive_max_pool2d(x, 4),
    "adaptive_max_pool, indices": lambda t, x: t.nn.functional.adaptive_max_pool2d(x, (4, 2), return_indices=True)[1],
    "fractional_max_pool": lambda t, x: t.nn.functional.fractional_max_pool2d(x, 2, output_size=(3, 4)),
    "grid_sample": lambda t, x: t.nn.functional.grid_sample(x, t.ones(x.shape[0], 5, 4, 2) / 3, align_corners=False),
    "renorm": lambda t, x: x.renorm(2, 1, 1.0),
    "ravel": lambda t, x: x[..., 0, ::2].ravel() + x[0, 0, 0, ::2].ravel()[0],
    "ravel, vector": lambda t, x: x[0, 0, 0, ::2].ravel(),
    "isreal": lambda t, x: t.isreal(x) + 0.0,
    "isposinf, integers": lambda t, x: t.isposinf(x.to(t.int16)) + 0.0,
    "rrelu": lambda t, x: t.nn.functional.rrelu(x),
    "nearest": lambda t, x: t.nn.functional.interpolate(x, scale_factor=2),
    "bilinear": lambda t, x: t.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "antialias": lambda t, x: t.nn.functional.interpolate(x, (3, 3), mode="bilinear", antialias=True),
    "area": lambda t, x: t.nn.functional.interpolate(x, (3, 3), mode="area"),
    "pad": lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1)),
    "pad, reflect": lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "pad, circular": lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), mode="circular"),
    "pixel_shuffle": lambda t, x: t.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda t, x: t.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda t, x: t.channel_shuffle(x, 2),
    "cat": lambda t, x: t.cat([x, x], 1),
    "cat, first row-major": lambda t, x: t.cat([t.ones(tuple(x.shape)), x], 1),
    "stack": lambda t, x: t.stack([x, x]),
    "flip": lambda t, x: x.flip((1, 2)),
    "roll": lambda t, x: x.roll((1, 1), (2, 3)),
    "roll, flat": lambda t, x: x.roll(2),
    "rot90": lambda t, x: x.rot90(1, (2, 3)),
    "sort": lambda t, x: x.sort(1)[1],
    "sum": lambda t, x: x.sum(1),
    "mean": lambda t, x: x.mean((2, 3), keepdim=True),
    "lerp": lambda t, x: t.lerp(x, t.ones(tuple(x.shape)), 0.3),
    "pow": lambda t, x: x.abs() ** t.ones(tuple(x.shape)),
    "copysign": lambda t, x: t.copysign(x, t.ones(tuple(x.shape))),
    "complex product": lambda t, x: t.complex(x, x) * t.ones(tuple(x.shape), dtype=t.complex64),
    "masked_fill": lambda t, x: x.masked_fill(x > 0, 0.0),
    "index_fill": lambda t, x: x.index_fill(1, t.tensor([0]), 2.0),
    "binary_cross_entropy": lambda t, x: t.nn.functional.binary_cross_entropy(
        x.sigmoid(), t.ones(tuple(x.shape)), reduction="none"),
    "binary_cross_entropy_with_logits": lambda t, x: t.nn.functional.binary_cross_entropy_with_logits(
        x, t.ones(tuple(x.shape)), reduction="none"),
}  # fmt: skip


# NumPy's own functions let row-major order win where operands differ; the kernels in C stand before them.
DISPUTED = {"local_response_norm", "lerp", "copysign", "complex product", "binary_cross_entropy"}


def laid_out(library: Any, layout: str) -> Any:
    """The same values in each library."""
    return LAYOUTS[layout](library.linspace(-2.0, 3.0, 2 * 8 * 6 * 6))


def order(tensor: Any) -> list[int]:
    """The strides of the dims that have several elements; those of others are nobody's order."""
    return [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


@pytest.mark.parametrize("name", OPS)
def test_a_result_lies_in_memory_as_in_pytorch(name: str) -> None:
    """Strides and values of an op's result are PyTorch's, whatever the input lies like; on meta the strides are the same."""
    if name in DISPUTED and not native.available():
        pytest.skip("the kernels in C were not built")
    for layout in LAYOUTS:
        expected, found = OPS[name](torch, laid_out(torch, layout)), OPS[name](tc, laid_out(tc, layout))
        assert order(found) == order(expected), layout
        assert torch.allclose(torch.from_numpy(found.contiguous().numpy()), expected, atol=1e-5, equal_nan=True), layout
        with tc.device("meta"):
            assert order(OPS[name](tc, laid_out(tc, layout))) == order(expected), f"{layout} on meta"


@pytest.mark.parametrize("name", ["conv3d", "batch_norm", "max_pool3d", "pad", "cat", "interpolate"])
def test_volumes_keep_their_channels_last(name: str) -> None:
    """Five dims are no different."""

    def run(library: Any) -> Any:
        functional = library.nn.functional
        x = library.linspace(0.0, 1.0, 480).reshape(2, 3, 4, 5, 4).permute(0, 4, 1, 2, 3)
        return {
            "conv3d": lambda: functional.conv3d(x, library.ones(6, 4, 2, 2, 2)),
            "batch_norm": lambda: functional.batch_norm(x, None, None, training=True),
            "max_pool3d": lambda: functional.max_pool3d(x, 2),
            "pad": lambda: functional.pad(x, (1, 1)),
            "cat": lambda: library.cat([x, x], 1),
            "interpolate": lambda: functional.interpolate(x, scale_factor=2, mode="trilinear"),
        }[name]()

    assert order(run(tc)) == order(run(torch))


def test_a_dropout_behind_a_convolution_drops_the_same_elements() -> None:
    """A draw runs in memory order: behind layers of an input with its channels last it gives PyTorch's mask."""

    def run(library: Any) -> Any:
        library.manual_seed(3)
        functional, x = library.nn.functional, laid_out(library, "channels last")
        x = functional.batch_norm(functional.conv2d(x, library.ones(4, 8, 3, 3) / 8), None, None, training=True)
        return functional.dropout(functional.max_pool2d(x, 2), 0.5) != 0

    assert run(tc).tolist() == run(torch).tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradient_of_a_leaf_lies_as_the_leaf_does(layout: str) -> None:
    """``grad`` has the strides of a leaf whose memory has no gaps, and is row-major for others."""

    def run(library: Any) -> Any:
        leaf = laid_out(library, layout).detach().requires_grad_()
        (library.conv2d(leaf, library.ones(5, 8, 3, 3)) ** 2).sum().backward()
        return leaf.grad

    assert order(run(tc)) == order(run(torch))


@pytest.mark.skipif(not native.available(), reason="of NumPy's arrays it is not asked what a size of 1 is worth")
def test_row_major_arguments_are_not_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is put in order where all arguments are row-major, sizes of 1 included."""
    from tensorcore.backend import layouts

    device = tc.device("cpu")
    monkeypatch.setattr(layouts, "is_channels_last", lambda *_: pytest.fail("looked"))
    x = tc.ones(1, 8, 6, 6, device=device)
    made = tc.nn.functional.max_pool2d(tc.conv2d(x, tc.ones(1, 8, 3, 3)), 2)
    assert tc.cat([made, made]).is_contiguous()
