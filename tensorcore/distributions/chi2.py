"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.gamma import Gamma
from tensorcore.formats import Size

__all__ = ["Chi2"]


class Chi2(Gamma):
    """Sums of ``df`` squared standard normal numbers; ``df`` need not be whole."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def _expanded(self, name: str, batch_shape: Size) -> Any:
        value = self.__dict__[name]
        return value.expand(batch_shape) if name in Gamma.arg_constraints else super()._expanded(name, batch_shape)

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        return self.concentration * 2
