"""In which order a kernel's result lies in memory, given how its arguments do: PyTorch's rules, named by the rule of each op.

Each takes the result's shape, shape and strides of each array among the arguments, and the options, and answers with the
strides of a dense result; all count elements. Values do not depend on it, but a draw of random numbers runs in memory order,
and programs ask for ``stride()`` and ``is_contiguous(memory_format=...)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorcore.backend.places import kept_strides
from tensorcore.backend.strides import contiguous_strides, ordered_strides

__all__ = [
    "Layout", "after_target", "aligned", "channels_last", "is_channels_last", "joined", "normalised", "pooled", "row_major",
    "stacked", "swapped", "turned_layout", "unless_flat", "with_weight",
]  # fmt: skip

Shape = tuple[int, ...]
Arrays = Sequence[tuple[Shape, Shape]]
Options = Mapping[str, Any]
Layout = Callable[[Shape, Arrays, Options], Shape]

# The dims from the largest stride to the smallest, by their number.
_CHANNELS_LAST = {3: (0, 2, 1), 4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}


def row_major(made: Shape, arrays: Arrays, options: Options) -> Shape:
    """Reductions: whatever the arguments lie like."""
    return contiguous_strides(made)


def aligned(made: Shape, arrays: Arrays, options: Options) -> Shape:
    """Elementwise: as the first argument that can tell two dims apart."""
    return kept_strides(made, arrays)


def after_target(made: Shape, arrays: Arrays, options: Options) -> Shape:
    """Losses whose formula begins with the target, the second argument."""
    return kept_strides(made, [arrays[1], arrays[0], *arrays[2:]])


def channels_last(made: Shape, arrays: Arrays, options: Options) -> Shape:
    """Layers: the channels innermost where those of the first argument are; any other order becomes row-major."""
    return _laid(made, len(made) > 3 and is_channels_last(*arrays[0]))


def with_weight(made: Shape, arrays: Arrays, options: Options) -> Shape:
    """Convolutions: the channels innermost where input or weight has them so."""
    return _laid(made, len(made) > 3 and any(is_channels_last(*one) for one in arrays[:2]))


def pooled(made: Shape, arrays: Arrays, options: Options) -> Shape:
    """Means of windows: as ``channels_last`` in up to two dims."""
    return _laid(made, len(made) < 5 and is_channels_last(*arrays[0]))


def normalised(made: Shape, arrays: Arrays, options: Options) -> Shape:
    """Normalisations over batches, over groups, and by the root mean square alone: the others are row-major."""
    view, dims, ndim = options["view"], tuple(options["dims"]), len(made)
    if made != arrays[0][0]:
        return contiguous_strides(made)  # the statistics
    batch = len(view) == ndim and dims == (0, *range(2, ndim))
    groups = len(view) > ndim
    return (
        channels_last(made, arrays, options) if batch or groups or not options["centre"] else contiguous_strides(made)
    )


def unless_flat(made: Shape, arrays: Arrays, options: Options) -> Shape:
    """Rolls: as ``channels_last``, unless they run over all elements in row-major order."""
    return contiguous_strides(made) if options["dims"] is None else channels_last(made, arrays, options)


def joined(made: Shape, arrays: Arrays, options: Options) -> Shape:
    """Tensors one after the other: the channels innermost where all have them so."""
    return _laid(made, len(made) > 3 and all(is_channels_last(*one) for one in arrays))


def stacked(made: Shape, arrays: Arrays, options: Options) -> Shape:
    """Tensors along a new dim: as they would lie one after the other along it."""
    (one, _), dim = arrays[0], options["dim"]
    if dim == len(one):
        return contiguous_strides(made)
    steps = joined((*one[:dim], one[dim] * len(arrays), *one[dim + 1 :]), arrays, options)
    return (*steps[:dim], one[dim] * steps[dim], *steps[dim:])


def turned_layout(made: Shape, arrays: Arrays, options: Options) -> Shape:
    """Turns in a plane: as the argument, seen with the two dims swapped by an odd number of them."""
    steps = kept_strides(arrays[0][0], arrays)
    return swapped(steps, options["dims"]) if options["k"] % 2 else steps


def swapped(x: Shape, dims: tuple[int, int]) -> Shape:
    """Two of the values in each other's place."""
    turned = list(x)
    turned[dims[0]], turned[dims[1]] = x[dims[1]], x[dims[0]]
    return tuple(turned)


def _laid(made: Shape, inside: bool) -> Shape:
    return ordered_strides(made, _CHANNELS_LAST[len(made)]) if inside else contiguous_strides(made)


def is_channels_last(shape: Shape, strides: Shape) -> bool:
    """Whether PyTorch takes the channels (dim 1) to be innermost; of dims of size 1 it believes the strides."""
    if len(shape) not in _CHANNELS_LAST or 0 in shape or not strides[1]:
        return False
    least = 0
    order = _CHANNELS_LAST[len(shape)]
    if len(shape) == 3:  # seen as rows of height 1
        shape, strides = (*shape[:2], 1, shape[2]), (*strides[:2], shape[2] * strides[2], strides[2])
        order = _CHANNELS_LAST[4]
    for dim in reversed(order):
        # The last test: of (batch, 1, 1, 1) nothing says so, and it counts as row-major.
        if strides[dim] < least or (dim == 0 and least == strides[1]):
            return False
        least = strides[dim] * max(shape[dim], 1)
    return True
