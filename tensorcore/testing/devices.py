"""Three devices for anybody's tests: ``null`` computes nothing, ``pyref`` is slow and strict, ``sim`` is many and faulty.

They are found by their names without being listed among the devices: ``tc.zeros(3, device="sim:1")``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.base import Backend, Capabilities, Kernel, Native
from tensorcore.backend.composed import COMPOSED
from tensorcore.backend.kernels import NEEDS_VALUES, OPTIONAL, RULES, WRITES
from tensorcore.backend.meta import MetaArray, MetaBackend
from tensorcore.backend.shapes import VIEWS
from tensorcore.backend.xp import XPBackend
from tensorcore.backend.xp.elementwise import BINARY, UNARY
from tensorcore.errors import PluginError
from tensorcore.testing.sim import SimBackend

__all__ = ["MAKERS", "NullBackend", "PyrefBackend", "SimBackend"]

EVERY = tuple(one.name for one in dtypes.ALL)
# Kernels whose result depends on the dtype they compute in.
_OWN_DTYPE = frozenset(["cast", "nextafter", "linspace", "arange", "full", "eye", "triangle_indices", "index_bounds"])
# Options that are host arrays, or lists of numbers, on every device.
_HOST = frozenset([("take_rows", "index"), ("add_rows", "index")])
_BY_VALUE = frozenset(["repeat_interleave"])  # the shape of the result depends on values, for some arguments


class NullBackend(MetaBackend):
    """The shapes of ``meta``, and zero for every value: a program runs to its end and computes nothing.

    ``meta`` refuses to be asked for values; this answers, so that training loops that print their loss run too.
    What is left of their time is the frontend's.
    """

    capabilities = Capabilities(EVERY)

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self.name = "null"

    def to_host(self, native: Native) -> np.ndarray:
        return np.zeros(native.shape, native.dtype)

    def copy_from(self, other: Backend, native: Native) -> MetaArray:
        return super().copy_from(other, native)

    def find_kernel(self, name: str) -> Kernel | None:
        if name not in NEEDS_VALUES or name in OPTIONAL:
            return super().find_kernel(name)
        kernel = _numpy().kernels[name]

        def at_zeros(*natives: Any, **options: Any) -> Any:
            found = kernel(*map(self._zeros, natives), **{key: self._zeros(one) for key, one in options.items()})
            several = isinstance(found, tuple)
            made = [
                self.from_host(one) if isinstance(one, np.ndarray) else one for one in (found if several else [found])
            ]
            return tuple(made) if several else made[0]

        return at_zeros

    def _zeros(self, value: Any) -> Any:
        return self.to_host(value) if type(value) is MetaArray else value


class PyrefBackend(XPBackend):
    """NumPy with primitives alone, that computes in double precision and trusts nobody.

    Each call of a kernel is held against the interface: what comes in must be arrays and numbers of this device, what
    goes out must have the shape and dtype of the primitive's rule, and nothing but ``out`` may have been written to.
    A breach raises PluginError: it is a mistake in the frontend or in a rule, never the user's.
    """

    def __init__(self, index: int = 0) -> None:
        super().__init__(np, "pyref", index)
        self._meta = MetaBackend()

    def find_kernel(self, name: str) -> Kernel | None:
        if name in OPTIONAL or name in COMPOSED:
            return None
        kernel = super().find_kernel(name)
        return kernel if kernel is None or name in VIEWS or name in WRITES else self._strict(name, kernel)

    def _strict(self, name: str, kernel: Kernel) -> Kernel:
        wide = name not in _OWN_DTYPE
        known = RULES.keys() - _BY_VALUE

        count = 1 if name in UNARY else 2 if name in BINARY else None

        def checked(*natives: Any, out: Any = None, **options: Any) -> Any:
            if count is not None and len(natives) != count:
                raise PluginError(f"{name}: expected {count} positional arguments, got {len(natives)}; name the others")
            arrays = list(_arrays(name, [natives, options]))
            before = [one.tobytes() for one in arrays]
            given = {key: one if (name, key) in _HOST else _shapes(one) for key, one in options.items()}
            expected = self._meta.kernels[name](*_shapes(natives), **given) if name in known else None
            widened = (_wider(natives), _wider(options)) if wide else (natives, options)
            result = kernel(*widened[0], **widened[1])
            for array, bits in zip(arrays, before, strict=True):
                if array.tobytes() != bits:
                    raise PluginError(
                        f"{name}: expected its arguments as they were, got one written to; correct the kernel"
                    )
            result = _fitted(name, result, expected)
            if out is None:
                return result
            if (out.shape, out.dtype) != (result.shape, result.dtype):
                raise PluginError(
                    f"{name}: expected out of shape {result.shape} and {result.dtype}, got {out.shape} and {out.dtype}; "
                    f"correct the caller"
                )
            out[...] = result
            return out

        return checked


def _arrays(name: str, value: Any) -> Any:
    """The arrays among a kernel's arguments; PluginError for what no kernel may be given."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _arrays(name, one)
    elif type(value) is np.ndarray:
        yield value
    elif hasattr(value, "shape") or hasattr(value, "native"):
        raise PluginError(
            f"{name}: expected native arrays and Python's numbers, got {type(value).__name__}; correct the caller"
        )


def _shapes(value: Any) -> Any:
    """The arguments with arrays of ``meta`` in the places of real ones."""
    if isinstance(value, dict):
        return {key: _shapes(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_shapes(one) for one in value])
    if type(value) is not np.ndarray:
        return value
    steps = tuple([step // value.itemsize for step in value.strides])
    return MetaArray(value.shape, steps, 0, value.dtype, None)


def _wider(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _wider(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_wider(one) for one in value])
    if type(value) is np.ndarray:
        return value.astype(_wide(dtypes.from_numpy_dtype(value.dtype)).numpy)
    return _wide(value) if isinstance(value, dtypes.dtype) else value


def _wide(dtype: dtypes.dtype) -> dtypes.dtype:
    return {"floating": dtypes.float64, "complex": dtypes.complex128}.get(dtype.kind, dtype)


def _fitted(name: str, result: Any, expected: Any) -> Any:
    """The results in the dtypes that the rule says, after a look at their shapes."""
    if isinstance(result, (tuple, list)):
        rules = [None] * len(result) if expected is None else expected
        return tuple([_fitted(name, one, rule) for one, rule in zip(result, rules, strict=True)])
    if expected is None or not hasattr(result, "shape"):
        return result
    if tuple(result.shape) != tuple(expected.shape):
        raise PluginError(
            f"{name}: expected shape {tuple(expected.shape)} by its rule, got {tuple(result.shape)}; correct one of them"
        )
    fixed = np.asarray(result)
    if fixed.dtype != expected.dtype and fixed.dtype.kind not in ("fc" if expected.dtype.kind in "fcV" else ""):
        raise PluginError(f"{name}: expected {expected.dtype} by its rule, got {fixed.dtype}; correct one of them")
    made = np.empty_like(fixed, expected.dtype)
    made[...] = fixed
    return made


def _numpy() -> XPBackend:
    if not _shared:
        _shared.append(XPBackend(np))
    return _shared[0]


_shared: list[XPBackend] = []

MAKERS: dict[str, Callable[[int], Backend]] = {"null": NullBackend, "pyref": PyrefBackend, "sim": SimBackend}
