"""einops takes tensors, whichever of the two is imported first, and has layers for them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tensorcore as tc

einops = pytest.importorskip("einops")


@pytest.mark.parametrize(
    "call",
    [
        lambda e, x: e.rearrange(x, "a (b c) d -> c a (d b)", b=2),
        lambda e, x: e.reduce(x, "a b c -> c", "max"),
        lambda e, x: e.reduce(x, "a b c -> b", "mean"),
        lambda e, x: e.reduce(x, "a b c -> a", "prod"),
        lambda e, x: e.repeat(x, "a b c -> a (r b) c", r=2),
        lambda e, x: e.pack([x, x[0]], "* d")[0],
        lambda e, x: e.unpack(x, [(2,), (2,)], "a * c")[1],
        lambda e, x: e.einsum(x, x, "a b c, a d c -> b d"),
        lambda e, x: e.rearrange([x, x], "l a b c -> a (l b) c"),
    ],
)
def test_functions_give_what_they_give_for_pytorch(torch, call) -> None:
    """Values and gradients are those of PyTorch's tensors."""
    found = []
    for one in (tc, torch):
        x = (one.arange(24.0).view(2, 4, 3) / 10).requires_grad_()
        made = call(einops, x)
        made.square().sum().backward()
        found.append((einops.asnumpy(made).tolist(), x.grad.tolist()))
    for ours, theirs in zip(*found, strict=True):
        tc.testing.assert_close(tc.tensor(ours), tc.tensor(theirs))


def test_layers_are_modules(torch) -> None:
    """The layers print, train, copy and end up in state dicts as those for PyTorch do."""
    import torch
    from einops.layers import tensorcore as ours
    from einops.layers import torch as theirs

    def made(layers, nn):
        return nn.Sequential(
            layers.Rearrange("a b c -> a (b c)"),
            layers.Reduce("a (b c) -> a c", "mean", b=2),
            layers.EinMix("a (c h) -> h a d", weight_shape="h c d", bias_shape="d", c=3, h=2, d=3),
        )

    torch.manual_seed(0)
    tc.manual_seed(0)
    first, second = made(ours, tc.nn), made(theirs, torch.nn)
    assert repr(first) == repr(second)
    x = [[[0.5 * a + b - c for c in range(4)] for b in range(3)] for a in range(2)]
    assert first(tc.tensor(x)).tolist() == second(torch.tensor(x)).tolist()
    assert list(first.state_dict()) == list(second.state_dict())


def test_whichever_comes_first() -> None:
    """A program may import einops before tensorcore; PyTorch is not imported by either."""
    program = (
        "import sys, einops\n"
        "import tensorcore as torch\n"
        "assert einops.rearrange(torch.zeros(2, 3), 'a b -> b a').shape == (3, 2)\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
