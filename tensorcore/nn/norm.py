"""Normalisation within a sample: over its last dims, over groups of channels, over channels near each other."""

from __future__ import annotations

from typing import Any

from tensorcore.errors import ArgumentError
from tensorcore.nn import functional as F
from tensorcore.nn import init
from tensorcore.nn.module import Module
from tensorcore.nn.parameter import Parameter
from tensorcore.ops.creation.create import empty, ones
from tensorcore.tensor import Tensor

__all__ = [
    "CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm", "make_weights", "reset_weights",
]  # fmt: skip


class LayerNorm(Module):
    """Normalisation of each sample over its last dims (Ba et al., arXiv:1607.06450).

    Args:
        normalized_shape: the sizes of those dims.
        elementwise_affine: scale and shift each element by trained weights.
    """

    weight: Tensor | None
    bias: Tensor | None

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        make_weights(self, self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale by 1, shift by 0."""
        reset_weights(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Each sample divided by the root of its mean square over its last dims (Zhang and Sennrich, arXiv:1910.07467)."""

    weight: Tensor | None

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(ones(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)

    def reset_parameters(self) -> None:
        """Scale by 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalisation of each sample over groups of its channels (Wu and He, arXiv:1803.08494)."""

    weight: Tensor | None
    bias: Tensor | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ArgumentError(f"num_channels must be divisible by num_groups, got {num_channels} and {num_groups}")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        make_weights(self, (num_channels,), affine, affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale by 1, shift by 0."""
        reset_weights(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        sizes = f"{self.num_groups}, {self.num_channels}"
        return f"{sizes}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class LocalResponseNorm(Module):
    """Each element over a power of the mean square of those around it in ``size`` channels (Krizhevsky et al., 2012).

    Args:
        alpha: factor of the mean square.
        beta: the power.
        k: added before.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """LocalResponseNorm of (N, C, H, W), under an older name."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ArgumentError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        return super().forward(input)


def make_weights(module: Module, shape: tuple[int, ...], weight: bool, bias: bool, device: Any, dtype: Any) -> None:
    """Register ``weight`` and ``bias``, each as a parameter of that shape or as None."""
    for name, wanted in (("weight", weight), ("bias", bias)):
        module.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)) if wanted else None)


def reset_weights(module: Any) -> None:
    """Scale by 1, shift by 0."""
    if module.weight is not None:
        init.ones_(module.weight)
    if module.bias is not None:
        init.zeros_(module.bias)
