"""A device that runs every kernel on two devices and stops at the first whose results differ, with a file that shows it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.arrays import Array
from tensorcore.backend.base import Backend, Capabilities, Kernel, Native
from tensorcore.backend.kernels import WRITES
from tensorcore.backend.registry import device as find_device
from tensorcore.backend.shapes import VIEWS
from tensorcore.dtypes import dtype, from_numpy_dtype
from tensorcore.errors import ArgumentError, TensorcoreError

__all__ = ["DifferentialBackend", "Divergence", "Pair", "differential", "replay"]

Shape = tuple[int, ...]
# Of the largest element at hand, by bytes of a real number: what another order of sums may change.
_TOLERANCE = {2: 2e-2, 4: 1e-4, 8: 1e-9}
_ABSENT = object()
_files = itertools.count(1)


class Divergence(TensorcoreError, AssertionError):
    """Two devices gave different results.

    Attributes:
        path: the file with what the kernel was given; see ``replay``.
    """

    path: Path | None = None


class Pair(Array):
    """The native array of a differential device: one array on each of the two."""

    __slots__ = ("first", "second")

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second

    @property
    def shape(self) -> Shape:
        """As the first has it."""
        return tuple(self.first.shape)

    @property
    def dtype(self) -> Any:
        """As the first has it."""
        return self.first.dtype


class DifferentialBackend(Backend):
    """Two devices side by side. Reading gives what the first has; random numbers are drawn there.

    A result that is near enough on both goes on as the first has it.

    Attributes:
        first, second: the two.
        tolerance: how far results may be apart, of the largest element that a kernel took or gave; None for what fits
            the dtype. Integers and bools have to be equal.
        ignored: names of kernels whose results are not compared, as eigenvectors that have any sign: what the first gave goes on.
        folder: where files go.
    """

    array = Pair

    def __init__(self, first: Backend, second: Backend) -> None:
        super().__init__("differential", 0)
        self.first, self.second = first, second
        known = first.capabilities.dtypes & second.capabilities.dtypes
        self.capabilities = Capabilities(tuple(sorted(known)), views=True)
        self.tolerance: float | None = None
        self.ignored = {"eig", "eigh", "svd", "lu_factor", "geqrf"}
        self.folder = Path()

    @property
    def acts_as(self) -> str:
        return self.first.acts_as

    def allocate(self, shape: Shape, dtype: dtype) -> Pair:
        return Pair(self.first.allocate(shape, dtype), self.second.allocate(shape, dtype))

    def from_host(self, array: np.ndarray) -> Pair:
        return Pair(self.first.from_host(array), self.second.from_host(array))

    def to_host(self, native: Native) -> np.ndarray:
        values = np.array(self.first.to_host(native.first))
        values.flags.writeable = False  # a write would reach one of the two alone
        return values

    def as_strided(self, native: Pair, shape: Shape, strides: Shape, offset: int) -> Pair:
        return Pair(
            self.first.as_strided(native.first, shape, strides, offset),
            self.second.as_strided(native.second, shape, strides, offset),
        )

    def layout(self, native: Pair) -> tuple[Shape, int]:
        return self.first.layout(native.first)

    def storage(self, native: Pair) -> Pair:
        return Pair(self.first.storage(native.first), self.second.storage(native.second))

    def storage_key(self, native: Pair) -> Any:
        return self.first.storage_key(native.first)

    def data_pointer(self, native: Pair) -> int:
        return self.first.data_pointer(native.first)

    def as_native(self, value: Any) -> Pair:
        return value if type(value) is Pair else self._paired(self.first.as_native(value))

    def random(self, kind: str, shape: Shape, dtype: dtype, generator: Any = None, **options: Any) -> Pair:
        return self._paired(self.first.random(kind, shape, dtype, generator, **options))

    def draw(self, op: str, function: Any, *natives: Pair) -> Pair:
        return self._paired(self.first.draw(op, function, *[one.first for one in natives]))

    def synchronize(self) -> None:
        self.first.synchronize()
        self.second.synchronize()

    def _paired(self, native: Native) -> Pair:
        return Pair(native, self.second.from_host(np.array(self.first.to_host(native))))

    def find_kernel(self, name: str) -> Kernel | None:
        mine, other = self.first.kernels[name], self.second.kernels[name]
        if not mine or not other:
            return None

        def run(*natives: Any, **options: Any) -> Any:
            # What a kernel writes to is what the file has to show as it was.
            before = self._saved(natives, options) if name in WRITES or "out" in options else None
            made = mine(*_side(natives, 0), **_side(options, 0))
            also = other(*_side(natives, 1), **_side(options, 1))
            if name in WRITES:
                for one in _pairs(natives):
                    self._compare(name, one.first, one.second, before, natives)
            if "out" in options:
                self._compare(name, options["out"].first, options["out"].second, before, natives)
                return options["out"]
            return self._together(name, made, also, natives, options)

        return run

    def _together(self, name: str, made: Any, also: Any, natives: Any, options: Any) -> Any:
        """What the two answered, as pairs, once it is compared."""
        if isinstance(made, list | tuple) and isinstance(also, list | tuple):
            if len(made) == len(also):
                return tuple([self._together(name, a, b, natives, options) for a, b in zip(made, also, strict=True)])
            # What kernels keep for their gradients is theirs: only the result is the same thing.
            first = self._together(name, made[0], also[0], natives, options)
            rest = itertools.zip_longest(made[1:], also[1:], fillvalue=_ABSENT)
            return (first, *[Pair(a, b) for a, b in rest])
        if not hasattr(made, "shape"):
            if type(made) is not type(also) or (made is not None and made != also):
                raise self._diverged(name, made, also, lambda: self._saved(natives, options))
            return made
        made, also = self.first.as_native(made), self.second.as_native(also)
        if name in self.ignored:
            return self._paired(made)  # both are right, and what follows would tell them apart
        if name not in VIEWS:
            self._compare(name, made, also, lambda: self._saved(natives, options), natives)
        return Pair(made, also)

    def _compare(self, name: str, made: Any, also: Any, saved: Any, natives: Any) -> None:
        a, b = self.first.to_host(made), self.second.to_host(also)
        if a.shape != b.shape or a.dtype != b.dtype or not self._close(a, b, natives):
            raise self._diverged(name, a, b, saved)
        if a.tobytes() != b.tobytes():
            # Each kernel is judged by itself: what it may be off by is not carried on to the next ones.
            self.second.kernels["copy"](also, self.second.from_host(np.array(a)))

    def _close(self, a: np.ndarray, b: np.ndarray, natives: Any) -> bool:
        kind = from_numpy_dtype(a.dtype)
        if kind.kind not in ("floating", "complex"):
            return bool(np.array_equal(a, b))
        apart = _TOLERANCE[kind.to_real().itemsize] if self.tolerance is None else self.tolerance
        # What a sum cancels is no smaller than what it was made of.
        scale = max([_largest(a), *[_largest(self.first.to_host(one.first)) for one in _pairs(natives)]])
        wide = np.complex128 if kind.is_complex else np.float64
        return bool(np.allclose(a.astype(wide), b.astype(wide), rtol=apart, atol=apart * scale, equal_nan=True))

    def _diverged(self, name: str, made: Any, also: Any, saved: Any) -> Divergence:
        arrays, call = saved() if callable(saved) else saved
        path = self.folder / f"divergence-{name}-{next(_files)}.npz"
        call = {"kernel": name, "first": str(self.first), "second": str(self.second), **call}
        np.savez(path, call=np.array(json.dumps(call)), **arrays)
        error = Divergence(
            f"differential: expected '{name}' to give the same on {self.first} and {self.second}, got {_apart(made, also)}; "
            f"what it was given is in {path}, run it again with tensorcore.wrappers.replay({str(path)!r})"
        )
        error.path = path
        return error

    def _saved(self, natives: Any, options: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The arrays of a call, and the call with their names in their places."""
        arrays: dict[str, np.ndarray] = {}

        def keep(value: Any) -> np.ndarray:
            return np.array(self.first.to_host(value.first))

        return arrays, {"operands": _written(natives, arrays, keep), "options": _written(options, arrays, keep)}

    def __str__(self) -> str:
        return f"differential:{self.first},{self.second}"

    def __repr__(self) -> str:
        return f"device(type={str(self)!r})"

    def __reduce__(self) -> Any:
        return differential, (str(self.first), str(self.second))


_devices: dict[tuple[int, int], DifferentialBackend] = {}


def differential(first: Any, second: Any) -> DifferentialBackend:
    """The device that runs everything on both of two devices; always the same one for the two."""
    pair = [find_device(one) if isinstance(one, str) else one for one in (first, second)]
    if pair[0] is pair[1]:
        raise ArgumentError(f"differential: expected two devices, got {pair[0]} twice; name another one")
    key = id(pair[0]), id(pair[1])
    found = _devices.get(key)
    if found is None:
        found = _devices[key] = DifferentialBackend(*pair)
    return found


def replay(path: Any) -> tuple[Any, Any]:
    """Run the kernel of a file that a divergence left, on both devices again; what each of them answers, on the host."""
    with np.load(path) as file:
        call = json.loads(str(file["call"]))
        arrays = {name: file[name] for name in file.files if name != "call"}
    answers = []
    for name in (call["first"], call["second"]):
        device = find_device(name)
        natives = _read(call["operands"], arrays, device)
        options = _read(call["options"], arrays, device)
        made = device.kernels[call["kernel"]](*natives, **options)
        answers.append(_hosted(natives if made is None else made, device))
    return answers[0], answers[1]


def _side(value: Any, which: int) -> Any:
    """A value with the arrays of one device; what only the other keeps is left out."""
    if type(value) is Pair:
        return value.second if which else value.first
    if isinstance(value, list | tuple):
        return type(value)([one for one in [_side(each, which) for each in value] if one is not _ABSENT])
    if isinstance(value, dict):
        return {key: _side(one, which) for key, one in value.items()}
    return value


def _pairs(value: Any) -> list[Pair]:
    if type(value) is Pair:
        return [value]
    return [one for each in value for one in _pairs(each)] if isinstance(value, list | tuple) else []


def _largest(array: np.ndarray) -> float:
    """The size of the largest finite element of an array of floats."""
    if from_numpy_dtype(array.dtype).kind not in ("floating", "complex"):
        return 0.0
    sizes = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))


def _apart(made: Any, also: Any) -> str:
    if not isinstance(made, np.ndarray) or not isinstance(also, np.ndarray):
        return f"{made!r} and {also!r}"
    if made.shape != also.shape or made.dtype != also.dtype:
        return f"{made.dtype}{list(made.shape)} and {also.dtype}{list(also.shape)}"
    wide = made.astype(np.complex128 if made.dtype.kind == "c" else np.float64)
    distance = np.abs(wide - also.astype(wide.dtype))
    place = np.unravel_index(int(np.nanargmax(distance)) if np.isfinite(distance).any() else 0, made.shape)
    return f"{made[place]} and {also[place]} at {list(map(int, place))}"


# Calls as JSON


def _written(value: Any, arrays: dict[str, np.ndarray], keep: Any) -> Any:
    if type(value) is Pair or isinstance(value, np.ndarray):
        name = f"a{len(arrays)}"
        arrays[name] = np.array(value) if isinstance(value, np.ndarray) else keep(value)
        return {"array": name, "host": isinstance(value, np.ndarray)}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_written(one, arrays, keep) for one in value]}
    if isinstance(value, dict):
        return {"dict": {key: _written(one, arrays, keep) for key, one in value.items()}}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, dtype):
        return {"dtype": value.name}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    return value if value is None or isinstance(value, bool | int | float | str) else {"other": repr(value)}


def _read(value: Any, arrays: dict[str, np.ndarray], device: Backend) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, held), *rest) = value.items()
    if kind == "array":
        return arrays[held] if rest[0][1] else device.from_host(arrays[held])
    if kind in ("list", "tuple"):
        made = [_read(one, arrays, device) for one in held]
        return made if kind == "list" else tuple(made)
    if kind == "dict":
        return {key: _read(one, arrays, device) for key, one in held.items()}
    if kind == "slice":
        return slice(*held)
    if kind == "dtype":
        return next(one for one in dtypes.ALL if one.name == held)
    if kind == "complex":
        return complex(*held)
    raise ArgumentError(f"replay: expected plain values, got {held}, which no file can hold; call the op itself")


def _hosted(value: Any, device: Backend) -> Any:
    if isinstance(value, list | tuple):
        return [_hosted(one, device) for one in value]
    return np.array(device.to_host(device.as_native(value))) if hasattr(value, "shape") else value
