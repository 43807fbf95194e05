"""What a model's call asks of kernels, written down as ONNX nodes while it runs on the host."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorcore.backend.base import Backend, Kernel, MissingKernel
from tensorcore.backend.composed import composed, elementwise
from tensorcore.backend.kernels import OPTIONAL
from tensorcore.backend.watch import Replaced, unwatch, watch
from tensorcore.errors import UsageError

__all__ = ["Node", "Trace", "handler"]

# Kernels that check values and make none.
_CHECKS = frozenset(["index_bounds", "lowest", "highest", "count_true"])
# Composed kernels in which no size of the example is written down as a number.
_SIZELESS = frozenset([*elementwise.__all__, "nansum", "count_nonzero", "mean", "var", "var_mean"])
_HANDLERS: dict[str, Callable[..., Any]] = {}


def handler(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter what writes the kernels of these names down.

    It is called as ``function(trace, result, *natives, **options)`` and answers with the name of the result, or with
    a list of names for several results, None for those that no file has.
    """

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _HANDLERS[name] = function
        return function

    return enter


class Node(NamedTuple):
    """One node of the file."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


class Trace:
    """The nodes of one call of a model.

    Args:
        device: where it runs.
        known: names for native arrays that are constants, by id: the parameters.
        folds: whether what is computed of constants alone becomes a constant; without it, that is written down too.
        sizes_vary: whether sizes are not the same for all calls, so that what is made of sizes is written down too.

    Attributes:
        nodes: in the order of the calls.
        results: the names and arrays that the model answered with.
        constants: arrays by name; ``shapes`` has the names of those that are sizes or places.
    """

    def __init__(self, device: Backend, known: dict[int, str], sizes_vary: bool, folds: bool) -> None:
        self.device, self.known, self.sizes_vary, self.folds = device, known, sizes_vary, folds
        self.nodes: list[Node] = []
        self.constants: dict[str, np.ndarray] = {}
        self.shapes: set[str] = set()
        self.producers: dict[str, Node] = {}
        self.results: list[tuple[str, np.ndarray]] = []
        self._names: dict[int, tuple[Any, str]] = {}  # the arrays are kept, or their ids would be given again
        self._count = 0
        self._replaced = Replaced()

    def __enter__(self) -> Trace:
        watch(self._around, self.device)
        self._to_host = self.device.to_host
        self._replaced.put(self.device, "to_host", self._read)
        return self

    def __exit__(self, *error: object) -> None:
        self._replaced.give_back()
        unwatch(self._around, self.device)

    def finish(self, results: Sequence[np.ndarray]) -> None:
        """Note what the model answered with."""
        self.results = [(self.name(one), one) for one in results]

    # What handlers call

    def node(self, kind: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Write a node; its inputs are native arrays, names or None. The name of its result, or a list of them."""
        names = tuple(["" if one is None else one if isinstance(one, str) else self.name(one) for one in inputs])
        while names and not names[-1]:
            names = names[:-1]
        made = []
        for _ in range(outputs):
            self._count += 1
            made.append(f"{kind.lower()}_{self._count}")
        entry = Node(kind, names, tuple(made), attributes)
        self.nodes.append(entry)
        for one in made:
            self.producers[one] = entry
        return made[0] if outputs == 1 else made

    def name(self, value: Any, like: Any = None) -> str:
        """The name of a native array, or of a number as an array of the dtype of ``like``."""
        found = self._names.get(id(value))
        if found is not None:
            return found[1]
        if isinstance(value, np.ndarray):
            name = self.known.get(id(value))
            if name is None:
                return self._constant(value)
            if name not in self.constants:
                self.constants[name] = value
            self._names[id(value)] = value, name
            return name
        return self._constant(np.asarray(value, None if like is None else like.dtype))

    def sizes(self, *values: int) -> str:
        """A vector of sizes or places, which may be others in another call."""
        self._count += 1
        name = f"sizes_{self._count}"
        self.constants[name] = np.asarray(values, np.int64)
        self.shapes.add(name)
        return name

    def value_of(self, name: str) -> np.ndarray | None:
        """The array of that name where it is a constant."""
        return self.constants.get(name)

    def is_traced(self, value: Any) -> bool:
        """Whether a native array is a result or an input of what is written down."""
        return id(value) in self._names and self._names[id(value)][1] not in self.constants

    def bind(self, value: Any, name: str) -> None:
        """Let a native array be known by a name from now on."""
        self._names[id(value)] = value, name

    # The table

    def _around(self, device: Backend, name: str, kernel: Kernel) -> Kernel:
        write = _HANDLERS.get(name)
        if write is None:
            if name in _CHECKS:
                return kernel
            if name in OPTIONAL:
                missing: Any = MissingKernel(device, name)
                return missing  # type: ignore[no-any-return]
            if name in _SIZELESS:
                made = composed(name, device)
                if made is not None:
                    return made
        makes = name in ("full", "arange", "eye") and self.sizes_vary

        def traced(*natives: Any, **options: Any) -> Any:
            out = options.get("out")
            result = kernel(*natives, **options)
            if result is None or not (makes or self._depends([*natives, *options.values()])):
                return result
            if write is None:
                raise UsageError(
                    f"onnx.export: expected kernels that an ONNX file has a node for, got '{name}'; write the model without it"
                )
            if out is not None:
                options = {key: value for key, value in options.items() if key != "out"}
            names = write(self, result, *natives, **options)
            if out is not None or name in ("copy", "fill"):
                self._check_write(name, result)
            if isinstance(names, list):
                for one, mine in zip(result, names, strict=False):
                    if mine is not None:
                        self.bind(one, mine)
            else:
                self.bind(result, names)
            return result

        return traced

    def _depends(self, values: Sequence[Any]) -> bool:
        for one in values:
            if isinstance(one, (list, tuple)):
                if self._depends(one):
                    return True
            elif self.is_traced(one) or (not self.folds and isinstance(one, np.ndarray) and one.ndim):
                return True
        return False

    def _check_write(self, name: str, target: np.ndarray) -> None:
        """Refuse a write into memory that another traced array shows: a file has values and no memory."""
        for one, _ in list(self._names.values()):
            if one is not target and isinstance(one, np.ndarray) and np.may_share_memory(one, target):
                raise UsageError(
                    f"onnx.export: expected writes into whole tensors, got '{name}' into a view of another; "
                    f"write the model with where() or cat() instead"
                )

    def _read(self, native: Any) -> np.ndarray:
        if self.is_traced(native):
            warnings.warn(
                "onnx.export: a value of a tensor was read while the model ran; the file has it as a constant, and other "
                "inputs will get the same",
                stacklevel=3,
            )
        return self._to_host(native)

    def _constant(self, value: np.ndarray) -> str:
        # Equal ones get names of their own here, so that traces of other sizes have the same names.
        self._count += 1
        name = f"constant_{self._count}"
        self.constants[name] = value
        self._names[id(value)] = value, name
        return name
