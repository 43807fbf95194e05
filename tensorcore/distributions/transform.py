"""What a transform is, and transforms made of others: inverses, chains, blocks."""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Sequence
from typing import Any

from tensorcore.distributions import constraints
from tensorcore.distributions.utils import _sum_rightmost, lazy_property
from tensorcore.errors import ArgumentError
from tensorcore.ops.creation.create import full_like

__all__ = ["ComposeTransform", "IndependentTransform", "Transform", "identity_transform"]


class Transform:
    """A function from ``domain`` to ``codomain``.

    A subclass defines ``_call``, ``_inverse`` and ``log_abs_det_jacobian``.

    Args:
        cache_size: 1 keeps the last pair of value and result, so that the inverse of a result is the value itself.

    Attributes:
        bijective: whether ``t.inv(t(x)) == x`` and ``t(t.inv(y)) == y``.
        sign: of the derivative, of a bijective transform of single numbers.
    """

    bijective = False
    domain: Any
    codomain: Any
    # Whether two of one type are the same function.
    _interchangeable = False

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ArgumentError(f"{type(self).__name__}: cache_size must be 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._inv: Any = None
        self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()  # of another base: a transform with parameters is a Module too

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}  # a weak reference cannot be pickled

    @property
    def event_dim(self) -> int:
        """How many of the last dims make up one value."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ArgumentError(
                f"{type(self).__name__}: Please use either .domain.event_dim or .codomain.event_dim, got values of "
                f"{self.domain.event_dim} and results of {self.codomain.event_dim} dims"
            )
        return self.domain.event_dim

    @property
    def inv(self) -> Any:
        """The inverse; ``t.inv.inv is t``."""
        found = None if self._inv is None else self._inv()
        if found is None:
            found = _InverseTransform(self)
            self._inv = weakref.ref(found)
        return found

    @property
    def sign(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: the sign is not defined")

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with a cache of that size."""
        if self._cache_size == cache_size:
            return self
        made = copy.copy(self)
        Transform.__init__(made, cache_size)
        return made

    def __eq__(self, other: object) -> bool:
        return self is other or (self._interchangeable and type(self) is type(other))

    __hash__ = None

    def __call__(self, x: Any) -> Any:
        """The result for ``x``."""
        known, result = self._cached_x_y
        if self._cache_size and x is known:
            return result
        y = self._call(x)
        if self._cache_size:
            self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        value, known = self._cached_x_y
        if self._cache_size and y is known:
            return value
        x = self._inverse(y)
        if self._cache_size:
            self._cached_x_y = x, y
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: the forward call is not defined")

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: the inverse is not defined")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of ``|dy/dx|``, summed over one value."""
        raise NotImplementedError(f"{type(self).__name__}: log_abs_det_jacobian is not defined")

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the result for values of that shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the values for results of that shape."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a transform, which it keeps alive."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._forward = transform

    @property
    def domain(self) -> Any:
        return self._forward.codomain

    @property
    def codomain(self) -> Any:
        return self._forward.domain

    @property
    def bijective(self) -> bool:
        return self._forward.bijective

    @property
    def sign(self) -> Any:
        return self._forward.sign

    @property
    def inv(self) -> Any:
        return self._forward

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._forward.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._forward == other._forward

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._forward!r})"

    def __call__(self, x: Any) -> Any:
        return self._forward._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._forward.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._forward.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._forward.forward_shape(shape)


class ComposeTransform(Transform):
    """Several transforms, the first one first."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return _widest([(part.codomain, part.domain) for part in reversed(self.parts)])

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return _widest([(part.domain, part.codomain) for part in self.parts])

    @lazy_property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        return math.prod([part.sign for part in self.parts])

    @property
    def inv(self) -> Any:
        found = None if self._inv is None else self._inv()
        if found is None:
            found = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv = weakref.ref(found)
            found._inv = weakref.ref(self)
        return found

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return full_like(x, 0)
        total: Any = 0
        dims = self.domain.event_dim
        for i, part in enumerate(self.parts):
            result = y if i == len(self.parts) - 1 else part(x)
            total = total + _sum_rightmost(part.log_abs_det_jacobian(x, result), dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = result
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


def _widest(steps: list[tuple[Any, Any]]) -> Any:
    """The last constraint of a chain of pairs (from, to), over as many dims as the widest value on the way asks for."""
    if not steps:
        return constraints.real
    dims = steps[0][0].event_dim
    for before, after in steps:
        dims = max(dims, before.event_dim) + after.event_dim - before.event_dim
    last = steps[-1][1]
    return last if dims == last.event_dim else constraints.independent(last, dims - last.event_dim)


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose values are whole blocks of another's.

    Args:
        reinterpreted_batch_ndims: how many more of the last dims make up one value.
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        _check_dims(self, x, self.domain)
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        _check_dims(self, y, self.codomain)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


def _check_dims(transform: Transform, value: Any, constraint: Any) -> None:
    if value.dim() < constraint.event_dim:
        raise ArgumentError(
            f"{type(transform).__name__}: Too few dimensions on input, got {value.dim()} where one value has "
            f"{constraint.event_dim}"
        )
