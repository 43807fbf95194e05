"""PowerSGD (Vogels, Karimireddy and Jaggi, 2019): gradients as products of two thin matrices, which are what is sent."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import tensorcore.distributed as dist
from tensorcore.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from tensorcore.errors import ArgumentError
from tensorcore.futures import Future
from tensorcore.ops.creation.create import from_numpy
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.tape.mode import no_grad

__all__ = ["PowerSGDState", "powerSGD_hook"]


class PowerSGDState:
    """What the hook remembers from one backward to the next.

    Args:
        process_group: the world where None.
        matrix_approximation_rank: of the products; more is closer to the gradients and sends more.
        start_powerSGD_iter: backwards with plain averages before, of which the first ones are the most important.
        min_compression_rate: a matrix is left as it is unless its product has so many times fewer elements.
        use_error_feedback: add what a product has lost to the next gradients.
        warm_start: begin each product with the last one's factor, instead of a random one.
        orthogonalization_epsilon: added to lengths, where gradients may have less than the full rank.
        random_seed: of the random factors, the same on all ranks.
    """

    def __init__(
        self, process_group: Any = None, matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2, use_error_feedback: bool = True, warm_start: bool = True,
        orthogonalization_epsilon: float = 0, random_seed: int = 0, compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:  # fmt: skip
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ArgumentError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can "
                f"only be applied after the first two iterations in DDP, got {start_powerSGD_iter}."
            )
        self.process_group, self.matrix_approximation_rank = process_group, matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.default_rng(random_seed)
        self.iter = 0
        self.errors: dict[int, Any] = {}
        self.factors: dict[int, list[Any]] = {}
        self.elements = [0, 0]  # of all gradients so far, and of what was sent for them

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times fewer elements were sent, and both counts."""
        before, after = self.elements
        return (before / after if after else 0.0), before, after


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future:
    """The mean of the bucket over the ranks, its matrices as thin products, once ``start_powerSGD_iter`` is over."""
    at = state.iter
    if bucket.is_last():
        state.iter += 1
    if at < state.start_powerSGD_iter:
        return allreduce_hook(state.process_group, bucket)
    with no_grad():
        made: Future = Future()
        made.set_result(_averaged(state, bucket))
    return made


def _averaged(state: PowerSGDState, bucket: Any) -> Any:
    buffer, key, size = bucket.buffer(), bucket.index(), dist.get_world_size(state.process_group)
    if state.use_error_feedback:
        if key in state.errors:
            buffer.add_(state.errors[key])
        state.errors[key] = buffer.clone()
    plain, matrices = [], []
    for one in bucket.gradients():
        rows = one.shape[0] if one.dim() > 1 else 1
        columns = prod(one.shape) // max(rows, 1)
        rank = min(rows, columns, state.matrix_approximation_rank)
        thin = (rows + columns) * rank * state.min_compression_rate < rows * columns
        (matrices if thin else plain).append(one.view(rows, columns) if thin else one)
        state.elements[0] += one.numel()
        state.elements[1] += (rows + columns) * rank if thin else one.numel()
    work = None
    if plain:
        flat: Any = cat([one.reshape(-1) for one in plain]).div_(size)  # type: ignore[attr-defined]
        work = dist.all_reduce(flat, group=state.process_group, async_op=True)
    right = state.factors.get(key) if state.warm_start else None
    if right is None:
        right = [_random(state, one) for one in matrices]
    right = [_orthogonal(one, state.orthogonalization_epsilon) for one in right]
    left = _mean([m @ q for m, q in zip(matrices, right, strict=True)], state, size)
    left = [_orthogonal(one, state.orthogonalization_epsilon) for one in left]
    right = _mean([m.t() @ p for m, p in zip(matrices, left, strict=True)], state, size)
    state.factors[key] = right
    for matrix, p, q in zip(matrices, left, right, strict=True):
        matrix.copy_(p @ q.t())
    if work is not None:
        work.wait()
        start = 0
        for one in plain:
            one.copy_(flat[start : start + one.numel()].view(one.shape))
            start += one.numel()
    if state.use_error_feedback:
        state.errors[key].sub_(buffer)
        for one in plain:
            # Nothing of these is lost, and the mean is not an error of this rank's part.
            place = (one.data_ptr() - buffer.data_ptr()) // buffer.element_size()
            state.errors[key][place : place + one.numel()].zero_()
    return buffer


def _mean(factors: list[Any], state: PowerSGDState, size: int) -> list[Any]:
    if not factors:
        return []
    flat: Any = cat([one.reshape(-1) for one in factors]).div_(size)  # type: ignore[attr-defined]
    dist.all_reduce(flat, group=state.process_group)
    parts = flat.split([one.numel() for one in factors])
    return [part.view(one.shape) for part, one in zip(parts, factors, strict=True)]


def _random(state: PowerSGDState, matrix: Any) -> Any:
    rank = min(*matrix.shape, state.matrix_approximation_rank)
    made = state.rng.standard_normal((matrix.shape[1], rank))
    return from_numpy(made).to(matrix.device, matrix.dtype)  # type: ignore[attr-defined]


def _orthogonal(matrix: Any, epsilon: float) -> Any:
    """The columns made orthogonal and of length 1 (modified Gram-Schmidt); one of length 0 stays."""
    columns: list[Any] = []
    for i in range(matrix.shape[1]):
        one = matrix[:, i]
        for other in columns:
            one = one - (other @ one) * other
        length = one.norm() + epsilon
        columns.append(one / length if length.item() else one)
    return stack(columns, 1)
