"""Softmax and the normalisations: layer, batch, group, instance and RMS norm, and vectors scaled to length 1."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, UnsupportedDtype
from tensorcore.ops import rules, samples
from tensorcore.ops.calls import apply, apply_into
from tensorcore.ops.define import Op, by_slope
from tensorcore.ops.fused import Fused
from tensorcore.ops.inplace import check_writable, written
from tensorcore.ops.kinds import FLOATING, operation
from tensorcore.ops.operands import NARROW, check_tensors
from tensorcore.ops.reductions.reduce import over_dims, stored, way_along
from tensorcore.ops.reductions.statistics import vector_norm
from tensorcore.tape.mode import makers, mode, no_grad
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "log_softmax", "normalize", "rms_norm", "softmax",
    "softmin",
]  # fmt: skip

new = object.__new__
makers.append(globals())


def _softmax_gradient(g: Tensor, out: Tensor, dim: int) -> Tensor:
    weighted = g * out
    return weighted - out * weighted.sum(dim, True)  # type: ignore[attr-defined]


softmax_op = Op("softmax", "input", "Softmax.", register=False, grads=dict(input=_softmax_gradient))
log_softmax_op = Op("log_softmax", "input", "Log-softmax.", register=False,
                  grads=dict(input=lambda g, out, dim: g - out.exp() * g.sum(dim, True)))  # fmt: skip
by_slope(softmax_op)
by_slope(log_softmax_op)
softmax_way, log_softmax_way = (way_along(op, FLOATING, {"dim": ...}) for op in (softmax_op, log_softmax_op))


def _soft(op: Op, input: Tensor, dim: Any, dtype: Any, out: Any) -> Tensor:
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(
            f"{op.name}: expected argument 'input' to be a Tensor, got {type(input).__name__}; wrap it in "
            "torch.tensor(...)"
        )
    if dtype is not None and dtype is not input.dtype:
        input = input.to(dtypes.as_dtype(dtype, op.name))
    if not input.dtype.is_floating_point:
        raise UnsupportedDtype(
            f"{op.name}: expected a floating dtype, got {input.dtype}: not implemented for it; pass dtype=torch.float32"
        )
    at = rules.wrap_dim(op.name, dim, len(input.native.shape))
    if out is not None and (done := apply_into(op, (input,), {"dim": at}, input.dtype, out)) is not None:
        return done
    if input.device.kernels[op.kernel]:
        made = apply(op, (input,), {"dim": at})
    else:
        # Of no elements there is no largest one, and nothing to keep from overflowing.
        away = input - input.detach().amax(at, True) if input.numel() else input
        powers = away.exp()
        sums = powers.sum(at, True)  # type: ignore[attr-defined]
        made = powers / sums if op is softmax_op else away - sums.log()
    return made if out is None else stored(op.name, made, out)


@over_dims(samples=samples.along_dim, way=softmax_way)
def softmax(input: Tensor, dim: int, dtype: dtypes.dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """Exponentials along ``dim``, scaled to sum to one."""
    return _soft(softmax_op, input, dim, dtype, out)


@over_dims(samples=samples.along_dim, way=log_softmax_way)
def log_softmax(input: Tensor, dim: int, dtype: dtypes.dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of ``softmax``, computed without overflow."""
    return _soft(log_softmax_op, input, dim, dtype, out)


@over_dims(samples=samples.along_dim, method=False)
def softmin(input: Tensor, dim: int, dtype: dtypes.dtype | None = None) -> Tensor:
    """``softmax`` of the negated input."""
    if type(input) is not Tensor:
        check_tensors("softmin", input=input)
    return softmax(-input, dim, dtype)


# Normalisations: all are one computation in another view


def _standardized(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    *,
    view: Any,
    dims: Any,
    affine: Any,
    eps: float,
    centre: bool,
) -> Tensor:
    x = input.reshape(view)
    if input.dtype in NARROW:
        x = x.float()  # squares of float16 overflow, also in the derivative of this
    if centre:
        x = x - x.mean(dims, True)
    made = x / ((x * x).mean(dims, True) + eps).sqrt()
    if weight is not None:
        made = made * weight.reshape(affine)
    if bias is not None:
        made = made + bias.reshape(affine)
    made = made.reshape(input.native.shape)
    return made if made.dtype is input.dtype else made.to(input.dtype)


def _layer(name: str, backward_name: str) -> Fused:
    return Fused(
        name, "input weight bias", "A normalisation.", _standardized, kernel="standardize", backward_name=backward_name
    )


_layer_norm, _batch_norm = (
    _layer("layer_norm", "NativeLayerNormBackward0"),
    _layer("batch_norm", "NativeBatchNormBackward0"),
)
_group_norm, _rms_norm = _layer("group_norm", "NativeGroupNormBackward0"), _layer("rms_norm", "FusedRmsNormBackward0")


def _over_last(
    op: Fused, input: Tensor, normalized_shape: Any, weight: Any, bias: Any, eps: float, centre: bool
) -> Tensor:
    if (
        type(input) is Tensor
        and input.dtype in FLOATING
        and type(normalized_shape) is tuple
        and len(normalized_shape) == 1
        and type(normalized_shape[0]) is int
        and type(eps) is float
        and (shape := input.native.shape)[-1:] == normalized_shape
        and (
            weight is None
            or (type(weight) is Tensor and weight.dtype is input.dtype and weight.native.shape == normalized_shape)
        )
        and (
            bias is None
            or (type(bias) is Tensor and bias.dtype is input.dtype and bias.native.shape == normalized_shape)
        )
    ):  # the usual call, of which nothing is to be said
        last = len(shape) - 1
        return op((input, weight, bias), {
            "view": shape, "dims": (last,), "affine": normalized_shape, "eps": eps, "centre": centre,
        })  # fmt: skip
    if type(normalized_shape) is tuple and all([type(size) is int for size in normalized_shape]):
        sizes = normalized_shape
    else:
        sizes = rules.as_shape(op.name, (normalized_shape,))
    if not isinstance(input, Tensor) or centre or not input.dtype.is_complex:
        _floating(op.name, input)
    shape = tuple(input.native.shape)
    if not sizes:
        raise ShapeError(
            f"{op.name}: Expected normalized_shape to be at least 1-dimensional, got {list(sizes)}; name at least the "
            "last size"
        )
    if shape[len(shape) - len(sizes) :] != sizes or len(sizes) > len(shape):
        raise ShapeError(
            f"{op.name}: Given normalized_shape={list(sizes)}, expected input with shape [*, "
            f"{', '.join(map(str, sizes))}], "
            f"got input of size {list(shape)}; name the input's last sizes"
        )
    for name, one in (("weight", weight), ("bias", bias)):
        if one is not None and type(one) is not Tensor:
            check_tensors(op.name, **{name: one})
        if one is not None and one.native.shape != sizes:
            raise ShapeError(
                f"{op.name}: Expected {name} to be of same shape as normalized_shape, got {name} of shape "
                f"{list(one.shape)} and "
                f"normalized_shape = {list(sizes)}; make them equal"
            )
    mixed = weight is not None and weight.dtype is not input.dtype and not _fits(weight, input.dtype)
    if centre:
        _one_dtype(op.name, input, weight, bias)
    dims = tuple(range(len(shape) - len(sizes), len(shape)))
    options = {"view": shape, "dims": dims, "affine": sizes, "eps": float(eps), "centre": centre}
    if input.dtype.is_complex or mixed:
        # The fused kernels know real gradients only, and one dtype.
        return _standardized(input, weight, bias, **options)
    return op((input, weight, bias), options)


def _one_dtype(op: str, input: Tensor, *others: Tensor | None) -> None:
    """Parameters have the input's dtype; beside one of two bytes they may be of single precision."""
    dtype = input.dtype
    for one in others:
        if one is not None and one.dtype is not dtype and not _fits(one, dtype):
            raise DtypeError(
                f"{op}: expected all inputs to share the same datatype, got {dtype} and {one.dtype}; convert one with .to(...)"
            )


def _fits(one: Tensor, dtype: dtypes.dtype) -> bool:
    return one.dtype is dtypes.float32 and dtype.itemsize == 2


def _floating(op: str, input: Tensor) -> None:
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(
            f"{op}: expected argument 'input' to be a Tensor, got {type(input).__name__}; wrap it in torch.tensor(...)"
        )
    if not input.dtype.is_floating_point:
        raise UnsupportedDtype(
            f"{op}: expected a floating dtype, got {input.dtype}: not implemented for it; convert it with .float()"
        )


@operation(samples=samples.layer_norm, method=False)
def layer_norm(input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Mean 0 and variance 1 over the last dims, whose sizes are ``normalized_shape``; then scaled and shifted.

    From "Layer Normalization", Ba, Kiros, Hinton 2016.
    """
    return _over_last(_layer_norm, input, normalized_shape, weight, bias, eps, True)


@operation(samples=samples.rms_norm, method=False)
def rms_norm(input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None,
             eps: float | None = None) -> Tensor:  # fmt: skip
    """Root mean square 1 over the last dims, whose sizes are ``normalized_shape``; ``eps`` is the dtype's where None.

    From "Root Mean Square Layer Normalization", Zhang, Sennrich 2019.
    """
    if eps is None:
        eps = dtypes.finfo(input.dtype if input.dtype.itemsize > 2 else dtypes.float32).eps
    return _over_last(_rms_norm, input, normalized_shape, weight, None, eps, False)


@operation(samples=samples.group_norm, method=False)
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Mean 0 and variance 1 over each of ``num_groups`` groups of a sample's channels (dim 1); then scaled per channel.

    From "Group Normalization", Wu, He 2018.
    """
    _floating("group_norm", input)
    shape = tuple(input.native.shape)
    if len(shape) < 2:
        raise ShapeError(
            f"group_norm: Expected at least 2 dimensions for input tensor but received {len(shape)}, got "
            f"{list(shape)}; unsqueeze it"
        )
    num_groups = rules.whole("group_norm", "num_groups", num_groups)
    if num_groups <= 0 or shape[1] % num_groups:
        raise ShapeError(
            "group_norm: Expected number of channels in input to be divisible by num_groups, got input of shape "
            f"{list(shape)} "
            f"and num_groups={num_groups}; choose a divisor of {shape[1]}"
        )
    for name, one in (("weight", weight), ("bias", bias)):
        _per_channel("group_norm", name, one, shape[1])
    _one_dtype("group_norm", input, weight, bias)
    view = (shape[0], num_groups, shape[1] // num_groups, *shape[2:])
    affine = (1, num_groups, shape[1] // num_groups, *[1] * (len(shape) - 2))
    options = {"view": view, "dims": tuple(range(2, len(view))), "affine": affine, "eps": float(eps), "centre": True}
    return _group_norm((input, weight, bias), options)


def _per_channel(op: str, name: str, one: Any, channels: int) -> None:
    if one is not None and type(one) is not Tensor:
        check_tensors(op, **{name: one})
    if one is not None and tuple(one.native.shape) != (channels,):
        raise ShapeError(
            f"{op}: {name} should contain {channels} elements, got {list(one.native.shape)}; give one per channel"
        )


@operation(samples=samples.batch_norm, method=False)
def batch_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
               weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False, momentum: float = 0.1,
               eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Mean 0 and variance 1 of each channel (dim 1) over the batch and all else; then scaled and shifted per channel.

    In training the batch's own statistics are taken, and the running ones move towards them by
    ``momentum`` (in place; the variance unbiased); else the running ones are taken.
    From "Batch Normalization", Ioffe, Szegedy 2015.
    """
    _floating("batch_norm", input)
    if not eps > 0 and (training or eps < 0):
        raise ArgumentError(
            f"batch_norm: eps must be {'positive during training' if training else 'non-negative'}, but got {eps}"
        )
    shape = tuple(input.native.shape)
    if shape == (0,):
        return input.clone()  # as PyTorch has it, nothing is normal
    if len(shape) < 2:
        raise ShapeError(f"batch_norm: expected an input of at least 2 dims, got {list(shape)}; unsqueeze it")
    for name, one in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        _per_channel("batch_norm", name, one, shape[1])
    _one_dtype("batch_norm", input, running_mean, running_var, weight, bias)
    affine = (1, shape[1], *[1] * (len(shape) - 2))
    if training and shape[0] * prod(shape[2:]) == 1:
        raise ArgumentError(
            f"batch_norm: Expected more than 1 value per channel when training, got input size {list(shape)}; use a "
            "larger batch"
        )
    if 0 in shape:
        return _of_nothing(input, weight, bias, affine)
    if not training:
        if running_mean is None or running_var is None:
            raise ShapeError(
                "batch_norm: Expected running_mean and running_var to be defined when training=False, got None; pass "
                "both"
            )
        return _with_running(input, running_mean, running_var, weight, bias, eps, affine)
    dims = (0, *range(2, len(shape)))
    return _tracking(_batch_norm, input, running_mean, running_var, weight, bias, momentum, eps, shape, dims, affine)


def _of_nothing(input: Tensor, weight: Any, bias: Any, affine: Any) -> Tensor:
    """No elements, whose statistics move nothing; weight and bias get gradients of zero."""
    made = input.clone() if weight is None else input * weight.reshape(affine)
    if bias is not None:
        made = made + bias.reshape(affine)
    return made.to(input.dtype)  # type: ignore[attr-defined, no-any-return]


def _with_running(input: Tensor, mean: Tensor, var: Tensor, weight: Any, bias: Any, eps: float, affine: Any) -> Tensor:
    given = (input, mean, var, weight, bias)
    kernel = input.device.kernels["standardize_by"]
    if (
        kernel
        and _alike(given)
        and not (mode.enabled and any([one is not None and one.node is not None for one in given]))
    ):
        natives = [None if one is None else one.native for one in given]
        return new_tensor(kernel(*natives, eps=float(eps)), input.dtype, input.device)
    scale = 1.0 / (var + eps).sqrt()  # type: ignore[operator]
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale
    if bias is not None:
        shift = shift + bias
    made = input * scale.reshape(affine) + shift.reshape(affine)
    return made if made.dtype is input.dtype else made.to(input.dtype)


def _alike(tensors: Any) -> bool:
    """Whether they are of one device and one dtype, which the kernels for statistics compute in."""
    first = tensors[0]
    if first.dtype.itemsize < 4 or first.device.many:
        return False
    return all([one is None or (one.dtype is first.dtype and one.device is first.device) for one in tensors])


def _tracking(op: Fused, input: Tensor, running_mean: Any, running_var: Any, weight: Any, bias: Any, momentum: float,
              eps: float, view: Any, dims: Any, affine: Any) -> Tensor:  # fmt: skip
    """Normalise with the input's own statistics, and move the running ones."""
    options = {"view": view, "dims": dims, "affine": affine, "eps": float(eps), "centre": True}
    made, rest = op.with_rest((input, weight, bias), options)
    if running_mean is None and running_var is None:
        return made
    if momentum is None:
        raise ArgumentTypeError(
            f"{op.name}: expected momentum to be a float, got None; pass 1 / number of batches for a plain average"
        )
    count = prod([view[i] for i in dims])
    kernel = input.device.kernels["track_statistics"]
    if kernel and rest is not None and _alike((input, running_mean, running_var)):
        kept = [one for one in (running_mean, running_var) if one is not None]
        with no_grad():
            for one in kept:
                check_writable("mul_", one)
        natives = [None if one is None else one.native for one in (running_mean, running_var)]
        kernel(*natives, *rest, momentum=float(momentum), count=count)
        for one in kept:
            written(one)
        return made
    with no_grad():
        kind = input.dtype if input.dtype.itemsize > 2 else dtypes.float32
        if rest is None:
            x = input.detach().to(kind).reshape(view)
            mean = x.mean(dims, True)
            var = ((x - mean) * (x - mean)).mean(dims, True)
        else:
            mean, var = (new_tensor(one, kind, input.device) for one in rest)
        var = var * (count / max(count - 1, 1))
        for running, now in ((running_mean, mean), (running_var, var)):
            if running is not None:
                channels = running.native.shape[0]
                now = now.reshape(-1, channels)
                now = now.mean(0) if now.native.shape[0] > 1 else now.reshape(channels)
                running.mul_(1.0 - momentum).add_((now * momentum).to(running.dtype))
    return made


@operation(samples=samples.instance_norm, method=False)
def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                  weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:  # fmt: skip
    """Mean 0 and variance 1 of each channel (dim 1) of each sample; then scaled and shifted per channel.

    From "Instance Normalization", Ulyanov, Vedaldi, Lempitsky 2016.
    """
    _floating("instance_norm", input)
    shape = tuple(input.native.shape)
    if len(shape) < 3:
        raise ArgumentError(f"instance_norm: expected an input of at least 3 dims, got {list(shape)}; unsqueeze it")
    for name, one in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        _per_channel("instance_norm", name, one, shape[1])
    _one_dtype("instance_norm", input, running_mean, running_var, weight, bias)
    affine = (1, shape[1], *[1] * (len(shape) - 2))
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ShapeError(
                "instance_norm: Expected running_mean and running_var to be defined when use_input_stats=False, got "
                "None; pass both"
            )
        return _with_running(input, running_mean, running_var, weight, bias, eps, affine)
    if prod(shape[2:]) == 1:
        raise ArgumentError(
            f"instance_norm: Expected more than 1 spatial element when training, got input size {list(shape)}; use a "
            "larger input"
        )
    if 0 in shape:
        return _of_nothing(input, weight, bias, affine)
    dims = tuple(range(2, len(shape)))
    return _tracking(_instance_norm, input, running_mean, running_var, weight, bias, momentum, eps, shape, dims, affine)


_instance_norm = _layer("instance_norm", "InstanceNormBackward0")


@over_dims(samples=samples.unary_matrix, method=False)
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """``input`` over its p-norm along ``dim``, the norm being at least ``eps``."""
    length = vector_norm(input, p, dim, True).clamp(min=eps)  # type: ignore[attr-defined]
    return stored("normalize", input / length, out)
