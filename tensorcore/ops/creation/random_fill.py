"""Draws over a tensor's memory: ``uniform_``, ``normal_`` and their relatives, and ``rand_like`` with its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorcore.backend.strides import memory_order
from tensorcore.errors import ArgumentTypeError
from tensorcore.formats import only_strided
from tensorcore.ops.creation.create import empty_like
from tensorcore.ops.creation.random import DRAWS, created, draw, normal_op
from tensorcore.ops.inplace import attach, check_writable
from tensorcore.ops.kinds import method
from tensorcore.ops.output import written
from tensorcore.ops.record import record
from tensorcore.shortcuts import before
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["rand_like", "randint_like", "randn_like"]


@before("fill", *DRAWS, written)
def _fill(op: str, input: Tensor, kind: str, generator: Any, **options: Any) -> Tensor:
    """Draw over a tensor's memory. What was there has no influence any more, so its gradient is zero."""
    check_writable(op, input)
    shape, device = tuple(input.native.shape), input.device
    if input.is_contiguous():
        native = draw(op, kind, shape, input.dtype, device, generator, **options)
    else:
        # In the order in which the elements lie in memory, as PyTorch draws them.
        order = memory_order(device.strides(input.native))
        if hasattr(options.get("probability"), "shape"):
            options["probability"] = np.broadcast_to(options["probability"], shape).transpose(order)
        if kind == "normal" and not device.own_generator:
            kind = "serial_normal"  # PyTorch has its blocks of 16 for contiguous tensors alone
        native = draw(op, kind, tuple([shape[i] for i in order]), input.dtype, device, generator, **options)
        native = device.kernels["permute"](native, dims=tuple([order.index(i) for i in range(len(order))]))
    before = new_tensor(input.native, input.dtype, input.device)
    before.node = input.node
    device.kernels["copy"](input.native, native)
    written(input)
    if mode.enabled and input.node is not None:
        made = new_tensor(input.native, input.dtype, input.device)
        record(normal_op, (before,), None, made)
        attach(input, made.node)
    return input


def _draws(kind: str, params: tuple[str, ...], options: tuple[str, ...], defaults: tuple[float, ...]) -> Any:
    """The short way before a method that calls ``_fill`` with its numbers as floats, each under the draw's name for it."""
    return before("draws_over", *DRAWS, written, (kind, params, options, defaults))


@method
@_draws("uniform", ("from", "to"), ("low", "high"), (0.0, 1.0))
def uniform_(input: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None, **renamed: Any) -> Tensor:
    """Write uniform numbers in [from, to)."""
    low = renamed.pop("from", from_)  # PyTorch's name of it is a Python keyword
    if renamed:
        raise ArgumentTypeError(
            f"uniform_: got an unexpected keyword argument '{next(iter(renamed))}'; it takes from, to, generator"
        )
    return _fill("uniform_", input, "uniform", generator, low=float(low), high=float(to))


@method
@_draws("normal", ("mean", "std"), ("mean", "std"), (0.0, 1.0))
def normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Write normal numbers."""
    return _fill("normal_", input, "normal", generator, mean=float(mean), std=float(std))


@method
@_draws("bernoulli", ("p",), ("probability",), (0.5,))
def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Write ones with probability ``p`` (a number, or a tensor that broadcasts), else zeros."""
    probability = p.detach().device.to_host(p.native) if isinstance(p, Tensor) else float(p)
    return _fill("bernoulli_", input, "bernoulli", generator, probability=probability)


@method
@_draws("exponential", ("lambd",), ("rate",), (1.0,))
def exponential_(input: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """Write exponential numbers of rate ``lambd``."""
    return _fill("exponential_", input, "exponential", generator, rate=float(lambd))


@method
def geometric_(input: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Write how many trials of probability ``p`` it takes up to the first success."""
    return _fill("geometric_", input, "geometric", generator, probability=float(p))


@method
@_draws("log_normal", ("mean", "std"), ("mean", "std"), (1.0, 2.0))
def log_normal_(input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Tensor:
    """Write exponentials of normal numbers."""
    return _fill("log_normal_", input, "log_normal", generator, mean=float(mean), std=float(std))


@method
@_draws("cauchy", ("median", "sigma"), ("median", "sigma"), (0.0, 1.0))
def cauchy_(input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Tensor:
    """Write Cauchy numbers."""
    return _fill("cauchy_", input, "cauchy", generator, median=float(median), sigma=float(sigma))


@method
@_draws("random", (), (), ())
def random_(
    input: Tensor, from_: int | None = None, to: int | None = None, *, generator: Any = None, **renamed: Any
) -> Tensor:
    """``random_()``, ``random_(to)`` or ``random_(from, to)``: whole numbers in [from, to).

    Without ``to``, up to the largest that the dtype holds.
    """
    only_from = "from" in renamed
    from_ = renamed.pop("from", from_)
    if renamed:
        raise ArgumentTypeError(
            f"random_: got an unexpected keyword argument '{next(iter(renamed))}'; it takes from, to, generator"
        )
    if from_ is None and to is None:
        return _fill("random_", input, "random", generator)
    if to is None and not only_from:
        from_, to = 0, from_
    return _fill("random_", input, "integers", generator, low=int(from_ or 0), high=None if to is None else int(to))


def _like(
    op: str,
    kind: str,
    input: Tensor,
    dtype: Any,
    device: Any,
    requires_grad: bool,
    generator: Any,
    memory_format: Any,
    **options: Any,
) -> Tensor:
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(
            f"{op}: expected argument 'input' to be a Tensor, got {type(input).__name__}; use torch.tensor(...)"
        )
    if (input.is_contiguous() and memory_format is None) or mode.levels:
        return created(op, kind, (tuple(input.native.shape),), None, dtype or input.dtype,
                       input.device if device is None else device,
                       requires_grad, generator, **options)  # fmt: skip
    made = empty_like(input, dtype=dtype, device=device, memory_format=memory_format)
    return _fill(op, made, kind, generator, **options).requires_grad_(requires_grad)  # type: ignore[attr-defined, no-any-return]


def rand_like(input: Tensor, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1) in the shape, dtype and on the device of ``input``."""
    if layout is not None:
        only_strided("rand_like", layout)
    return _like("rand_like", "uniform", input, dtype, device, requires_grad, generator, memory_format)


def randn_like(input: Tensor, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Standard normal numbers in the shape, dtype and on the device of ``input``."""
    if layout is not None:
        only_strided("randn_like", layout)
    return _like("randn_like", "normal", input, dtype, device, requires_grad, generator, memory_format)


def randint_like(input: Tensor, *bounds: int, low: int = 0, high: int | None = None, generator: Any = None, dtype: Any = None,
                 layout: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """``randint_like(input, high)`` or ``(input, low, high)``: whole numbers in [low, high) in the shape and dtype of ``input``."""
    if layout is not None:
        only_strided("randint_like", layout)
    if bounds:
        low, high = (low, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
    if high is None:
        raise ArgumentTypeError("randint_like: expected high, got nothing; pass (input, high) or (input, low, high)")
    return _like(
        "randint_like",
        "integers",
        input,
        dtype,
        device,
        requires_grad,
        generator,
        memory_format,
        low=int(low),
        high=int(high),
    )
