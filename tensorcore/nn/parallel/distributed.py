"""DistributedDataParallel: one model on several processes, whose gradients are averaged while backward goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorcore.distributed as dist
from tensorcore import dtypes
from tensorcore.distributed.algorithms.join import Join, Joinable
from tensorcore.distributed.collectives import has_means, start_mean
from tensorcore.distributed.group import resolve
from tensorcore.distributed.nested import cast, tensors
from tensorcore.errors import ArgumentError, UsageError
from tensorcore.func import functional_call
from tensorcore.futures import Future
from tensorcore.nn.module import Module
from tensorcore.nn.parallel.agreement import check_same_model, check_same_values, share
from tensorcore.nn.parallel.buckets import Bucket, GradBucket, make_buckets
from tensorcore.nn.parallel.joining import Joining
from tensorcore.ops.creation.create import tensor as make_tensor
from tensorcore.tape.mode import mode, no_grad
from tensorcore.tape.node import Output

__all__ = ["DistributedDataParallel"]


@dataclass
class _MixedPrecision:
    """The dtypes that ``DistributedDataParallel`` computes and sends in; None for the parameters' own."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None


class DistributedDataParallel(Module, Joinable):
    """A module whose gradients are averaged over the ranks of a group during backward.

    The parameters start as rank 0's. Gradients are sent in buckets, the last layers' first, while backward computes
    those of the layers before. Each rank's loss should be the mean over its part of the batch.

    Args:
        module: with at least one parameter that requires grad; the same on all ranks.
        device_ids, output_device, dim: accepted; a module lives on one device here.
        broadcast_buffers: give all ranks rank 0's buffers before each forward.
        init_sync: check that the ranks have the same model, and give all of them rank 0's.
        process_group: the world where None.
        bucket_cap_mb: MB of a bucket, 25 where None; the first one has at most 1.
        find_unused_parameters: look in each forward's graph for parameters that get no gradient, which would otherwise be
            waited for. One that no rank used keeps its ``grad`` as it is.
        gradient_as_bucket_view: let ``grad`` be a part of the bucket, which saves a copy of small ones, and memory.
        static_graph: the same parameters are used in all iterations: looked for in the first one alone.
        mixed_precision: a ``_MixedPrecision``, or what has its attributes. Forward and backward compute with parameters and
            floating inputs in ``param_dtype``; gradients are sent in ``reduce_dtype``, else in ``param_dtype``, added up in
            float32, and have the dtype of their parameters, which stay as they are; buffers are cast once, here.

    With TENSORCORE_CHECK_PARAMETERS=n in the environment, every n-th forward checks that all ranks have the same values.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        mixed_precision: Any = None,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(name, one) for name, one in module.named_parameters() if name not in ignored]
        trained = [(name, one) for name, one in named if one.requires_grad]
        if not trained:
            raise UsageError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ArgumentError(f"device_ids can only be None or contain a single element, got {device_ids}")
        self.module, self._ignored = module, ignored
        self.process_group = resolve("DistributedDataParallel", process_group)
        self.dim, self.broadcast_buffers = dim, broadcast_buffers
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._names = [name for name, _ in trained]
        self._trained = [one for _, one in trained]
        self._kept = [one for name, one in module.named_buffers() if name not in ignored]
        if init_sync:
            check_same_model(named, self.process_group)
            share([*(one for _, one in named), *self._kept], 0, self.process_group)
        self.mixed_precision = mixed_precision
        self._low, sent_in = _dtypes_of(mixed_precision)
        if mixed_precision is not None and mixed_precision.buffer_dtype is not None:
            for one in self._kept:
                one.data = cast(one.detach(), mixed_precision.buffer_dtype)
        self._buckets = make_buckets(self._trained, 25 if bucket_cap_mb is None else bucket_cap_mb, sent_in)
        self._bucket_of = {number: bucket for bucket in self._buckets for number in bucket.numbers}
        self._expecting = self._begun = False
        self._next = 0  # the bucket that has to be sent next: the order is the same on all ranks
        self._unused: list[int] | None = None
        self._used: list[int] | None = None  # by how many ranks each parameter was
        self._hook: tuple[Any, Callable[[Any, GradBucket], Any]] | None = None
        self._shadow: Joining | None = None
        self._forwards, self._checks = 0, int(os.environ.get("TENSORCORE_CHECK_PARAMETERS", "0"))
        self._handles = [
            one.register_post_accumulate_grad_hook(lambda _, number=number: self._arrived(number))
            for number, one in enumerate(self._trained)
        ]

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module's result; in training its backward averages the gradients over the ranks."""
        syncing = mode.enabled and self.require_backward_grad_sync
        if self._begun and syncing:
            self._complain()
        joining = self._joining
        if joining is not None:
            notified = Join.notify_join_context(self)
            if notified is not None:
                notified.wait()
            joining.announce(syncing)
        elif self._checks and syncing:
            if self._forwards and self._forwards % self._checks == 0:
                self.verify_parameters(f", after {self._forwards} forwards")
            self._forwards += 1
        if self.sharing_buffers():
            source = 0 if joining is None else joining.source
            self.share_buffers(source)
        self._expecting = syncing
        made = self._computed(inputs, kwargs)
        if syncing:
            self._prepare(made)
        return made

    def _computed(self, inputs: Any, kwargs: Any) -> Any:
        if self._low is None:
            return self.module(*inputs, **kwargs)
        named = dict(zip(self._names, self._trained, strict=True))
        named |= {
            name: one for name, one in self.module.named_parameters() if name not in named and name not in self._ignored
        }
        inputs, kwargs = cast((inputs, kwargs), self._low)
        return functional_call(self.module, cast(named, self._low), inputs, kwargs)

    def sharing_buffers(self) -> bool:
        """Whether the next forward shares the buffers."""
        return bool(self.broadcast_buffers and self.require_forward_param_sync and self._kept)

    def verify_parameters(self, when: str = "") -> None:
        """Raise, on all ranks, unless all have the same bits in all parameters."""
        check_same_values(list(zip(self._names, self._trained, strict=True)), self.process_group, when)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it, forward and backward add up gradients without sending them; the next ones outside send all."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = self.require_forward_param_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = self.require_forward_param_sync = before

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Have ``hook(state, bucket)`` send each bucket; it returns a Future of the averaged gradients, in one dim."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._hook is not None:
            raise UsageError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._hook = (state, hook)

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """Within it the ranks may have different numbers of batches: one that is done takes part with zeros.

        Args:
            divide_by_initial_world_size: average over all ranks, instead of those that still have batches.
            enable: False switches it off.
            throw_on_early_termination: raise on all ranks as soon as one is done.

        At the end all ranks have the model of one that was done last.
        """
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, divide_by_initial_world_size: bool = True, **kwargs: Any) -> Joining:
        """What this rank does in the steps of others; the first argument as in ``join``."""
        self._shadow = Joining(self, divide_by_initial_world_size)
        return self._shadow

    @property
    def _joining(self) -> Joining | None:
        """The hook of the context that this module is in."""
        return self._shadow if self._join_config.enable else None

    @property
    def join_device(self) -> Any:
        """The device of the messages by which ranks say that they have data: the group's."""
        return self.process_group.device

    @property
    def join_process_group(self) -> Any:
        """The group that gradients are averaged over."""
        return self.process_group

    def share_buffers(self, source: int) -> None:
        """Give all ranks the buffers of one of the group."""
        share(self._kept, source, self.process_group)

    def share_all(self, source: int) -> None:
        """Give all ranks the parameters and buffers of one of the group."""
        share([*self._trained, *self._kept], source, self.process_group)

    def send_zeros(self) -> None:
        """Take part in a backward of the others with nothing of its own; gives the parameters their gradients all the same."""
        with no_grad():
            for bucket in self._buckets:
                bucket.buffer.zero_()
                bucket.stayed.clear()
                self.send(bucket)
        if self.counting():
            self.count_used([0] * len(self._trained))
        self._deliver()

    # Backward

    def _prepare(self, made: Any) -> None:
        for bucket in self._buckets:
            bucket.reset()
        self._next = 0
        looking = self.find_unused_parameters or self.static_graph
        if not looking:
            return
        outputs = [one for one in tensors(made) if one.requires_grad]
        if self._unused is None or not self.static_graph:
            reached = _leaves(outputs)
            self._unused = [i for i, one in enumerate(self._trained) if one.node not in reached]
        if self._unused:
            for one in outputs:
                one.register_hook(self._start_backward)

    def _start_backward(self, _: Any = None) -> None:
        """Count the parameters in that nothing will come for; once for each backward."""
        if self._begun or not self._expecting:
            return
        self._begun = True
        for number in self._unused or ():
            self._bucket_of[number].missing.discard(number)
        self._send_complete()

    def _arrived(self, number: int) -> None:
        if not self._expecting:
            return
        if not self._begun:
            self._begun = True
            if self._unused:
                self._begun = False
                self._start_backward()
        bucket = self._bucket_of[number]
        bucket.missing.discard(number)
        if not bucket.missing:
            self._send_complete()

    def _send_complete(self) -> None:
        while self._next < len(self._buckets) and not self._buckets[self._next].missing:
            bucket = self._buckets[self._next]
            if not self._alone():
                self._average(bucket)
            self._next += 1
        if self._next == len(self._buckets) and self._expecting:
            self._finish()

    def _average(self, bucket: Bucket) -> None:
        if self._hook is None and self._joining is None and has_means(bucket.buffer, self.process_group):
            self._send_parts(bucket)
        else:
            self._fill(bucket)
            self.send(bucket)

    def _alone(self) -> bool:
        """Whether the gradients of this rank are the means already."""
        return self._hook is None and dist.get_world_size(self.process_group) == 1

    def _fill(self, bucket: Bucket, first: int = 0, last: int | None = None) -> None:
        last = len(bucket.views) - 1 if last is None else last
        with no_grad():
            for one, view in zip(bucket.parameters[first : last + 1], bucket.views[first : last + 1], strict=True):
                if one.grad is None:
                    view.zero_()
                elif not _same(one.grad, view):
                    view.copy_(one.grad)

    def _send_parts(self, bucket: Bucket) -> None:
        """Start to average a bucket. Large gradients stay where they are, which saves two passes over them."""
        works = []
        bucket.stayed.clear()
        with no_grad():
            for first, last in bucket.parts:
                number, grad = bucket.numbers[first], bucket.parameters[first].grad
                out = bucket.views[first] if first == last else bucket.between(first, last)
                # One that this rank did not use must not change where no rank did.
                if first == last and _alike(grad, out) and number not in (self._unused or ()):
                    if not self.gradient_as_bucket_view:
                        out = grad
                        bucket.stayed.add(number)
                else:
                    self._fill(bucket, first, last)
                    grad = out
                works.append(start_mean(grad, out, self.process_group))
        buffer = bucket.buffer

        def wait() -> Any:
            for one in works:
                one.wait()
            return buffer

        bucket.sent = Future(make=wait, ready=lambda: all([one.is_completed() for one in works]))

    def send(self, bucket: Bucket) -> None:
        """Start to average a bucket over the ranks."""
        last = bucket is self._buckets[-1]
        with no_grad():
            if self._hook is not None:
                bucket.sent = self._hook[1](self._hook[0], GradBucket(bucket, last))
                return
            size = self._divisor()
            if size != 1:
                bucket.buffer.div_(size)
            work = dist.all_reduce(bucket.buffer, group=self.process_group, async_op=True)
            bucket.sent = work.get_future().then(lambda done: done.value()[0])

    def _divisor(self) -> int:
        return dist.get_world_size(self.process_group) if self._joining is None else self._joining.divisor

    def counting(self) -> bool:
        """Whether the next backward asks which parameters any rank used."""
        return self.find_unused_parameters or (self.static_graph and self._used is None)

    def count_used(self, used: list[int]) -> None:
        """Ask how many ranks used each parameter, of which this one used some."""
        counts: Any = make_tensor(used)
        dist.all_reduce(counts, group=self.process_group)
        self._used = counts.tolist()

    def _finish(self) -> None:
        """Wait for all buckets and give the parameters their averaged gradients."""
        self._expecting = self._begun = False
        if self.counting():
            unused = set(self._unused or ())
            self.count_used([int(i not in unused) for i in range(len(self._trained))])
        if not self._alone():
            self._deliver()

    def _deliver(self) -> None:
        used = self._used
        with no_grad():
            for bucket in self._buckets:
                result = bucket.sent.wait()
                if result is not bucket.buffer:
                    bucket.buffer.copy_(result)
                for number, one, view in zip(bucket.numbers, bucket.parameters, bucket.views, strict=True):
                    if number in bucket.stayed or (used is not None and not used[number]):
                        continue
                    if self.gradient_as_bucket_view and view.dtype is one.dtype:
                        if one.grad is None or not _same(one.grad, view):
                            one.grad = view
                    elif one.grad is None:
                        one.grad = view.to(one.dtype, copy=True)
                    else:
                        one.grad.copy_(view)

    def _complain(self) -> None:
        missing = [self._names[number] for bucket in self._buckets for number in sorted(bucket.missing)]
        self._begun = self._expecting = False
        raise UsageError(
            "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates "
            "that your module has parameters that were not used in producing loss. You can enable unused parameter "
            "detection by passing the keyword argument `find_unused_parameters=True` to "
            "`torch.nn.parallel.DistributedDataParallel`, and by making sure all `forward` function outputs participate in "
            f"calculating loss. Parameters which did not receive grad for rank {dist.get_rank(self.process_group)}: "
            f"{', '.join(missing)}"
        )


def _alike(grad: Any, view: Any) -> bool:
    """Whether a gradient may be sent from where it is, and its mean put into the view."""
    return (
        grad is not None and grad.dtype is view.dtype and grad.device is view.device and grad.stride() == view.stride()
    )


def _dtypes_of(policy: Any) -> tuple[Any, Any]:
    """In which dtype parameters compute and gradients are sent, None for the parameters' own."""
    if policy is None:
        return None, None
    low, sent_in = policy.param_dtype, policy.reduce_dtype
    for one in (low, sent_in, policy.buffer_dtype):
        if one is not None and not (isinstance(one, dtypes.dtype) and one.is_floating_point):
            raise ArgumentError(f"DistributedDataParallel: expected floating dtypes in mixed_precision, got {one!r}")
    return low, low if sent_in is None else sent_in


def _same(grad: Any, view: Any) -> bool:
    return bool(grad.data_ptr() == view.data_ptr() and grad.stride() == view.stride())


def _leaves(outputs: list[Any]) -> set[Any]:
    """The nodes of the tape below some tensors, leaves included."""
    seen: set[Any] = set()
    stack = [one.node for one in outputs]
    while stack:
        edge = stack.pop()
        node = edge.node if type(edge) is Output else edge
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(node.edges)
    return seen
