"""Transforms from unconstrained numbers to those that satisfy a constraint: ``biject_to`` and ``transform_to``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorcore.distributions import constraints, transforms
from tensorcore.errors import ArgumentTypeError

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A function from constraints to transforms, which ``register`` extends."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Let ``factory(constraint)`` make the transform of each constraint of this type.

        Args:
            constraint: a constraint or a type of constraints.
            factory: what makes the transform; without it a decorator is returned.
        """
        if factory is None:
            return lambda given: self.register(constraint, given)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, constraints.Constraint)):
            raise ArgumentTypeError(
                f"register: Expected constraint to be either a Constraint subclass or instance, got {constraint!r}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform of a constraint. Raises NotImplementedError where none is registered for its type."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"transform: Cannot transform {type(constraint).__name__} constraints, got {constraint!r}; register() a factory"
            )
        return factory(constraint)


# The first finds inverses for every constrained value; the second may be cheaper, or allow more directions.
biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Any], Any]:
    def register(factory: Any) -> Any:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_both(constraints.real)
def _real(constraint: Any) -> Any:
    return transforms.identity_transform


@_both(constraints.greater_than, constraints.greater_than_eq)
def _above(constraint: Any) -> Any:
    return transforms.ComposeTransform([
        transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)
    ])  # fmt: skip


@_both(constraints.less_than)
def _below(constraint: Any) -> Any:
    return transforms.ComposeTransform([
        transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)
    ])  # fmt: skip


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, float | int) and isinstance(high, float | int) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


@biject_to.register(constraints.simplex)
def _stick(constraint: Any) -> Any:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _softmax(constraint: Any) -> Any:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _triangular(constraint: Any) -> Any:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _definite(constraint: Any) -> Any:
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _correlation(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


def _parts(registry: ConstraintRegistry) -> None:
    """Constraints made of others: their transforms are made of those of the others."""

    @registry.register(constraints.independent)
    def _independent(constraint: Any) -> Any:
        return transforms.IndependentTransform(
            registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims
        )

    @registry.register(constraints.cat)
    def _cat(constraint: Any) -> Any:
        return transforms.CatTransform([registry(one) for one in constraint.cseq], constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def _stack(constraint: Any) -> Any:
        return transforms.StackTransform([registry(one) for one in constraint.cseq], constraint.dim)


_parts(biject_to)
_parts(transform_to)
