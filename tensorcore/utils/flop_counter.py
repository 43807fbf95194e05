"""How many floating point operations a program asks for, counted from the shapes that its kernels are given."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from tensorcore.backend.base import Backend, Kernel
from tensorcore.backend.watch import unwatch, watch
from tensorcore.utils.module_tracker import ModuleTracker
from tensorcore.utils.tables import count_text, table_text

__all__ = ["FlopCounterMode", "kernel_flops"]


class FlopCounterMode:
    """Within a ``with``, counts the operations of products, convolutions, attention and recurrent steps by module.

    A multiplication and an addition are two operations, as in PyTorch's counter of this name; elementwise work is not
    counted. Works on every device, on ``meta`` too, where nothing is computed.

    Args:
        mods: kept for programs that pass it; all modules are known by themselves.
        depth: how many levels of modules ``get_table`` shows.
        display: whether the table goes to the standard output at the end of the ``with``.
        custom_mapping: by kernel name, a function of the shapes of what the kernel takes, with the keyword
            ``out_shape``, that answers with the count.
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: Mapping[str, Callable[..., int]] | None = None,
    ) -> None:
        self.depth, self.display = depth, display
        self._custom = dict(custom_mapping or {})
        self._counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._modules = ModuleTracker()

    def __enter__(self) -> FlopCounterMode:
        self._counts.clear()
        self._modules.__enter__()
        watch(self._around)
        return self

    def __exit__(self, *error: object) -> None:
        unwatch(self._around)
        self._modules.__exit__()
        if self.display:
            sys.stdout.write(self.get_table() + "\n")

    def get_total_flops(self) -> int:
        """The count of everything inside the ``with``."""
        return sum(self._counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """The counts by module path, and there by kernel; ``Global`` has all of them. A module counts those within."""
        return {path: dict(counts) for path, counts in self._counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a text table, modules down to ``depth`` levels."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows = []
        for path, counts in self._counts.items():
            level = 0 if path == "Global" else path.count(".") + 1
            if level <= depth:
                mine = sum(counts.values())
                share = f"{100 * mine / total:.2f}%" if total else "0%"
                rows.append(["  " * level + path, count_text(mine), share])
                rows += [["  " * (level + 1) + f"- {name}", count_text(n), ""] for name, n in counts.items()]
        return table_text(["Module", "FLOP", "% Total"], rows)

    def _around(self, device: Backend, name: str, kernel: Kernel) -> Kernel:
        count = self._custom.get(name) or _COUNTS.get(name)
        if count is None:
            return kernel

        def counted(*natives: Any, **options: Any) -> Any:
            result = kernel(*natives, **options)
            if result is not None:
                n = _counted(count, natives, options, result)
                for path in self._modules.parents:
                    self._counts[path][name] += n
            return result

        return counted


def kernel_flops(name: str, natives: tuple[Any, ...], options: dict[str, Any], result: Any) -> int:
    """How many operations one call of the kernel ``name`` was; 0 for kernels that are not counted."""
    count = _COUNTS.get(name)
    return 0 if count is None or result is None else _counted(count, natives, options, result)


def _counted(count: Callable[..., int], natives: tuple[Any, ...], options: dict[str, Any], result: Any) -> int:
    out = result[0] if type(result) in (tuple, list) else result
    shapes = [tuple(one.shape) if hasattr(one, "shape") else one for one in natives]
    return int(count(*shapes, out_shape=tuple(out.shape) if hasattr(out, "shape") else (), **options))


def _matmul(a: Any, b: Any, *rest: Any, out_shape: Any, **options: Any) -> int:
    return 2 * prod(out_shape) * a[-1]


def _matmul_tn(a: Any, b: Any, *, out_shape: Any, **options: Any) -> int:
    return 2 * prod(out_shape) * a[-2]


def _addmm(input: Any, a: Any, b: Any, *, out_shape: Any, **options: Any) -> int:
    return 2 * prod(out_shape) * a[-1]


def _conv(x: Any, weight: Any, *rest: Any, out_shape: Any, **options: Any) -> int:
    return 2 * prod(out_shape) * prod(weight[1:])


def _conv_back(g: Any, weight: Any, *rest: Any, **options: Any) -> int:
    return 2 * prod(g) * prod(weight[1:])


def _conv_weight(g: Any, x: Any, *, shape: Any, **options: Any) -> int:
    return 2 * prod(g) * prod(shape[1:])


def _attention(query: Any, key: Any, value: Any, *rest: Any, **options: Any) -> int:
    return 2 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _attention_back(g: Any, query: Any, key: Any, value: Any, *rest: Any, **options: Any) -> int:
    # The scores again, and the gradients of scores, query and key; those of the weights' product twice.
    return 2 * prod(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])


def _steps(gates: Any, weight: Any, *rest: Any, **options: Any) -> int:
    return 2 * gates[0] * prod(weight)


def _steps_back(g: Any, gates: Any, weight: Any, *rest: Any, **options: Any) -> int:
    return 4 * gates[0] * prod(weight)


_COUNTS: dict[str, Callable[..., int]] = {
    "matmul": _matmul, "matmul_nt": _matmul, "matmul_tn": _matmul_tn, "linear": _matmul, "addmm": _addmm,
    "conv": _conv, "conv_input_gradient": _conv_back, "conv_weight_gradient": _conv_weight,
    "attention": _attention, "attention_backward": _attention_back,
    **dict.fromkeys(("lstm_steps", "gru_steps", "rnn_steps"), _steps),
    **dict.fromkeys(("lstm_steps_backward", "gru_steps_backward", "rnn_steps_backward"), _steps_back),
}  # fmt: skip
