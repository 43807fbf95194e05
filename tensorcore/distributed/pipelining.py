"""Pipelines: a model in stages, one on each rank, through which small batches go one behind the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import tensorcore.distributed as dist
from tensorcore.autograd.walks import backward
from tensorcore.errors import ArgumentError, UsageError
from tensorcore.nn.module import Module
from tensorcore.ops.creation.create import empty
from tensorcore.ops.shapes.join import cat
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["PipelineStage", "Schedule1F1B", "ScheduleGPipe"]


class PipelineStage:
    """One rank's part of a model.

    Args:
        submodule: the part; it takes what the part before gives, one tensor or several.
        stage_index, num_stages: where it stands; the stages are the ranks of the group, in order.
        device: accepted; a part runs where its parameters are.
        group: the world where None.
    """

    def __init__(
        self, submodule: Module, stage_index: int, num_stages: int, device: Any = None, input_args: Any = None,
        output_args: Any = None, group: Any = None,
    ) -> None:  # fmt: skip
        size = dist.get_world_size(group)
        if num_stages != size or not 0 <= stage_index < num_stages:
            raise ArgumentError(
                f"PipelineStage: expected one stage for each of {size} ranks, got stage {stage_index} of {num_stages}; make "
                f"a group of as many ranks as there are stages"
            )
        self.submod, self.stage_index, self.num_stages, self.group = submodule, stage_index, num_stages, group
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1
        self.incoming: list[tuple[Any, Any]] | None = None  # shape and dtype of each tensor from the stage before
        self.held: dict[int, tuple[tuple[Any, ...], tuple[Any, ...]]] = {}
        self.sending: deque[Any] = deque()

    def forward_one(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one small batch, from the stage before and on to the one behind."""
        if not self.is_first:
            args = tuple(self._receive(self.stage_index - 1, self._expected(number), 2 * number))
            for one in args:
                if one.is_floating_point():
                    one.requires_grad_()
        made = self.submod(*args, **kwargs)
        outputs = made if isinstance(made, tuple) else (made,)
        self.held[number] = args, outputs
        if not self.is_last:
            if number == 0:
                told = [[(tuple(one.shape), one.dtype.name) for one in outputs]]
                dist.send_object_list(told, group=self.group, group_dst=self.stage_index + 1)
            self._send([one.detach() for one in outputs], self.stage_index + 1, 2 * number)
        return made

    def backward_one(self, number: int, loss: Any) -> None:
        """Run one small batch's backward, from the stage behind and on to the one before."""
        args, outputs = self.held.pop(number)
        if self.is_last:
            loss.backward()
        else:
            wanted = [one for one in outputs if one.requires_grad]
            likes = [(tuple(one.shape), one.dtype) for one in wanted]
            backward(wanted, self._receive(self.stage_index + 1, likes, 2 * number + 1))
        if not self.is_first:
            grads = []
            for one in args:
                if one.requires_grad:
                    grads.append(one.new_zeros(one.shape) if one.grad is None else one.grad)
            self._send(grads, self.stage_index - 1, 2 * number + 1)

    def settle(self) -> None:
        """Wait until all that was sent has arrived."""
        while self.sending:
            self.sending.popleft()[0].wait()

    def _expected(self, number: int) -> list[tuple[Any, Any]]:
        # The next step's small batches may be larger: the first one of each step tells.
        if number == 0:
            from tensorcore import dtypes

            told: list[Any] = [None]
            dist.recv_object_list(told, group=self.group, group_src=self.stage_index - 1)
            self.incoming = [(shape, getattr(dtypes, name)) for shape, name in told[0]]
        assert self.incoming is not None
        return self.incoming

    def _receive(self, peer: int, likes: list[tuple[Any, Any]], tag: int) -> list[Any]:
        made: list[Any] = []
        for shape, dtype in likes:
            made.append(empty(shape, dtype=dtype))
            dist.recv(made[-1], group=self.group, group_src=peer, tag=tag)
        return made

    def _send(self, tensors: list[Any], peer: int, tag: int) -> None:
        for one in tensors:
            dense = one.contiguous()
            self.sending.append((dist.isend(dense, group=self.group, group_dst=peer, tag=tag), dense))
        while self.sending and self.sending[0][0].is_completed():
            self.sending.popleft()[0].wait()


class _Schedule:
    """How a batch goes through the stages: cut in equal parts, whose gradients add up to the batch's.

    Args:
        stage: this rank's.
        n_microbatches: into how many parts a batch is cut.
        loss_fn: of output and target; without it there is no backward.
        scale_grads: divide the gradients by the number of parts, as the mean over the batch has them.
    """

    def __init__(
        self, stage: PipelineStage, n_microbatches: int, loss_fn: Callable[..., Any] | None = None,
        scale_grads: bool = True,
    ) -> None:  # fmt: skip
        self.stage, self.count, self.loss_fn, self.scale_grads = stage, n_microbatches, loss_fn, scale_grads

    def order(self) -> list[tuple[str, int]]:
        """What the stage does, one after the other: forwards and backwards of small batches."""
        raise NotImplementedError

    def step(self, *args: Any, target: Any = None, losses: list[Any] | None = None, **kwargs: Any) -> Any:
        """Send a batch through, forward and backward. All ranks call it.

        The first stage passes the batch; the last passes ``target`` and a list for the losses, and gets the output.
        """
        stage = self.stage
        if stage.is_first and not args:
            raise UsageError("step: expected the batch on the first stage, got none; pass it there")
        if stage.is_last and self.loss_fn is not None and target is None:
            raise UsageError("step: expected target on the last stage, got none; the loss function needs it")
        parts = [self._cut(one) for one in args]
        named = {key: self._cut(one) for key, one in kwargs.items()}
        targets = [None] * self.count if target is None else self._cut(target)
        outputs: list[Any] = [None] * self.count
        found: list[Any] = [None] * self.count
        before = [(one, one.grad) for one in stage.submod.parameters()] if self.scale_grads else []
        for one, _ in before:
            one.grad = None
        for kind, i in self.order():
            if kind == "forward":
                outputs[i] = stage.forward_one(
                    i, tuple(one[i] for one in parts), {key: one[i] for key, one in named.items()}
                )
                if stage.is_last and self.loss_fn is not None:
                    found[i] = self.loss_fn(outputs[i], targets[i])
            elif self.loss_fn is not None:
                stage.backward_one(i, found[i])
        stage.settle()
        stage.held.clear()
        with no_grad():
            for one, held in before:
                if one.grad is not None:
                    one.grad.div_(self.count)  # type: ignore[attr-defined]
                    one.grad = one.grad if held is None else held.add_(one.grad)  # type: ignore[attr-defined]
                else:
                    one.grad = held
        if not stage.is_last:
            return None
        if losses is not None and self.loss_fn is not None:
            losses[:] = [one.detach() for one in found]
        return cat([one.detach() if self.loss_fn is not None else one for one in outputs]) if outputs else None

    def _cut(self, given: Any) -> list[Any]:
        if not isinstance(given, Tensor):
            return [given] * self.count
        if given.shape[0] % self.count:
            raise ArgumentError(
                f"step: expected a batch that {self.count} equal parts make up, got one of {given.shape[0]}; change the batch "
                f"or n_microbatches"
            )
        return list(given.chunk(self.count))  # type: ignore[attr-defined]


class ScheduleGPipe(_Schedule):
    """All forwards, then all backwards: every stage keeps the values of the whole batch."""

    def order(self) -> list[tuple[str, int]]:
        return [("forward", i) for i in range(self.count)] + [("backward", i) for i in range(self.count)]


class Schedule1F1B(_Schedule):
    """Forwards until the pipeline is full, then one backward for each forward: a stage keeps few small batches' values."""

    def order(self) -> list[tuple[str, int]]:
        ahead = min(self.stage.num_stages - self.stage.stage_index, self.count)
        made = [("forward", i) for i in range(ahead)]
        for i in range(self.count):
            made.append(("backward", i))
            if ahead + i < self.count:
                made.append(("forward", ahead + i))
        return made
