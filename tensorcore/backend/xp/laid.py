"""Kernels of a NumPy-like namespace whose results lie in memory as PyTorch's do, see ``layouts.py``.

NumPy keeps some orders by rules of its own, and most kernels answer in row-major order: the result is copied where that is not
the order asked for. Where all arguments are row-major so is the result, and all this costs is a look at them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from tensorcore.backend.kernels import LAYOUTS
from tensorcore.backend.layouts import Layout, aligned
from tensorcore.backend.strides import memory_order

if TYPE_CHECKING:
    from tensorcore.backend.base import Kernel, Native
    from tensorcore.backend.xp import XPBackend

__all__ = ["laid", "layings"]

Laying = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


def laid(name: str, kernel: Kernel, lay: Laying, array: Any) -> Kernel:
    """``kernel`` with its results laid out by ``lay``."""
    # To layers, the strides of dims of size 1 are part of a layout, and NumPy's flag says nothing of them.
    flag_says_all = LAYOUTS[name] is aligned

    def run(*natives: Native, **options: Any) -> Any:
        made = kernel(*natives, **options)
        for one in natives[0] if natives and type(natives[0]) is list else natives:
            if type(one) is array and not (one.flags.c_contiguous and (flag_says_all or 1 not in one.shape)):
                return lay(made, natives, options)
        return made

    run.__wrapped__ = kernel  # type: ignore[attr-defined]  # for who looks at the arguments in another way
    return run


def layings(backend: XPBackend, names: Iterable[str]) -> dict[str, Laying]:
    """For each of the kernels that ``layouts.py`` names, what puts the results of a call into their order.

    To be asked where an argument was not row-major.
    """
    return {name: _laying(backend, LAYOUTS[name]) for name in names if name in LAYOUTS}


def _laying(backend: XPBackend, layout: Layout) -> Laying:
    xp: Any = backend.xp
    array: Any = backend.array

    def lay(made: Any, natives: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if made is NotImplemented or options.get("out") is not None:
            return made
        given = natives[0] if type(natives[0]) is list else natives
        arrays = [(one.shape, backend.strides(one)) for one in given if type(one) is array]
        if type(made) is tuple or type(made) is list:
            return tuple([placed(one, arrays, options) for one in made])
        return placed(made, arrays, options)

    def placed(made: Any, arrays: Any, options: dict[str, Any]) -> Any:
        if type(made) is not array or made.ndim < 2:
            return made
        wanted = layout(made.shape, arrays, options)
        if backend.strides(made) == wanted:
            return made
        strides, offset = backend.layout(made)
        if any([n > 1 and have != want for n, have, want in zip(made.shape, strides, wanted, strict=True)]):
            flat = backend.table["contiguous"](xp.transpose(made, memory_order(wanted)))
            return backend.as_strided(flat, made.shape, wanted, 0)
        return backend.as_strided(made, made.shape, wanted, offset)  # strides of dims of size 1, which NumPy makes up

    lay.rule = layout.__name__  # type: ignore[attr-defined]  # for who puts results in order by itself
    return lay
