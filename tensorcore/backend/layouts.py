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

__all__ = ["LAYOUTS", "POINTWISE", "Layout", "aligned", "is_channels_last", "swapped"]

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


# Elementwise kernels of numbers and arrays that broadcast.
POINTWISE = (
    "acos acosh add airy_ai asin asinh atan atan2 atanh bessel_j0 bessel_j1 bessel_y0 bessel_y1 bitwise_and "
    "bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil chebyshev_polynomial_t "
    "chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w clamp clamp_max clamp_min conj_physical "
    "copysign cos cosh digamma div entr erf erfc erfcx erfinv exp exp2 expm1 floor floor_divide fmax fmin fmod gcd "
    "gelu hermite_polynomial_h hermite_polynomial_he hypot i0 i0e i1 i1e igamma igammac laguerre_polynomial_l lcm "
    "leaky_relu legendre_polynomial_p lgamma log log10 log1p log2 log_ndtr logaddexp logaddexp2 maximum minimum "
    "modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 mul ndtr ndtri neg nextafter "
    "polygamma positive pow rational reciprocal relu remainder round rsqrt scaled_modified_bessel_k0 "
    "scaled_modified_bessel_k1 sgn shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u "
    "shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sigmoid sign silu sin sinh sqrt square sub tan "
    "tanh trigamma trunc trunc_divide xlog1py xlogy zeta"
)

# The layout of each kernel whose results do not always lie in row-major order; of those with several, each result's.
LAYOUTS: dict[str, Layout] = {
    name: layout
    for layout, names in {
        aligned: POINTWISE + " "
        "abs angle complex eq ge gt isfinite isinf isnan le logical_and logical_not logical_or logical_xor lt ne signbit where "
        "cast clone flip index_put index_fill sort softmax_backward log_softmax_backward elu selu celu softplus mish "
        "log_sigmoid exponential_unit_backward softplus_backward mish_backward log_sigmoid_backward gelu_backward "
        "silu_backward mse_loss smooth_l1_loss",
        unless_flat: "roll",
        joined: "cat",
        stacked: "stack",
        turned_layout: "rot90",
        row_major: "masked_fill sum prod logsumexp mean nansum amax amin norm var all any",
        channels_last: "take_rows constant_pad max_unpool max_pool max_pool_indices standardize_by",
        with_weight: "conv conv_input_gradient",
        pooled: "avg_pool adaptive_avg_pool",
        normalised: "standardize",
        after_target: "binary_cross_entropy_with_logits",
    }.items()
    for name in names.split()
}
