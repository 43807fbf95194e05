"""cuDNN through its frontend: convolutions and attention, planned once for each shape.

Everything here is optional: without the library, for a dtype or a shape that it has no plan for, or where
``tensorcore.backends.cudnn.enabled`` is off, the answer is that the caller must do without.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from tensorcore.plugin import dtypes, switches
from tensorcore_cuda.kernels.launch import Driver

__all__ = [
    "ALIGNMENT",
    "Cudnn",
    "attention_gradient_graph",
    "attention_graph",
    "convolution_graph",
    "cudnn_version",
    "planned",
]

Native = Any

# dtype -> what the tensors hold and what is computed in, by their names in cuDNN
_DATA = {
    np.dtype(np.float16): ("HALF", "FLOAT"),
    dtypes.bfloat16.numpy: ("BFLOAT16", "FLOAT"),
    np.dtype(np.float32): ("FLOAT", "FLOAT"),
    np.dtype(np.float64): ("DOUBLE", "DOUBLE"),
}
_FLOAT32 = np.dtype(np.float32)
ALIGNMENT = (
    16  # bytes, which plans take every address to be a multiple of: another one is a fault that ends the context
)
_TRIALS = 3  # runs of each plan that are timed


class _Graph(NamedTuple):
    """A graph that is not planned yet, and its tensors in the order of the pointers that it is run with."""

    graph: Any
    tensors: tuple[Any, ...]


class _Plan(NamedTuple):
    """A graph that can run."""

    graph: Any
    tensors: tuple[Any, ...]
    workspace: int


def _new_graph(cudnn: Any, dtype: np.dtype[Any], where: dict[str, Any]) -> Any:
    held, computed = (getattr(cudnn.data_type, name) for name in _DATA[dtype])
    return cudnn.pygraph(io_data_type=held, intermediate_data_type=computed, compute_data_type=computed, **where)


def _tensor(graph: Any, name: str, shape: Sequence[int], strides: Sequence[int], kind: Any) -> Any:
    return graph.tensor(name=name, dim=list(shape), stride=list(strides), data_type=kind)


def _output(made: Any, shape: Sequence[int], strides: Sequence[int], kind: Any) -> Any:
    return made.set_output(True).set_dim(list(shape)).set_stride(list(strides)).set_data_type(kind)


def convolution_graph(
    cudnn: Any, kind: str, dtype: np.dtype[Any], x: Sequence[int], weight: Sequence[int], y: Sequence[int], *,
    stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], **where: Any,
) -> _Graph:  # fmt: skip
    """``fprop``, ``dgrad`` or ``wgrad`` over dense arrays; ``where`` is a handle or the properties of a device."""
    graph, held = _new_graph(cudnn, dtype, where), getattr(cudnn.data_type, _DATA[dtype][0])
    if len(x) == 3:  # cuDNN has no single dim
        x, weight, y = ((*one[:2], 1, one[2]) for one in (x, weight, y))
        stride, padding, dilation = (1, *stride), (0, *padding), (1, *dilation)
    options = dict(stride=list(stride), padding=list(padding), dilation=list(dilation))
    shapes = {"x": x, "weight": weight, "y": y}
    wanted = {"fprop": "y", "dgrad": "x", "wgrad": "weight"}[kind]
    given = {name: _tensor(graph, name, one, _dense(one), held) for name, one in shapes.items() if name != wanted}
    if kind == "fprop":
        made = graph.conv_fprop(image=given["x"], weight=given["weight"], **options)
    elif kind == "dgrad":
        made = graph.conv_dgrad(loss=given["y"], filter=given["weight"], **options)
    else:
        made = graph.conv_wgrad(image=given["x"], loss=given["y"], **options)
    given[wanted] = _output(made, shapes[wanted], _dense(shapes[wanted]), held)
    return _Graph(graph, tuple(given[name] for name in ("x", "weight", "y")))


Layout = tuple[tuple[int, ...], tuple[int, ...]]  # shape and strides


def attention_graph(
    cudnn: Any, dtype: np.dtype[Any], q: Layout, k: Layout, v: Layout, *, causal: bool, scale: float, **where: Any
) -> _Graph:
    """Attention of (batch, heads, length, size) arrays: the result, and the logarithms of the sums."""
    graph, held = _new_graph(cudnn, dtype, where), getattr(cudnn.data_type, _DATA[dtype][0])
    given = [_tensor(graph, name, *one, held) for name, one in zip("qkv", (q, k, v), strict=True)]
    made, sums = graph.sdpa(
        name="attention",
        q=given[0],
        k=given[1],
        v=given[2],
        attn_scale=scale,
        generate_stats=True,
        use_causal_mask=causal,
    )
    shape = (*q[0][:3], v[0][3])
    _output(made, shape, _dense(shape), held)
    rows = (*q[0][:3], 1)
    _output(sums, rows, _dense(rows), cudnn.data_type.FLOAT)
    return _Graph(graph, (*given, made, sums))


def attention_gradient_graph(
    cudnn: Any, dtype: np.dtype[Any], q: Layout, k: Layout, v: Layout, *, causal: bool, scale: float, **where: Any
) -> _Graph:
    """The three gradients, given the result, its gradient and the sums."""
    graph, held = _new_graph(cudnn, dtype, where), getattr(cudnn.data_type, _DATA[dtype][0])
    shape, rows = (*q[0][:3], v[0][3]), (*q[0][:3], 1)
    layouts = {"q": q, "k": k, "v": v, "o": (shape, _dense(shape)), "dO": (shape, _dense(shape))}
    given = {name: _tensor(graph, name, *one, held) for name, one in layouts.items()}
    given["stats"] = _tensor(graph, "stats", rows, _dense(rows), cudnn.data_type.FLOAT)
    made = graph.sdpa_backward(name="attention_backward", **given, attn_scale=scale, use_causal_mask=causal)
    for one, (sizes, _) in zip(made, (q, k, v), strict=True):
        _output(one, sizes, _dense(sizes), held)
    return _Graph(graph, (*given.values(), *made))


def planned(cudnn: Any, graph: Any, *, deterministic: bool, exact: bool, every: bool = False) -> int:
    """Choose plans and build the best one, or all; the bytes of workspace that they need.

    ``exact`` leaves out those that round float32 to fewer bits.
    """
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    notes = cudnn.numerical_note
    left_out = [notes.NONDETERMINISTIC] * deterministic + [notes.TENSOR_CORE, notes.DOWN_CONVERT_INPUTS] * exact
    if left_out:
        graph.deselect_numeric_notes(left_out)
    policy = cudnn.build_plan_policy
    graph.build_plans(policy.ALL if every else policy.HEURISTICS_CHOICE)
    return int(graph.get_workspace_size())


class Cudnn:
    """The library on one device: its handle, and the plans so far."""

    def __init__(self, driver: Driver, cudnn: Any) -> None:
        self.driver, self.cudnn = driver, cudnn
        self.handle = cudnn.create_handle()
        self.plans: dict[Any, _Plan | None] = {}
        self._lock = threading.Lock()  # a handle has one stream, that of whoever is running

    @classmethod
    def of(cls, driver: Driver) -> Cudnn | None:
        """The library of a device, None where it cannot be used."""
        if driver.cudnn is ...:
            driver.cudnn = None
            # The frontend without the library, or a library that finds no device, raises what it likes.
            with suppress(Exception):
                driver.cudnn = cls(driver, importlib.import_module("cudnn"))
        return driver.cudnn  # type: ignore[no-any-return]

    def convolve(self, kind: str, x: Native, weight: Native, y: Native, **options: Any) -> bool:
        """Compute one of three dense arrays from the other two; False where there is no plan for that."""
        wanted = switches("cudnn")
        if not wanted.enabled or x.dtype not in _DATA:
            return False
        exact = x.dtype == _FLOAT32 and not wanted.allow_tf32
        shapes = x.shape, weight.shape, y.shape
        sizes = [tuple(one) for one in options.values()]
        key = (kind, x.dtype, shapes, *sizes, wanted.benchmark, wanted.deterministic, exact)
        pointers = x.data.ptr, weight.data.ptr, y.data.ptr

        def make() -> _Graph:
            return convolution_graph(self.cudnn, kind, x.dtype, *shapes, **options, handle=self.handle)

        return self.run(
            key, make, pointers, benchmark=wanted.benchmark, deterministic=wanted.deterministic, exact=exact
        )

    def attention(
        self, q: Native, k: Native, v: Native, made: Native, sums: Native, *, causal: bool, scale: float
    ) -> bool:
        """Attention into two dense arrays; False where there is no plan for that."""
        wanted, layouts = switches("cudnn"), [_layout(one) for one in (q, k, v)]
        key = ("attention", q.dtype, *layouts, causal, scale, wanted.deterministic)

        def make() -> _Graph:
            return attention_graph(self.cudnn, q.dtype, *layouts, causal=causal, scale=scale, handle=self.handle)

        pointers = tuple([one.data.ptr for one in (q, k, v, made, sums)])
        return wanted.enabled and self.run(key, make, pointers, deterministic=wanted.deterministic)

    def attention_gradient(self, arrays: Sequence[Native], *, causal: bool, scale: float) -> bool:
        """From q, k, v, the result, its gradient and the sums to three dense arrays; False where there is no plan."""
        wanted, layouts = switches("cudnn"), [_layout(one) for one in arrays[:3]]
        key = ("attention_gradient", arrays[0].dtype, *layouts, causal, scale, wanted.deterministic)

        def make() -> _Graph:
            dtype = arrays[0].dtype
            return attention_gradient_graph(self.cudnn, dtype, *layouts, causal=causal, scale=scale, handle=self.handle)

        pointers = tuple([one.data.ptr for one in arrays])
        return wanted.enabled and self.run(key, make, pointers, deterministic=wanted.deterministic)

    def run(
        self, key: Any, make: Any, pointers: tuple[int, ...], *, benchmark: bool = False, deterministic: bool = False,
        exact: bool = False,
    ) -> bool:  # fmt: skip
        """Run the plan of a key, which is made the first time; False where cuDNN has none, or an address is no start of one."""
        if any([one % ALIGNMENT for one in pointers]):
            return False
        with self._lock:
            if key not in self.plans:
                self.plans[key] = self.plan(make, pointers, benchmark, deterministic, exact)
            plan = self.plans[key]
            if plan is None:
                return False
            workspace = self.driver.empty((max(plan.workspace, 1),), np.dtype(np.uint8))
            self.cudnn.set_stream(handle=self.handle, stream=self.driver.stream())
            plan.graph.execute(dict(zip(plan.tensors, pointers, strict=True)), workspace.data.ptr, handle=self.handle)
        return True

    def plan(
        self, make: Any, pointers: tuple[int, ...], benchmark: bool, deterministic: bool, exact: bool
    ) -> _Plan | None:
        try:
            graph, tensors = make()
            workspace = planned(self.cudnn, graph, deterministic=deterministic, exact=exact, every=benchmark)
            if benchmark:
                graph.select_plan(self.fastest(graph, tensors, pointers, workspace))
                workspace = int(graph.get_workspace_size())
        except MemoryError:
            raise
        except Exception:  # no engine takes it: what cuDNN raises for that differs between its versions
            return None
        return _Plan(graph, tensors, workspace)

    def fastest(self, graph: Any, tensors: tuple[Any, ...], pointers: tuple[int, ...], workspace: int) -> int:
        """The number of the plan that took the least time for these arrays; the best guess during a capture."""
        xp = self.driver.xp
        if xp.cuda.get_current_stream().is_capturing():
            return 0
        memory = self.driver.empty((max(workspace, 1),), np.dtype(np.uint8))
        self.cudnn.set_stream(handle=self.handle, stream=self.driver.stream())
        values, times = dict(zip(tensors, pointers, strict=True)), {}
        for number in range(graph.get_execution_plan_count()):
            with suppress(Exception):  # a plan that cannot run here is none
                graph.execute_plan_at_index(values, memory.data.ptr, number, handle=self.handle)
                start, end = xp.cuda.Event(), xp.cuda.Event()
                start.record()
                for _ in range(_TRIALS):
                    graph.execute_plan_at_index(values, memory.data.ptr, number, handle=self.handle)
                end.record()
                end.synchronize()
                times[number] = xp.cuda.get_elapsed_time(start, end)
        return min(times, key=times.__getitem__, default=0)


def cudnn_version(driver: Driver) -> int | None:
    """The library's version on a device, None where it cannot be used."""
    library = Cudnn.of(driver)
    return None if library is None else int(library.cudnn.backend_version())


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _layout(x: Native) -> Layout:
    return tuple(x.shape), tuple([step // x.dtype.itemsize for step in x.strides])
