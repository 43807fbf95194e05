"""The text of a tensor, character for character as PyTorch prints it, and the options that shape the text."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any, NamedTuple, SupportsIndex, cast

import numpy as np

from tensorcore.dtypes import bool_, int64
from tensorcore.dtypes import dtype as Dtype
from tensorcore.errors import ArgumentError, ArgumentTypeError

__all__ = ["append_suffixes", "format_number", "format_tensor", "get_printoptions", "printoptions", "set_printoptions"]


def format_tensor(
    values: np.ndarray | None,
    *,
    dtype: Dtype,
    shape: tuple[int, ...],
    device: str | None,
    grad_fn: str | None,
    requires_grad: bool,
    default_dtype: Dtype,
    tensor_contents: str | None = None,
    prefix: str = "tensor(",
) -> str:
    """The text of a tensor, e.g. ``tensor([1., 2.], requires_grad=True)``.

    ``values`` is the host array of ``shape``, of any strides, or None for a tensor without values (meta, lazy),
    which prints as ``tensor(..., size=(2, 3))``. ``device`` is printed unless None; ``grad_fn`` is the name of the
    node, e.g. ``MulBackward0``, and hides ``requires_grad``. ``dtype`` is printed where PyTorch would not infer it.
    ``tensor_contents`` replaces the text of the elements. The length of ``prefix`` is the indent of later lines.

    Of an array of more than ``threshold`` elements only those at the edges are read, and they alone decide the
    format, so the time does not grow with the size of the array.
    """
    options = _options
    empty = math.prod(shape) == 0
    suffixes = [] if device is None else [f"device='{device}'"]

    if values is None or (len(shape) != 1 if empty else options.edgeitems == 0):
        suffixes.append(f"size={tuple(shape)}")

    # Where no element shows what the dtype is, even int64 and bool are named.
    implied: tuple[Dtype, ...] = (default_dtype,)
    if values is not None and not empty:
        implied = (default_dtype, default_dtype.to_complex(), int64, bool_)
    if dtype not in implied:
        suffixes.append(f"dtype={dtype}")

    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")

    if tensor_contents is None:
        if values is None:
            tensor_contents = "..."
        elif empty:
            tensor_contents = "[]"
        else:
            tensor_contents = _contents(values, dtype.kind, len(prefix), options)
    return _append(prefix + tensor_contents, suffixes, len(prefix), options.linewidth)


def append_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """``text``, the suffixes, and the closing bracket, on lines of the width that is set."""
    return _append(text, suffixes, indent, _options.linewidth)


def format_number(value: Any, spec: str) -> str:
    """What ``f"{t:{spec}}"`` gives for a tensor of no dims: Python's own formatting of its one value.

    ``value`` is a Python number, or a NumPy array or scalar of one element. Raises Python's ValueError for a
    ``spec`` that does not fit the number.
    """
    return format(value.item() if isinstance(value, (np.ndarray, np.generic)) else value, spec)


def set_printoptions(
    precision: SupportsIndex | None = None,
    threshold: float | None = None,
    edgeitems: SupportsIndex | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed, for the whole process.

    ``precision``: digits after the point (4). ``threshold``: the number of elements above which only the edges
    are printed (1000). ``edgeitems``: how many elements of each dim an edge has (3). ``linewidth``: characters of a
    line (80). ``profile``: ``default``, ``short`` or ``full``, in any case, where the other options start from; a
    name that is none of them is ignored. ``sci_mode``: scientific notation always (True), never (False), or where
    the values span or reach too far (None).

    An option that is None stays as it is, but for ``sci_mode``: as in PyTorch, each call sets it, if only to None.
    Raises ArgumentError (a ValueError) for a value with which no tensor could be printed and ArgumentTypeError
    (a TypeError) for one of a wrong type; nothing has changed then.
    """
    global _options
    changed: dict[str, Any] = {"sci_mode": sci_mode}
    if precision is not None:
        changed["precision"] = _count("precision", precision)
    if threshold is not None:
        changed["threshold"] = _number("threshold", threshold)
    if edgeitems is not None:
        changed["edgeitems"] = _count("edgeitems", edgeitems)
    if linewidth is not None:
        changed["linewidth"] = _number("linewidth", linewidth)
        if not math.isfinite(linewidth):
            raise ArgumentError(
                f"set_printoptions: expected linewidth to be finite, got {linewidth}; pass a large number of characters"
            )
    start = _PROFILES.get(profile.lower(), _options) if isinstance(profile, str) else _options
    _options = start._replace(**changed)


def get_printoptions() -> dict[str, Any]:
    """The options in force: ``precision``, ``threshold``, ``edgeitems``, ``linewidth`` and ``sci_mode``."""
    return _options._asdict()


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Print with other options inside a ``with`` block; takes and raises what ``set_printoptions`` does."""
    global _options
    before = _options
    set_printoptions(**options)
    try:
        yield
    finally:
        _options = before


class _Options(NamedTuple):
    """One set of options. It is replaced as a whole, so a thread that is printing never sees half of a change."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: float = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": _Options(),
    "short": _Options(precision=2, edgeitems=2),
    "full": _Options(threshold=math.inf),
}
_options = _PROFILES["default"]


def _count(name: str, value: Any) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        raise _wrong_type(name, "an int", value) from None
    if count < 0:
        raise ArgumentError(f"set_printoptions: expected {name} to be 0 or more, got {value!r}; pass e.g. 0")
    return count


def _number(name: str, value: Any) -> float:
    if not isinstance(value, Real):
        raise _wrong_type(name, "a number", value)
    return cast(float, value)


def _wrong_type(name: str, expected: str, value: Any) -> ArgumentTypeError:
    usual = getattr(_PROFILES["default"], name)
    return ArgumentTypeError(f"set_printoptions: expected {name} to be {expected}, got {value!r}; pass e.g. {usual}")


def _append(text: str, suffixes: list[str], indent: int, linewidth: float) -> str:
    """``text`` and its suffixes and the closing bracket; a suffix that does not fit the line starts a new one."""
    # Two more than the last line has: PyTorch counts it so, and a suffix that fits exactly depends on it.
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > linewidth:
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"


def _contents(values: np.ndarray, kind: str, indent: int, options: _Options) -> str:
    """The elements in their brackets; ``values`` has at least one."""
    edge = options.edgeitems
    cut = [False] * values.ndim
    if values.ndim and values.size > options.threshold:
        if edge == 0:
            return "[...]"
        cut = [size > 2 * edge for size in values.shape]
        # One gather of the elements that are shown: nothing below sees the others.
        values = values[np.ix_(*(_shown(size, edge) for size in values.shape))]
    texts, width = _texts(values.reshape(-1), kind, options)
    if values.ndim == 0:
        return texts[0]

    per_line = max(1, math.floor((options.linewidth - indent - values.ndim + 1) / (width + 2)))
    line_break = ",\n" + " " * (indent + values.ndim)
    columns = values.shape[-1]
    blocks = []
    for start in range(0, len(texts), columns):
        row = texts[start : start + columns]
        if cut[-1]:
            row.insert(edge, " ...")
        lines = [", ".join(row[at : at + per_line]) for at in range(0, len(row), per_line)]
        blocks.append(f"[{line_break.join(lines)}]")
    # From the rows outwards, each dim joins its blocks; a matrix is followed by one blank line, a cube by two.
    for dim in range(values.ndim - 2, -1, -1):
        size = values.shape[dim]
        separator = "," + "\n" * (values.ndim - 1 - dim) + " " * (indent + dim + 1)
        joined = []
        for start in range(0, len(blocks), size):
            parts = blocks[start : start + size]
            if cut[dim]:
                parts.insert(edge, "...")
            joined.append(f"[{separator.join(parts)}]")
        blocks = joined
    return blocks[0]


def _shown(size: int, edge: int) -> np.ndarray:
    """The indices of a dim that a summary shows."""
    if size <= 2 * edge:
        return np.arange(size)
    return np.concatenate([np.arange(edge), np.arange(size - edge, size)])


def _texts(flat: np.ndarray, kind: str, options: _Options) -> tuple[list[str], int]:
    """The text of each element, padded to line up, and the width by which a line is filled."""
    if kind == "floating":
        return _float_texts(flat, options)
    if kind == "complex":
        reals, real_width = _float_texts(flat.real, options)
        imags, imag_width = _float_texts(flat.imag, options)
        # PyTorch pads the real parts only, and counts the padding of the imaginary ones all the same.
        texts = [_complex_text(real, imag.lstrip()) for real, imag in zip(reals, imags, strict=True)]
        return texts, real_width + imag_width + 1
    texts = [str(value) for value in flat.tolist()]
    width = max(map(len, texts))
    return [text.rjust(width) for text in texts], width


def _complex_text(real: str, imag: str) -> str:
    return f"{real}{imag}j" if imag.startswith("-") else f"{real}+{imag}j"


def _float_texts(flat: np.ndarray, options: _Options) -> tuple[list[str], int]:
    """As ``_texts``, for a flat array of a floating dtype.

    Zeros, infinities and nans have no say in the format or in the width, so they may stick out.
    """
    with np.errstate(invalid="ignore"):  # a signalling nan may raise the flag on its way to float64
        flat = flat.astype(np.float64)
    decisive = np.isfinite(flat) & (flat != 0)
    magnitudes = np.abs(flat[decisive])
    to_text = _float_format(magnitudes, options)
    texts = [to_text(value) for value in flat.tolist()]
    width = max((len(text) for text, decides in zip(texts, decisive.tolist(), strict=True) if decides), default=1)
    return [text.rjust(width) for text in texts], width


def _float_format(magnitudes: np.ndarray, options: _Options) -> Callable[[float], str]:
    """The format that PyTorch picks for values of these magnitudes, all finite and none of them zero."""
    if magnitudes.size == 0:
        return _whole
    least, most = float(magnitudes.min()), float(magnitudes.max())
    whole = bool((magnitudes == np.ceil(magnitudes)).all())
    scientific = options.sci_mode
    if scientific is None:
        scientific = most / least > 1000 or most > 1e8 or least < 1e-4
    if scientific:
        return f"{{:.{options.precision}e}}".format
    return _whole if whole else f"{{:.{options.precision}f}}".format


def _whole(value: float) -> str:
    return f"{value:.0f}." if math.isfinite(value) else str(value)
