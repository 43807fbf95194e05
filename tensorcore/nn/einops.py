"""einops' layers as modules: ``from einops.layers.tensorcore import Rearrange``, where PyTorch's come from ``.torch``."""

from __future__ import annotations

from typing import Any

from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

from tensorcore.nn.module import Module
from tensorcore.ops.creation.create import zeros
from tensorcore.ops.linalg.contract import einsum
from tensorcore.parameter import Parameter
from tensorcore.tensor import Tensor

__all__ = ["EinMix", "Rearrange", "Reduce"]


class Rearrange(RearrangeMixin, Module):  # type: ignore[misc]
    """``einops.rearrange`` as a layer."""

    def forward(self, input: Tensor) -> Tensor:
        return self._apply_recipe(input)


class Reduce(ReduceMixin, Module):  # type: ignore[misc]
    """``einops.reduce`` as a layer."""

    def forward(self, input: Tensor) -> Tensor:
        return self._apply_recipe(input)


class EinMix(_EinmixMixin, Module):  # type: ignore[misc]
    """A linear layer whose axes are named: products, sums and biases by pattern."""

    def _create_parameters(self, weight_shape: Any, weight_bound: float, bias_shape: Any, bias_bound: float) -> None:
        self.weight = Parameter(zeros(weight_shape).uniform_(-weight_bound, weight_bound))
        self.bias = None if bias_shape is None else Parameter(zeros(bias_shape).uniform_(-bias_bound, bias_bound))

    def _create_rearrange_layers(
        self, pre_reshape_pattern: Any, pre_reshape_lengths: Any, post_reshape_pattern: Any, post_reshape_lengths: Any
    ) -> None:
        before, after = pre_reshape_pattern, post_reshape_pattern
        self.pre_rearrange = None if before is None else Rearrange(before, **pre_reshape_lengths)
        self.post_rearrange = None if after is None else Rearrange(after, **post_reshape_lengths)

    def forward(self, input: Tensor) -> Tensor:
        if self.pre_rearrange is not None:
            input = self.pre_rearrange(input)
        made = einsum(self.einsum_pattern, input, self.weight)
        if self.bias is not None:
            made = made + self.bias
        return made if self.post_rearrange is None else self.post_rearrange(made)
