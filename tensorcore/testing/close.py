"""``torch.testing.assert_close``: values that agree to the tolerance of their dtypes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.ops.creation.create import as_tensor, tensor
from tensorcore.tensor import Tensor

__all__ = ["assert_allclose", "assert_close"]

# Relative and absolute, as PyTorch documents them; of two dtypes the wider tolerances hold.
_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
                 atol: float | None = None, equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True,
                 check_layout: bool = True, check_stride: bool = False,
                 msg: str | Callable[[str], str] | None = None) -> None:  # fmt: skip
    """Raise AssertionError unless ``|actual - expected| <= atol + rtol * |expected|`` for every element.

    Args:
        actual, expected: two tensors, two arrays of NumPy's, two numbers, or two sequences or mappings of such, of one structure.
        rtol, atol: both or neither; by the dtypes where neither is given, 0 for integers and bools.
        equal_nan: whether NaN is NaN.
        check_device, check_dtype, check_stride: whether these must be the same too.
        msg: what to say instead, or a function of what would be said.
    """
    if (rtol is None) != (atol is None):
        raise ArgumentError(
            "assert_close: Both 'rtol' and 'atol' must be either specified or omitted, but got no "
            f"{'rtol' if rtol is None else 'atol'}; pass the other one too"
        )
    checks = {"device": check_device, "dtype": check_dtype, "stride": check_stride}
    for place, one, other in _pairs(actual, expected, ()):
        found = _difference(one, other, rtol, atol, equal_nan, checks)
        if found is not None:
            if place:
                found += f"\n\nThe failure occurred for item {''.join(f'[{key!r}]' for key in place)}"
            raise AssertionError(msg(found) if callable(msg) else found if msg is None else msg)


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True,
                    msg: str = "") -> None:  # fmt: skip
    """``assert_close`` of the values alone, by its older name: numbers and lists count as tensors."""
    pair = [one if isinstance(one, Tensor) else tensor(one) for one in (actual, expected)]
    assert_close(
        *pair, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, msg=msg or None
    )


def _pairs(actual: Any, expected: Any, place: tuple[Any, ...]) -> Any:
    """The values that stand in the same places of two structures."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            missing, more = ([key for key in a if key not in b] for a, b in ((expected, actual), (actual, expected)))
            raise AssertionError(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {missing}\nAdditional keys in the actual mapping: {more}"
            )
        for key in actual:
            yield from _pairs(actual[key], expected[key], (*place, key))
    elif all(isinstance(one, Sequence) and not isinstance(one, str) for one in (actual, expected)):
        if len(actual) != len(expected):
            raise AssertionError(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        for i, (one, other) in enumerate(zip(actual, expected, strict=True)):
            yield from _pairs(one, other, (*place, i))
    else:
        yield place, actual, expected


def _difference(
    actual: Any, expected: Any, rtol: Any, atol: Any, equal_nan: bool, checks: dict[str, bool]
) -> str | None:
    """What to say about two values that do not agree."""
    if (
        isinstance(actual, np.ndarray)
        and isinstance(expected, np.ndarray)
        and "U" not in actual.dtype.kind + expected.dtype.kind
    ):
        actual, expected = as_tensor(actual), as_tensor(expected)
    if isinstance(actual, Tensor) and isinstance(expected, Tensor):
        for name in ("shape", "device", "dtype", "stride"):
            one, other = (getattr(x, name) for x in (actual, expected))
            label = name
            if name == "stride":
                one, other, label = one(), other(), "stride()"
            if checks.get(name, True) and one != other:
                return f"The values for attribute '{label}' do not match: {one} != {other}."
        if not (actual.device.capabilities.values and expected.device.capabilities.values):
            raise ArgumentTypeError("assert_close: expected tensors with values, got some on a device without any")
        names = {actual.dtype.name, expected.dtype.name}
        values = [_values(x) for x in (actual, expected)]
    elif actual is None or expected is None:
        return None if actual is expected else f"None mismatch: {actual} is not {expected}"
    elif isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_)):
        return None if actual == expected else f"Booleans mismatch: {actual} is not {expected}"
    elif all(isinstance(x, (int, float, complex, np.number)) for x in (actual, expected)):
        if checks["dtype"] and type(actual) is not type(expected):
            return f"The (d)types do not match: {type(actual)} != {type(expected)}."
        names = {np.asarray(x).dtype.name for x in (actual, expected)}
        values = [np.asarray(x) for x in (actual, expected)]
    else:
        raise ArgumentTypeError(
            f"assert_close: No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}, got "
            "these; pass tensors or numbers"
        )
    if rtol is None:
        rtol, atol = np.max([_TOLERANCES.get(name, (0.0, 0.0)) for name in names], axis=0).tolist()
    return _report(*values, rtol, atol, equal_nan)


def _values(tensor: Tensor) -> np.ndarray:
    values = tensor.device.to_host(tensor.native)
    return (
        values.astype(np.complex128 if tensor.dtype.is_complex else np.float64)
        if values.dtype.kind not in "biu"
        else values
    )


def _report(actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float, equal_nan: bool) -> str | None:
    exact = actual.dtype.kind in "biu" and expected.dtype.kind in "biu"
    if not exact:
        actual, expected = actual + 0.0, expected + 0.0
    with np.errstate(all="ignore"):
        # Of equal integers the difference is exact however large they are; infinities of one sign are equal.
        away = np.where(actual == expected, 0, np.abs(actual.astype(object) - expected.astype(object)).astype(float) if exact
                        else np.abs(actual - expected))  # fmt: skip
        close = away <= atol + rtol * np.abs(expected)
        close &= np.isfinite(expected) | (actual == expected)
        if equal_nan and not exact:
            both = np.isnan(actual) & np.isnan(expected)
            close, away = close | both, np.where(both, 0, away)
        if close.all():
            return None
        relative = np.where(away == 0, 0, away / np.abs(expected))
    equal = rtol == 0 and atol == 0
    allowed = ["" if equal else f" (up to {limit} allowed)" for limit in (atol, rtol)]
    sizes = [str(int(away.max())) if exact else str(away.max()), str(relative.max())]
    word = "equal" if equal else "close"
    if not close.shape:
        return (
            f"Scalars are not {word}!\n\nExpected {expected} but got {actual}.\n"
            f"Absolute difference: {sizes[0]}{allowed[0]}\nRelative difference: {sizes[1]}{allowed[1]}"
        )
    lines = [f"Tensor-likes are not {word}!", ""]
    count = int((~close).sum())
    lines.append(f"Mismatched elements: {count} / {close.size} ({count / close.size:.1%})")
    for name, numbers, size, limit in zip(("absolute", "relative"), (away, relative), sizes, allowed, strict=True):
        index = tuple(int(i) for i in np.unravel_index(numbers.argmax(), numbers.shape))
        lines.append(f"Greatest {name} difference: {size} at index {index}{limit}")
    return "\n".join(lines)
