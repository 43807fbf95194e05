"""Ready-made parametrizations: lengths and directions apart, spectral norm 1, orthogonal matrices."""

from __future__ import annotations

from tensorcore.nn.utils.norms import parametrized_spectral_norm as spectral_norm
from tensorcore.nn.utils.norms import parametrized_weight_norm as weight_norm
from tensorcore.nn.utils.orthogonal import orthogonal

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
