"""Graphs: work of a stream written down once, and launched again and again as one."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

from tensorcore.accelerators import Devices
from tensorcore.autograd import Function, grad
from tensorcore.cuda.streams import Stream, StreamContext, current_stream
from tensorcore.errors import ArgumentError
from tensorcore.nn.module import Module
from tensorcore.tape.mode import enable_grad
from tensorcore.tensor import Tensor

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

_devices = Devices("cuda")


class CUDAGraph:
    """What was called between ``capture_begin`` and ``capture_end``, to run again with ``replay``.

    A replay reads and writes the same memory as the capture: write new inputs into the tensors that were captured, and
    read the results from those that the capture made.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._native: Any = None

    @property
    def native(self) -> Any:
        """The backend's graph, made on first use."""
        if self._native is None:
            self._native = _devices._device(None).new_graph()
        return self._native

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Write down what this thread's current stream is given from now on; see ``graph`` for the usual form."""
        self.native.begin(pool)

    def capture_end(self) -> None:
        """Write down no more."""
        self.native.end()

    def replay(self) -> None:
        """Run it on the current stream."""
        self.native.replay()

    def reset(self) -> None:
        """Forget it, and give its memory back."""
        self.native.reset()

    def pool(self) -> Any:
        """Its memory, for another graph that never runs at the same time."""
        return self.native.pool


class graph:
    """What is called in the ``with`` block is written down into a graph instead of run.

    Args:
        cuda_graph: the graph, which is new.
        pool: the memory of another graph to share; see ``CUDAGraph.pool``.
        stream: the stream to capture on; one kept for it where None.
    """

    default_capture_stream: Stream | None = None

    def __init__(
        self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None, capture_error_mode: str = "global"
    ) -> None:
        if stream is None:
            if graph.default_capture_stream is None or graph.default_capture_stream.device is not _devices._device(
                None
            ):
                graph.default_capture_stream = Stream()
            stream = graph.default_capture_stream
        self.cuda_graph, self.capture_stream, self._pool = cuda_graph, stream, pool
        self._context = StreamContext(stream)

    def __enter__(self) -> None:
        _devices.synchronize()
        gc.collect()
        _devices.empty_cache()
        self._context.__enter__()
        self.cuda_graph.capture_begin(self._pool)

    def __exit__(self, *error: object) -> None:
        try:
            self.cuda_graph.capture_end()
        except Exception:
            if error[0] is None:  # else the capture is broken by what the program raises, which says more
                raise
        finally:
            self._context.__exit__(*error)


def graph_pool_handle() -> Any:
    """Memory for graphs to share that never run at the same time, as ``pool=``."""
    made = CUDAGraph()
    return made.native.new_pool()


def is_current_stream_capturing() -> bool:
    """Whether what is called now is written down instead of run."""
    return _devices.is_available() and bool(_devices._device(None).capturing())


def make_graphed_callables(
    callables: Any, sample_args: Any, num_warmup_iters: int = 3, allow_unused_input: bool = False, pool: Any = None
) -> Any:
    """Callables that run as graphs, forward and backward, in place of modules or functions of tensors.

    Args:
        callables: one, or a tuple of them in the order in which they run.
        sample_args: for each, a tuple of tensors of the shapes and ``requires_grad`` of those to come.
        num_warmup_iters: how often each runs before it is captured.
        allow_unused_input: whether an input may have no gradient.
        pool: see ``graph``.
    """
    single = not isinstance(callables, tuple)
    given = (callables,) if single else callables
    samples = (sample_args,) if single else sample_args
    for one in given:
        if isinstance(one, Module) and (one._backward_hooks or one._forward_hooks or one._forward_pre_hooks):
            raise ArgumentError(
                "Modules must not have hooks registered at the time they are passed, got some; register them on what this returns"
            )
    made = [
        _graphed(one, tuple(sample), num_warmup_iters, allow_unused_input, pool)
        for one, sample in zip(given, samples, strict=True)
    ]
    return made[0] if single else tuple(made)


def _graphed(function: Any, inputs: tuple[Tensor, ...], warmup: int, allow_unused: bool, pool: Any) -> Any:
    parameters = tuple(function.parameters()) if isinstance(function, Module) else ()
    static = (*inputs, *parameters)
    wanted = [one for one in static if one.requires_grad]
    side = Stream()
    side.wait_stream(current_stream())
    with StreamContext(side), enable_grad():
        for _ in range(warmup):
            outputs = _several(function(*inputs))
            if wanted and (due := [one for one in outputs if one.requires_grad]):
                grad(due, wanted, [one.detach().clone() for one in due], allow_unused=allow_unused)
    current_stream().wait_stream(side)
    forward, backward = CUDAGraph(), CUDAGraph()
    with enable_grad(), graph(forward, pool):
        result = function(*inputs)
    outputs = _several(result)
    due = [one for one in outputs if one.requires_grad]
    incoming = [one.detach().clone() for one in due]
    grads: list[Any] = []
    if wanted and due:
        with graph(backward, forward.pool() if pool is None else pool):
            grads = list(grad(due, wanted, incoming, allow_unused=allow_unused))
    by_input = {id(one): found for one, found in zip(wanted, grads, strict=False)}

    class Graphed(Function):
        @staticmethod
        def forward(ctx: Any, *given: Tensor) -> Any:
            for place, one in zip(inputs, given, strict=False):
                if place.data_ptr() != one.data_ptr():  # type: ignore[attr-defined]
                    place.detach().copy_(one.detach())
            forward.replay()
            return tuple([one.detach() for one in outputs])

        @staticmethod
        def backward(ctx: Any, *given: Any) -> Any:
            arrived = [one for one, out in zip(given, outputs, strict=True) if out.requires_grad]
            for place, one in zip(incoming, arrived, strict=True):
                if one is not None:
                    place.copy_(one)
            backward.replay()
            found = [by_input.get(id(one)) for one in static]
            return tuple([None if one is None else one.detach() for one in found])

    def call(*given: Tensor) -> Any:
        made = Graphed.apply(*given, *parameters)
        found = made if isinstance(made, tuple) else (made,)
        return found[0] if isinstance(result, Tensor) else type(result)(found)

    if not isinstance(function, Module):
        return call
    training, plain = function.training, function.forward

    def run(*given: Tensor, **named: Any) -> Any:
        return call(*given) if function.training == training and not named else plain(*given, **named)

    function.forward = run  # type: ignore[method-assign]
    return function


def _several(result: Any) -> list[Tensor]:
    found: Sequence[Any] = (result,) if isinstance(result, Tensor) else tuple(result)
    return list(found)
