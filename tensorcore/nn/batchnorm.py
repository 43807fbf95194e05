"""Normalisation of channels: over the batch, or of each sample by itself."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError
from tensorcore.nn import functional as F
from tensorcore.nn import init
from tensorcore.nn.lazy import LazyModuleMixin
from tensorcore.nn.module import Module
from tensorcore.nn.norm import make_weights, reset_weights
from tensorcore.ops.creation.create import ones, tensor, zeros
from tensorcore.tensor import Tensor

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d", "SyncBatchNorm",
]  # fmt: skip


class _NormBase(Module):
    """Normalisation of each channel, with running statistics if asked.

    Args:
        num_features: the number of channels, the size of dim 1.
        eps: added to the variance.
        momentum: how fast the running statistics move; None for the mean over all batches so far.
        affine: scale and shift by trained weights.
        track_running_stats: keep running statistics and use them in evaluation.
        bias: whether an affine one shifts.
    """

    _version = 2
    ranks: tuple[int, ...]
    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        make_weights(self, (num_features,), affine, affine and bias, device, dtype)
        if track_running_stats:
            self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", tensor(0, dtype=dtypes.int64, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the batches so far."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)  # type: ignore[arg-type]
            init.ones_(self.running_var)  # type: ignore[arg-type]
            self.num_batches_tracked.zero_()  # type: ignore[union-attr]

    def reset_parameters(self) -> None:
        """Forget the batches so far, and scale by 1."""
        self.reset_running_stats()
        reset_weights(self)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self.ranks:
            wanted = " or ".join(f"{rank}D" for rank in self.ranks)
            raise ArgumentError(f"expected {wanted} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        version = local_metadata.get("version")
        key = f"{prefix}num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            # Files from before version 2 do not count the batches.
            count = self.num_batches_tracked
            state_dict[key] = count if count is not None and not count.is_meta else tensor(0, dtype=dtypes.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """Normalisation of each channel over the batch."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = self._factor()
        # Statistics that are not tracked are of the batch, in evaluation too.
        mean, variance = self.running_mean, self.running_var
        of_batch = self.training or (mean is None and variance is None)
        if self.training and not self.track_running_stats:
            mean = variance = None
        return F.batch_norm(input, mean, variance, self.weight, self.bias, of_batch, factor, self.eps)

    def _factor(self) -> float:
        """Count the batch, and say how far the running statistics move to its own."""
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)  # type: ignore[attr-defined]
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        return factor


class BatchNorm1d(_BatchNorm):
    """Batch normalisation (Ioffe and Szegedy, arXiv:1502.03167) of (N, C) or (N, C, L)."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation (Ioffe and Szegedy, arXiv:1502.03167) of (N, C, H, W)."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation (Ioffe and Szegedy, arXiv:1502.03167) of (N, C, D, H, W)."""

    ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of inputs of two dims or more; in training the batch is that of all ranks of a process group.

    Args:
        process_group: the ranks that share the statistics: all where None. Without any, the batch is this process's.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ArgumentError(f"expected at least 2D input (got {input.dim()}D input)")
        if not input.shape[1]:
            raise ArgumentError(
                f"SyncBatchNorm number of input channels should be non-zero, got shape {list(input.shape)}"
            )

    def forward(self, input: Tensor) -> Tensor:
        if self.training and "tensorcore.distributed.group" in sys.modules:
            from tensorcore.nn.parallel import syncing

            if syncing.shared(self.process_group):
                self._check_input_dim(input)
                return syncing.batch_norm(self, input, self._factor())
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with a SyncBatchNorm of the same state in place of each batch norm in it."""
        made = module
        if isinstance(module, _BatchNorm):
            made = SyncBatchNorm(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                process_group, bias=module.bias is not None,
            )  # fmt: skip
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _InstanceNorm(_NormBase):
    """Normalisation of each channel of each sample (Ulyanov et al., arXiv:1607.08022)."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing: Any,
        unexpected: Any,
        errors: Any,
    ) -> None:
        if local_metadata.get("version") is None and not self.track_running_stats:
            # Before version 1 these layers always tracked.
            old = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            for key in old:
                del state_dict[key]
            if old:
                named = " and ".join(f'"{key}"' for key in old)
                errors.append(
                    f"Unexpected running stats buffer(s) {named} for {type(self).__name__} with "
                    f"track_running_stats=False. Remove them from the state_dict, or set track_running_stats=True."
                )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = input.dim() == self.ranks[0]
        at = 0 if single else 1
        if input.shape[at] != self.num_features:
            if self.affine:
                raise ArgumentError(
                    f"expected input's size at dim={at} to match num_features ({self.num_features}), "
                    f"but got: {input.shape[at]}."
                )
            warnings.warn(
                f"input's size at dim={at} does not match num_features, got {input.shape[at]} and {self.num_features}; "
                f"num_features is not used because affine=False",
                stacklevel=2,
            )
        made = F.instance_norm(
            input.unsqueeze(0) if single else input,  # type: ignore[attr-defined]
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return made.squeeze(0) if single else made


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L)."""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W)."""

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W)."""

    ranks = (4, 5)


class _LazyNorm(LazyModuleMixin, _NormBase):
    """A normalisation whose ``num_features`` is that of its first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._lazily({"weight": affine, "bias": affine and bias}, device, dtype)
        if track_running_stats:
            self._lazily_buffered(("running_mean", "running_var"), device, dtype)
            self.num_batches_tracked = tensor(0, dtype=dtypes.int64, device=device)

    def reset_parameters(self) -> None:
        if self.num_features and not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            # Of an instance norm's single sample the channels come first.
            single = isinstance(self, _InstanceNorm) and input.dim() == self.ranks[0]
            self.num_features = input.shape[0 if single else 1]
            for one in (self.weight, self.bias, self.running_mean, self.running_var):
                if one is not None:
                    one.materialize((self.num_features,))  # type: ignore[attr-defined]
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """BatchNorm1d that learns ``num_features`` from its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """BatchNorm2d that learns ``num_features`` from its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """BatchNorm3d that learns ``num_features`` from its first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """InstanceNorm1d that learns ``num_features`` from its first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """InstanceNorm2d that learns ``num_features`` from its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """InstanceNorm3d that learns ``num_features`` from its first input."""

    cls_to_become = InstanceNorm3d
