"""Constraints: sets of values that parameters and samples are in, each with a ``check`` that tells element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorcore.dtypes import finfo
from tensorcore.errors import ArgumentError
from tensorcore.ops.operands import everywhere
from tensorcore.ops.shapes.join import cat as joined
from tensorcore.ops.shapes.join import stack as stacked

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A set of values.

    Attributes:
        is_discrete: whether its values lie apart.
        event_dim: how many of the last dims make up one value; ``check`` answers without them.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Any) -> Any:
        """For each value of the batch, whether it is in the set."""
        raise NotImplementedError

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={value}" for name, value in self.__dict__.items() if name.endswith("_bound"))
        return f"{type(self).__name__.lstrip('_')}({bounds})"


class _Dependent(Constraint):
    """A set that depends on other parameters: nobody can check it without them."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self) -> bool:
        return _known("is_discrete", self._is_discrete)

    @property
    def event_dim(self) -> int:
        return _known("event_dim", self._event_dim)

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """The same, with what can be said of all its sets."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Any) -> Any:
        raise ArgumentError("constraint: Cannot determine validity of a dependent constraint, got one; ask an instance")


def _known(name: str, value: Any) -> Any:
    if value is NotImplemented:
        raise NotImplementedError(f"constraint: .{name} cannot be determined statically, got a dependent constraint")
    return value


class _DependentProperty(property, _Dependent):
    """A property of a distribution that answers a constraint; on the class it is a dependent constraint itself."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: Any) -> bool:
    """Whether nobody can check it without other parameters."""
    return isinstance(constraint, _Dependent)


class _IndependentConstraint(Constraint):
    """A constraint whose values are whole blocks of another's, all of them valid."""

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        found = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        if found.dim() < count:
            raise ArgumentError(
                f"independent: Expected value.dim() >= {self.event_dim}, got {value.dim()}; pass a value with those dims"
            )
        return found.all(-1) if count == 1 else found.reshape((*found.shape[: found.dim() - count], -1)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The values that every component of a mixture takes; the components are the last dim of its batch."""

    def __init__(self, base_constraint: Any) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim

    def check(self, value: Any) -> Any:
        if value.dim() < self.event_dim:
            raise ArgumentError(
                f"mixture: Expected value.dim() >= {self.event_dim}, got {value.dim()}; pass a value with those dims"
            )
        found = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        count = min(value.dim() - self.event_dim, found.dim())
        return found.reshape((*found.shape[:count], -1)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Bounded(Constraint):
    """What sets with two ends have in common."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


class _IntegerInterval(_Bounded):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _Interval(_Bounded):
    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Above(Constraint):
    """What sets with a lower end have in common."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _GreaterThan(_Above):
    def check(self, value: Any) -> Any:
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    def check(self, value: Any) -> Any:
        return self.lower_bound <= value


class _IntegerGreaterThan(_Above):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Below(Constraint):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _LessThan(_Below):
    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _IntegerLessThan(_Below):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _Multinomial(_Below):
    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)

    def __repr__(self) -> str:
        return "Multinomial()"


class _Real(Constraint):
    def check(self, value: Any) -> Any:
        return value == value  # which NaN is not


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Matrix(Constraint):
    event_dim = 2


class _LowerTriangular(_Matrix):
    def check(self, value: Any) -> Any:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Any) -> Any:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Any) -> Any:
        # Rows of length 1, as far as rounding lets a sum of their squares tell.
        rounding = finfo(value.dtype).eps * value.size(-1) * 10
        return super().check(value) & ((value.square().sum(-1) - 1).abs() < rounding).all(-1)


class _Square(_Matrix):
    def check(self, value: Any) -> Any:
        return value.new_ones(value.shape[:-2]).bool() & (value.shape[-2] == value.shape[-1])


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        square = super().check(value)
        return (
            square & value.isclose(value.mT, atol=1e-6).flatten(-2).all(-1)
            if value.shape[-2] == value.shape[-1]
            else square
        )


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        from tensorcore.ops.linalg.eigen import eigvalsh

        symmetric = super().check(value)
        return symmetric & (eigvalsh(value) >= 0).all(-1) if everywhere(symmetric) else symmetric


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        from tensorcore.ops.linalg.cholesky import cholesky_ex

        symmetric = super().check(value)
        return symmetric & (cholesky_ex(value).info == 0) if everywhere(symmetric) else symmetric


class _Cat(Constraint):
    """Constraints of pieces that lie one after the other along a dim."""

    def __init__(self, cseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq = list(cseq)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        return any(one.is_discrete for one in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(one.event_dim for one in self.cseq)

    def check(self, value: Any) -> Any:
        pieces = value.split(self.lengths, self.dim)
        return joined([one.check(piece) for one, piece in zip(self.cseq, pieces, strict=True)], self.dim)


class _Stack(_Cat):
    """Constraints of the slices along a dim."""

    def __init__(self, cseq: Sequence[Any], dim: int = 0) -> None:
        super().__init__(cseq, dim)

    @property
    def event_dim(self) -> int:
        widest = super().event_dim
        return widest + 1 if self.dim + widest < 0 else widest

    def check(self, value: Any) -> Any:
        return stacked(
            [one.check(piece) for one, piece in zip(self.cseq, value.unbind(self.dim), strict=True)], self.dim
        )


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
