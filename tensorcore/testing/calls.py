"""The registry's sampled calls, with arrays where tensors belong, and what becomes of them at the edges."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tensorcore.ops.define import OPS

__all__ = [
    "RANDOM",
    "TIED",
    "UNDEFINED",
    "Call",
    "calls_of",
    "degenerate",
    "mapped",
    "misfits",
    "refused",
    "tensors_of",
]

# Ops that draw random numbers: their own tests compare them, in the layouts in which the order of the draws is defined.
RANDOM = {
    "alpha_dropout", "bernoulli", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
    "feature_dropout", "gumbel_softmax", "multinomial",
}  # fmt: skip
# Ops whose results nobody defines: there is nothing to compare.
UNDEFINED = {"empty_like"}
# Ops that answer with the places of equal elements in an order that PyTorch leaves open.
TIED = {"kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk"}
# Matrices with equal eigenvalues or singular values have no vectors of their own, nor those a derivative: of a matrix of equal
# rows the values alone are compared, and of other dtypes too.
TIED |= {"linalg_eig", "linalg_eigh", "linalg_svd", "pca_lowrank", "svd", "svd_lowrank"}


class Call(NamedTuple):
    """One sampled call: arrays stand where tensors belong."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def floats(self) -> list[np.ndarray]:
        """The arrays of floats among the arguments, in order; those in lists are left out."""
        return [one for one in (*self.args, *self.kwargs.values()) if _float(one)]

    def replaced(self, change: Callable[[np.ndarray, int], np.ndarray], every: bool = False) -> Call:
        """The call with ``change(array, position)`` for each array of floats, or with ``every`` for each array."""
        position = -1

        def changed(one: Any) -> Any:
            nonlocal position
            if isinstance(one, (list, tuple)) and any(isinstance(part, np.ndarray) for part in one):
                return type(one)(changed(part) for part in one)
            if not (isinstance(one, np.ndarray) if every else _float(one)):
                return one
            position += 1
            return change(one, position)

        return Call(tuple(map(changed, self.args)), {key: changed(one) for key, one in self.kwargs.items()})


def calls_of(name: str, seed: int = 7) -> Iterator[Call]:
    """The sampled calls of an op, with the same numbers at every request."""
    rng = np.random.default_rng(seed)

    def array(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
        return rng.uniform(low, high, shape)

    for args, kwargs in OPS[name].samples(array):
        yield Call(args, kwargs)


def mapped(value: Any, change: Callable[[np.ndarray], Any]) -> Any:
    """The value with every array in it, however deep, replaced by what ``change`` makes of it."""
    if isinstance(value, np.ndarray):
        return change(np.asarray(value))
    if isinstance(value, Call):
        return Call(mapped(value.args, change), mapped(value.kwargs, change))
    if isinstance(value, dict):
        return {key: mapped(one, change) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([mapped(one, change) for one in value])
    return value


def tensors_of(result: Any) -> list[Any]:
    """The tensors of a result, one or several, however they are nested."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [tensor for one in result for tensor in tensors_of(one)]
    return [result] if hasattr(result, "dtype") else []


def degenerate(call: Call) -> Iterator[tuple[str, Call]]:
    """The call with arrays of no elements, and with arrays of no dims."""
    yield "no rows", call.replaced(lambda array, _: array[:0] if array.ndim else array, every=True)
    yield "no columns", call.replaced(lambda array, _: array[..., :0] if array.ndim else array, every=True)
    yield (
        "no dims",
        call.replaced(lambda array, _: array.reshape(-1)[:1].reshape(()) if array.size else array, every=True),
    )


def misfits(call: Call) -> Iterator[tuple[str, Call]]:
    """The call with one array of one more row, column or dim than it should have.

    What is put on is the square of what is there, element by element: a copy would make a matrix singular, and whether
    that is seen would be a matter of rounding.
    """
    for i in range(len(call.floats())):
        for what, grow in (
            ("row", lambda array: np.concatenate([array, array[:1] ** 2]) if array.ndim else array),
            ("column", lambda array: np.concatenate([array, array[..., :1] ** 2], -1) if array.ndim else array),
            ("dim", lambda array: np.stack([array, array, array])),
        ):
            yield f"array {i} with a {what} more", call.replaced(lambda array, at: grow(array) if at == i else array)  # noqa: B023


def refused(name: str, call: Call) -> Call | None:
    """The call with a dim that no tensor has, if the op has a parameter for one."""
    names = list(inspect.signature(OPS[name].function).parameters)  # type: ignore[arg-type]
    if names[0] == "name":  # of functions that serve the form with an underscore too
        del names[0]
    key = next((one for one in ("dim", "dims", "axis", "dim0") if one in names), None)
    if key is None:
        return None
    at = names.index(key)
    if at < len(call.args):
        return Call((*call.args[:at], 99, *call.args[at + 1 :]), call.kwargs)
    return Call(call.args, {**call.kwargs, key: 99})


def _float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float64
