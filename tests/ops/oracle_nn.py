"""Compare an op's samples with PyTorch: values, gradients, gradients of gradients."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np

import tensorcore as tc
from tensorcore.ops.define import OPS


def compare(torch, name):
    """Run every sample of the op ``name`` in both libraries, in float64."""
    op, made = OPS[name], np.random.default_rng(8)
    reference = getattr(torch.nn.functional, name, None) or getattr(torch, name)

    def array(*shape, low=-2.0, high=2.0):
        return made.uniform(low, high, shape)

    for args, options in op.samples(array):
        mine, theirs = [], []
        ours = op.function(*[_tensor(tc, one, mine) for one in args], **options)
        wanted = reference(*[_tensor(torch, one, theirs) for one in args], **options)
        assert tuple(ours.shape) == tuple(wanted.shape), (args, options)
        assert str(ours.dtype) == str(wanted.dtype)
        _close(ours, wanted)
        assert ours.requires_grad or not wanted.requires_grad or name == "matrix_power"
        if not ours.requires_grad:
            continue
        g = made.standard_normal(tuple(wanted.shape))
        first = tc.autograd.grad(ours, mine, tc.tensor(g), create_graph=True)
        wanted_first = torch.autograd.grad(wanted, theirs, torch.tensor(g), create_graph=True)
        for x, y in zip(first, wanted_first, strict=True):
            _close(x, y)
        by = [made.standard_normal(tuple(one.shape)) for one in wanted_first]
        total = reduce(add, [(x * tc.tensor(v)).sum() for x, v in zip(first, by, strict=True)])
        wanted_total = reduce(add, [(x * torch.tensor(v)).sum() for x, v in zip(wanted_first, by, strict=True)])
        if not (total.requires_grad and wanted_total.requires_grad):
            continue
        second = tc.autograd.grad(total, mine, allow_unused=True)
        wanted_second = torch.autograd.grad(wanted_total, theirs, allow_unused=True)
        for x, y, leaf in zip(second, wanted_second, mine, strict=True):
            nothing = np.zeros(tuple(leaf.shape))
            np.testing.assert_allclose(
                nothing if x is None else x.numpy(), nothing if y is None else y.numpy(), rtol=1e-8, atol=1e-9
            )


def _tensor(library, value, leaves):
    if not isinstance(value, np.ndarray):
        return value
    made = library.tensor(value)
    if value.dtype == np.float64:
        leaves.append(made.requires_grad_())
    return made


def _close(x, y):
    np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-9, atol=1e-10)
