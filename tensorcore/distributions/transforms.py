"""Transforms: functions that have inverses, or nearly, with the logarithms of their Jacobians' determinants."""

from __future__ import annotations

from tensorcore.distributions.transform import (
    ComposeTransform,
    IndependentTransform,
    Transform,
    _InverseTransform,  # noqa: F401 - flows of other packages name it
    identity_transform,
)
from tensorcore.distributions.transforms_number import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from tensorcore.distributions.transforms_number import (
    clipped_sigmoid as _clipped_sigmoid,  # noqa: F401 - encoders of other packages name it
)
from tensorcore.distributions.transforms_vector import (
    CatTransform,
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    ReshapeTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
)

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip
