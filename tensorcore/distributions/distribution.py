"""The base of all distributions: shapes, validation, expansion, and what a distribution may define."""

from __future__ import annotations

import warnings
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.utils import broadcast_all, lazy_property
from tensorcore.errors import ArgumentError
from tensorcore.formats import Size
from tensorcore.ops.creation.create import empty
from tensorcore.ops.operands import everywhere
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor

__all__ = ["Distribution"]


class Distribution:
    """A batch of distributions over values of one shape.

    A subclass names its parameters in ``arg_constraints`` and keeps each as the attribute of that name: the base
    checks, expands and prints them. Distributions that it keeps as attributes are expanded along.

    Args:
        batch_shape: the shape over which the parameters are batched.
        event_shape: the shape of one sample of one distribution.
        validate_args: whether parameters and values are checked; unless told otherwise as
            ``set_default_validate_args`` says.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments unless told otherwise; they do, except under ``python -O``."""
        if value not in (True, False):
            raise ArgumentError(f"set_default_validate_args: expected True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _take(self, validate_args: bool | None, **parameters: Any) -> None:
        """Be a distribution over single numbers with these parameters, broadcast to one shape."""
        values = broadcast_all(*parameters.values())
        self.__dict__.update(zip(parameters, values, strict=True))
        Distribution.__init__(self, values[0].shape, validate_args=validate_args)

    @property
    def batch_shape(self) -> Size:
        """The shape over which the parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution."""
        return self._event_shape

    # What a distribution may define

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """The constraint of each parameter that is a tensor, by name."""
        raise NotImplementedError(f"{type(self).__name__}: arg_constraints are not defined")

    @property
    def support(self) -> Any:
        """The constraint that samples satisfy."""
        raise NotImplementedError(f"{type(self).__name__}: support is not defined")

    @property
    def mean(self) -> Any:
        """The mean, in the batch's and event's shape."""
        raise NotImplementedError(f"{type(self).__name__}: mean is not defined")

    @property
    def mode(self) -> Any:
        """The value of the greatest probability or density."""
        raise NotImplementedError(f"{type(self).__name__}: {type(self)} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance of each number of a sample."""
        raise NotImplementedError(f"{type(self).__name__}: variance is not defined")

    @property
    def stddev(self) -> Any:
        """The standard deviation of each number of a sample."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Samples of shape ``sample_shape + batch_shape + event_shape``, off the tape."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Samples that are differentiable with respect to the parameters."""
        raise NotImplementedError(f"{type(self).__name__}: rsample is not defined; use sample()")

    def sample_n(self, n: int) -> Any:
        """``sample((n,))``."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, of each value."""
        raise NotImplementedError(f"{type(self).__name__}: log_prob is not defined")

    def cdf(self, value: Any) -> Any:
        """The probability of at most each value."""
        raise NotImplementedError(f"{type(self).__name__}: cdf is not defined")

    def icdf(self, value: Any) -> Any:
        """The value that a sample is at most with each probability."""
        raise NotImplementedError(f"{type(self).__name__}: icdf is not defined")

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values along dim 0, in lock step over the batch, whose dims are of size 1 without ``expand``."""
        raise NotImplementedError(f"{type(self).__name__}: enumerate_support is not defined")

    def entropy(self) -> Any:
        """The entropy of each distribution, in nats."""
        raise NotImplementedError(f"{type(self).__name__}: entropy is not defined")

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return self.entropy().exp()

    # Expansion

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions, their parameters viewed in a larger batch; nothing is checked or copied.

        Args:
            _instance: an instance of a subclass, which is filled in.
        """
        own = next(cls for cls in type(self).__mro__ if "__init__" in vars(cls) and cls.__module__.startswith(_HERE))
        new = self._get_checked_instance(own, _instance)
        batch_shape = Size(batch_shape)
        for name in self.__dict__:
            # What was computed once from the parameters is computed again, unless it is one of them.
            if name in self.arg_constraints or not isinstance(getattr(type(self), name, None), lazy_property):
                new.__dict__[name] = self._expanded(name, batch_shape)
        new._batch_shape = batch_shape
        return new

    def _expanded(self, name: str, batch_shape: Size) -> Any:
        """The attribute of that name for a larger batch."""
        value = self.__dict__[name]
        if isinstance(value, Tensor) and name in self.arg_constraints:
            constraint = self.arg_constraints[name]
            own = 0 if constraints.is_dependent(constraint) else constraint.event_dim
            return value.expand(batch_shape + value.shape[value.dim() - own :])
        return value.expand(batch_shape) if isinstance(value, Distribution) else value

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """``_instance``, or an empty one of this type; a subclass with another constructor knows better itself."""
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"expand: Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                f"define a custom .expand() method, got none"
            )
        return self.__new__(type(self)) if _instance is None else _instance

    # Shapes and checks

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _empty(self, sample_shape: Any, like: Tensor) -> Any:
        """Room for samples, to draw into."""
        return empty(self._extended_shape(sample_shape), dtype=like.dtype, device=like.device)

    def _enumerated(self, values: Any, expand: bool) -> Any:
        """All values, which lie along dim 0, beside the dims of the batch."""
        count, *event = values.shape
        values = values.reshape((count, *[1] * len(self._batch_shape), *event))
        return values.expand((count, *self._batch_shape, *event)) if expand else values

    def _check_parameters(self) -> None:
        try:
            named = self.arg_constraints
        except NotImplementedError:
            named = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
        for name, constraint in named.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue
            value = getattr(self, name)
            if not everywhere(constraint.check(value)):
                raise ArgumentError(
                    f"{type(self).__name__}: Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint {constraint!r}, but found "
                    f"invalid values, got\n{value}"
                )

    def _check(self, value: Any) -> None:
        """Validate a value, where arguments are."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        """Raise ArgumentError for a value that is no sample of these distributions."""
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"{name}: The value argument to log_prob must be a Tensor, got {type(value).__name__}; use torch.tensor(...)"
            )
        shape, event, whole = value.shape, self._event_shape, self._batch_shape + self._event_shape
        if len(shape) < len(event) or shape[len(shape) - len(event) :] != event:
            raise ArgumentError(
                f"{name}: The right-most size of value must match event_shape: got {shape} vs {event}; reshape the value"
            )
        for mine, wanted in zip(reversed(shape), reversed(whole), strict=False):
            if mine != 1 and wanted != 1 and mine != wanted:
                raise ArgumentError(
                    f"{name}: Value is not broadcastable with batch_shape+event_shape: got {shape} vs {whole}; reshape it"
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the distribution "
                "with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not everywhere(support.check(value)):
            raise ArgumentError(
                f"{name}: Expected value argument ({type(value).__name__} of shape {tuple(shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values, got\n{value}"
            )

    def __repr__(self) -> str:
        kept = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        inside = [f"{name}: {one if one.numel() == 1 else one.size()}" for name, one in kept.items()]
        return f"{type(self).__name__}({', '.join(inside)})"


_HERE = __name__.rpartition(".")[0] + "."
