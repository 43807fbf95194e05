"""Connectionist temporal classification: the loss of labels whose places among the frames nobody knows."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, UnsupportedDtype, UsageError
from tensorcore.ops.fused import Fused
from tensorcore.ops.indexing.scatter import gather
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.pointwise.choice import where
from tensorcore.ops.reductions.reduce import sum as total
from tensorcore.ops.samples import sequence as samples
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.shortcuts import before
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = ["ctc_loss"]

Ints = tuple[int, ...]


def _paths(log_probs: Tensor, labels: Tensor, skips: Tensor, *, frames: Ints, counts: Ints, infinite: bool) -> Tensor:
    """The loss of each sample: the recursion forward in time, over the states of all samples at once.

    A backend's kernel ``ctc_loss`` takes the same: log-probabilities (frames, batch, classes); the classes of the states,
    blanks and labels in turn, int64 (batch, states), and whether each state may follow the one two before it, bool; how
    many frames and labels each sample has, as tuples; and whether the gradient of an infinite loss is 0. It answers
    (batch), or a tuple of it and of what ``ctc_loss_backward(g, ..., *those, needs, ...)`` wants back.
    """
    length, batch, _ = log_probs.native.shape
    states = labels.native.shape[1]
    device = log_probs.device

    def given(values: Any) -> Tensor:
        array = np.asarray(values)
        kind = dtypes.bool_ if array.dtype == np.bool_ else dtypes.int64
        return new_tensor(device.from_host(array), kind, device)

    emitted = gather(log_probs, 2, labels.unsqueeze(0).expand(length, batch, states))
    lasts = 2 * np.array(counts)[:, None]
    first = np.arange(states)
    none = log_probs.new_full((batch, 2), -inf)
    # Before the first frame there is one path, of no states: those of no frames end there.
    alpha = where(given((first == 0) & (lasts == 0)), 0.0, log_probs.new_full((batch, states), -inf))
    begin = given((first == 0) | ((first == 1) & (lasts > 0)))
    for t in range(length):
        if t == 0:
            moved = where(begin, emitted[0], -inf)
        else:
            one = cat([none[:, :1], alpha[:, :-1]], 1)
            two = where(skips, cat([none, alpha[:, :-2]], 1)[:, :states], -inf)
            moved = _added(alpha, one, two) + emitted[t]
        alpha = where(given((np.array(frames) > t)[:, None]), moved, alpha)
    ends = given((first == lasts) | ((first == lasts - 1) & (lasts > 0)))
    final = where(ends, alpha, -inf)
    made = -_summed(final)
    # As PyTorch has it, the gradient is that of the scores before a log_softmax: it adds the probabilities.
    inside = given((np.arange(length)[:, None] < np.array(frames))[:, :, None])
    powers = total(where(inside, log_probs.exp(), 0.0), (0, 2))
    made = made + (powers - powers.detach())
    if infinite:
        # The loss stays infinite, its gradient is 0.
        lost = made.detach() == inf
        made = where(lost, inf, made)
    return made


def _added(*terms: Tensor) -> Tensor:
    """The logarithm of a sum of exponentials, minus infinity of those of zeros, with a gradient of 0 there."""
    top = terms[0].detach()
    for one in terms[1:]:
        top = top.maximum(one.detach())
    top = where(top == -inf, 0.0, top)
    sums: Any = sum((one - top).exp() for one in terms)
    dead = sums.detach() == 0
    return where(dead, -inf, where(dead, 1.0, sums).log() + top)


def _summed(x: Tensor) -> Tensor:
    """``_added`` along the last dim."""
    top = x.detach().amax(1, True)
    top = where(top == -inf, 0.0, top)
    sums = (x - top).exp().sum(1)
    dead = sums.detach() == 0
    return where(dead, -inf, where(dead, 1.0, sums).log() + top.squeeze(1))


_ctc_loss = Fused(
    "ctc_loss", "log_probs labels skips", "The loss of all alignments.", _paths, backward_name="CtcLossBackward0"
)


@operation(samples=samples.ctc, method=False)
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor:  # fmt: skip
    """Minus the logarithm of the probability that frames, with blanks and repeats taken out, spell the labels.

    Args:
        log_probs: log-probabilities, (frames, batch, classes) or (frames, classes), as ``log_softmax`` gives them:
            the gradient is right for what comes before a ``log_softmax``, as in PyTorch.
        targets: labels, (batch, longest), or those of all samples in a row.
        input_lengths: how many frames each sample has, as ints or a tensor.
        target_lengths: how many labels each sample has.
        blank: the class that stands for no label.
        reduction: ``mean`` divides each loss by its number of labels first.
        zero_infinity: count a loss as 0 where there are too few frames for the labels, with a gradient of 0.

    From "Connectionist Temporal Classification", Graves et al. 2006.
    """
    check_tensors("ctc_loss", log_probs=log_probs, targets=targets)
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError(
            f"ctc_loss: {reduction} is not a valid value for reduction, got {reduction!r}; pass none, mean or sum"
        )
    if log_probs.dtype not in (dtypes.float32, dtypes.float64):
        raise UnsupportedDtype(
            f'ctc_loss: "ctc_loss_cpu" not implemented for {log_probs.dtype.name}, got one; use .float()'
        )
    if targets.dtype not in (dtypes.int64, dtypes.int32):
        raise DtypeError(
            f"ctc_loss: Expected tensor of targets to have type Long or Int, but got {targets.dtype}; use .long()"
        )
    shape = tuple(log_probs.native.shape)
    if len(shape) not in (2, 3):
        raise ShapeError(f"ctc_loss: Expected 3-dimensional tensor for log_probs, but got {list(shape)}; unsqueeze it")
    batched = len(shape) == 3
    if isinstance(input_lengths, Tensor) is not isinstance(target_lengths, Tensor):
        raise ArgumentTypeError(
            f"ctc_loss: expected both lengths as tensors or both as ints, got {input_lengths!r} and {target_lengths!r}"
        )
    frames, counts = _lengths("input_lengths", input_lengths), _lengths("target_lengths", target_lengths)
    if not batched:
        log_probs = log_probs.unsqueeze(1)
    length, batch, classes = log_probs.native.shape
    if not 0 <= blank < classes:
        raise UsageError(f"ctc_loss: blank must be in label range, got {blank} for {classes} classes; pass one of them")
    for name, found in (("input_lengths", frames), ("target_lengths", counts)):
        if len(found) != batch:
            raise ShapeError(
                f"ctc_loss: {name} must be of size batch_size, got {len(found)} for {batch}; give one each"
            )
        if found and min(found) < 0:
            raise UsageError(
                f"ctc_loss: Expected {name} to have value at least 0, but got value {min(found)}; count again"
            )
    if not batch:
        raise UsageError("ctc_loss: log_probs tensor must not be empty, got no samples; leave the call out")
    if max(frames) > length:
        raise UsageError(
            f"ctc_loss: Expected input_lengths to have value at most {length}, but got value {max(frames)}; shorten"
        )
    device = log_probs.device
    found_states = _traced_states(targets, counts, blank, classes) if mode.tracer is not None else None
    if found_states is None:
        host = _states(targets, counts, blank, classes)
        found_states = [
            new_tensor(device.share_host(one), kind, device)
            for one, kind in zip(host, (dtypes.int64, dtypes.bool_), strict=True)
        ]
    each = _ctc_loss(
        (log_probs, *found_states),
        {"frames": frames, "counts": counts, "infinite": bool(zero_infinity)},
    )
    if zero_infinity:
        each = where(each.detach() == inf, 0.0, each)
    if reduction == "mean":
        lengths = np.array([one or 1 for one in counts], each.dtype.numpy)
        return (each / new_tensor(device.from_host(lengths), each.dtype, device)).mean()
    if reduction == "sum":
        return total(each)
    return each if batched else each.squeeze(0)


def _lengths(name: str, values: Any) -> Ints:
    if type(values) is tuple and {*map(type, values)} == {int}:
        return values
    if isinstance(values, Tensor):
        if values.dtype.kind not in ("integer", "bool"):
            raise DtypeError(f"ctc_loss: {name} must be integral, got {values.dtype}; use .long()")
        return tuple(map(int, values.device.to_host(values.native).ravel().tolist()))
    if type(values) is list and {*map(type, values)} == {int}:
        return tuple(values)
    try:
        return tuple([one.__index__() for one in ([values] if hasattr(values, "__index__") else values)])
    except (AttributeError, TypeError):
        raise ArgumentTypeError(
            f"ctc_loss: expected {name} to be ints or a tensor of them, got {values!r}; pass ints"
        ) from None


@before("states")
def _states(targets: Tensor, counts: Ints, blank: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """For each sample the classes of its states, blank, label, blank, ..., and which may follow the one two before."""
    host = targets.device.to_host(targets.native)
    longest = max(counts)
    if host.ndim == 1:
        if host.size != sum(counts):
            raise ShapeError(
                f"ctc_loss: Expected the sum of target_lengths to match targets, got {sum(counts)} and {host.size} labels; count"
            )
        starts = np.cumsum((0, *counts[:-1]))
        rows = [host[start : start + count] for start, count in zip(starts, counts, strict=True)]
    elif host.ndim == 2 and host.shape[0] == len(counts):
        if longest > host.shape[1]:
            raise ShapeError(
                f"ctc_loss: Expected tensor targets to have size at least {longest} at dimension 1, got {host.shape[1]}; pad it"
            )
        rows = [host[i, :count] for i, count in enumerate(counts)]
    else:
        raise ShapeError(
            f"ctc_loss: expected targets of (batch, labels), or in a row, got {list(host.shape)} for a batch of {len(counts)}"
        )
    labels = np.empty((len(counts), 2 * longest + 1), np.int64)
    labels.fill(blank)
    for i, row in enumerate(rows):
        labels[i, 1 : 2 * counts[i] : 2] = row
    low, high = (
        targets.device.kernels["index_bounds"](labels) if targets.device.array is np.ndarray else _bounds(labels)
    )
    if low < 0 or high >= classes:
        raise UsageError(
            f"ctc_loss: expected labels from 0 to {classes - 1}, got {low if low < 0 else high}; look at them"
        )
    skips = np.zeros(labels.shape, np.bool_)
    np.not_equal(labels[:, 3::2], labels[:, 1:-2:2], out=skips[:, 3::2])
    return labels, skips


def _bounds(labels: np.ndarray) -> tuple[int, int]:
    return int(labels.min()), int(labels.max())


def _traced_states(targets: Tensor, counts: Ints, blank: int, classes: int) -> tuple[Tensor, Tensor] | None:
    """As ``_states``, of labels that are others in each replay; None where those say what is wrong with them."""
    batch, longest = len(counts), max(counts)
    shape, device = tuple(targets.native.shape), targets.device
    in_a_row = shape == (sum(counts),)
    if not longest or not (in_a_row or (len(shape) == 2 and shape[0] == batch and shape[1] >= longest)):
        return None
    starts = np.cumsum((0, *counts[:-1])) if in_a_row else np.arange(batch) * shape[1]
    held = np.arange(longest) < np.array(counts)[:, None]
    places = np.where(held, starts[:, None] + np.arange(longest), 0)

    def given(array: np.ndarray, kind: Any) -> Any:
        return new_tensor(device.from_host(array), kind, device)

    flat: Any = targets.reshape(-1).long()  # type: ignore[attr-defined]
    picked = flat.index_select(0, given(places.reshape(-1), dtypes.int64)).reshape(batch, longest)
    picked = where(given(held, dtypes.bool_), picked, blank)
    if device.all_values(((picked < 0) | (picked >= classes)).native).any():
        return None
    blanks = flat.new_full((batch, longest), blank)
    labels = cat([stack([blanks, picked], -1).reshape(batch, 2 * longest), blanks[:, :1]], 1)
    never = flat.new_zeros((batch, longest + 1), dtype=dtypes.bool_)
    changes = stack([never[:, 2:], picked[:, 1:] != picked[:, :-1]], -1).reshape(batch, 2 * longest - 2)
    return labels, cat([never[:, :2], changes, never[:, :1]], 1)
