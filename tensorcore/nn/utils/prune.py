"""Pruning: masks that keep elements of a module's tensors at zero, chosen at random or by their size."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tensorcore.errors import ArgumentError, ArgumentTypeError, DimensionError
from tensorcore.nn.module import Module
from tensorcore.nn.utils.convert_parameters import parameters_to_vector
from tensorcore.ops.creation.create import ones_like, zeros_like
from tensorcore.ops.creation.random import rand
from tensorcore.ops.creation.random_fill import rand_like
from tensorcore.tensor import Tensor

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class BasePruningMethod:
    """A way to choose what is pruned; the hook that multiplies the tensor by its mask before each forward.

    A subclass sets ``PRUNING_TYPE`` (``unstructured``, ``structured`` with an attribute ``dim``, or ``global``) and
    writes ``compute_mask(t, default_mask)``, which gives a mask of ones and zeros of the shape of ``t``.
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask; 0 wherever ``default_mask`` is."""
        raise NotImplementedError(f"{type(self).__name__}: expected compute_mask(t, default_mask), got none; write it")

    def apply_mask(self, module: Module) -> Any:
        """The pruned tensor."""
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(original.dtype) * original

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune the tensor ``name``: it is computed from then on, of ``<name>_orig`` and the buffer ``<name>_mask``.

        A tensor that is pruned already is pruned further.

        Args:
            importance_scores: what the choice goes by, of the tensor's shape; the tensor itself where None.
        """
        earlier = [
            (key, hook)
            for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        before = getattr(module, name)
        scores = before if importance_scores is None else importance_scores
        if scores.shape != before.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got {scores.shape}"
            )
        if earlier:
            hook = earlier[0][1]
            container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
            mask = container._with(method, scores, getattr(module, f"{name}_mask").detach().clone())
            container.add_pruning_method(method)
            for key, _ in earlier:
                del module._forward_pre_hooks[key]
            method = container
        else:
            mask = method.compute_mask(scores, default_mask=ones_like(before))
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", before)
        module.register_buffer(f"{name}_mask", mask.detach())
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A tensor pruned, without a module."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(f"importance_scores should have the same shape as tensor t, got {scores.shape}")
        default = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default)

    def remove(self, module: Module) -> None:
        """Make the tensor a parameter again, with zeros where it was pruned."""
        name = self._tensor_name
        pruned = self.apply_mask(module)
        if name in module.__dict__:
            delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        original.data = pruned.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods that prune one tensor, one after the other."""

    def __init__(self, *methods: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if methods:
            self._tensor_name = methods[0]._tensor_name
        for one in methods:
            self.add_pruning_method(one)

    def add_pruning_method(self, method: Any) -> None:
        """Add one at the end."""
        if not isinstance(method, BasePruningMethod):
            raise ArgumentTypeError(f"{type(method)} is not a BasePruningMethod subclass, got {method!r}")
        if method._tensor_name != self._tensor_name:
            raise ArgumentError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask with what the last method prunes of what was left."""
        return self._with(self._pruning_methods[-1], t, default_mask)

    @staticmethod
    def _with(method: Any, t: Any, mask: Any) -> Any:
        made = mask.to(t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            left: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
                )
            dim = _wrapped(t, method.dim)
            kept = mask.sum([one for one in range(t.dim()) if one != dim]) != 0
            left = (*[slice(None)] * dim, kept)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.dim()
        else:
            raise ArgumentError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}, expected e.g. unstructured")
        made[left] = method.compute_mask(t[left], default_mask=mask[left]).to(made.dtype)
        return made


class Identity(BasePruningMethod):
    """Prunes nothing: gives a tensor the mask of ones."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask


class _Unstructured(BasePruningMethod):
    """Prunes ``amount`` of the elements: a part of them, or an int of so many."""

    def __init__(self, amount: Any) -> None:
        self.amount = _checked(amount)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[self._chosen(t, count)] = 0
        return mask

    def _chosen(self, t: Any, count: int) -> Any:
        raise NotImplementedError


class RandomUnstructured(_Unstructured):
    """Prunes elements at random."""

    def _chosen(self, t: Any, count: int) -> Any:
        return rand_like(t).view(-1).topk(count)[1]  # type: ignore[attr-defined]


class L1Unstructured(_Unstructured):
    """Prunes the elements nearest to zero."""

    def _chosen(self, t: Any, count: int) -> Any:
        return t.abs().view(-1).topk(count, largest=False)[1]


class _Structured(BasePruningMethod):
    """Prunes ``amount`` of the slices along ``dim``: a part of them, or an int of so many."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        self.amount = _checked(amount)
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if t.dim() <= 1:
            raise ArgumentError(
                f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} "
                f"with {t.dim()} dims"
            )
        dim = _wrapped(t, self.dim)
        count = _count(self.amount, t.shape[dim])
        if not count:
            return default_mask
        mask = zeros_like(t)
        mask[(*[slice(None)] * dim, self._kept(t, dim, count))] = 1  # type: ignore[index]
        return mask * default_mask.to(mask.dtype)

    def _kept(self, t: Any, dim: int, count: int) -> Any:
        raise NotImplementedError


class RandomStructured(_Structured):
    """Prunes slices at random."""

    def _kept(self, t: Any, dim: int, count: int) -> Any:
        chances: Any = rand(t.shape[dim])
        return (chances > chances.kthvalue(count)[0]).to(t.device)


class LnStructured(_Structured):
    """Prunes the slices of the smallest ``n``-norms."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t: Any, dim: int, count: int) -> Any:
        norms = t.norm(p=self.n, dim=[one for one in range(t.dim()) if one != dim])
        return norms.topk(t.shape[dim] - count)[1]


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is 0."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"mask: expected the shape {list(default_mask.shape)}, got {list(self.mask.shape)}")
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Give a tensor the mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Prune elements at random: a part ``amount`` of them, or an int of so many."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: Any, importance_scores: Any = None) -> Module:
    """Prune the elements nearest to zero, or with the scores nearest to zero."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Prune slices along ``dim`` at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Module:
    """Prune the slices along ``dim`` of the smallest ``n``-norms, of the tensor or of the scores."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Any) -> Module:
    """Prune where ``mask`` is 0."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Callable[..., Any], importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune several tensors as if they were one.

    Args:
        parameters: pairs of module and name.
        pruning_method: an unstructured one; ``kwargs`` are its arguments.
        importance_scores: by pair, what the choice goes by instead of the tensor.
    """
    if not isinstance(parameters, Iterable):
        raise ArgumentTypeError(
            f"global_unstructured(): parameters is not an Iterable, got {type(parameters).__name__}"
        )
    given = {} if importance_scores is None else importance_scores
    if not isinstance(given, dict):
        raise ArgumentTypeError(
            f"global_unstructured(): importance_scores must be of type dict, got {type(given).__name__}"
        )
    pairs = list(parameters)
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise ArgumentTypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type '
            f"{method.PRUNING_TYPE}"
        )
    tensors: list[Tensor] = [getattr(module, name) for module, name in pairs]
    scores = [given.get(pair, one) for pair, one in zip(pairs, tensors, strict=True)]
    masks = [
        getattr(module, f"{name}_mask", None) for module, name in pairs
    ]  # fmt: skip
    before = [ones_like(one) if mask is None else mask for one, mask in zip(tensors, masks, strict=True)]
    mask = PruningContainer._with(method, parameters_to_vector(scores), parameters_to_vector(before))
    at = 0
    for (module, name), one in zip(pairs, tensors, strict=True):
        custom_from_mask(module, name, mask[at : at + one.numel()].view(tuple(one.shape)))
        at += one.numel()


def remove(module: Module, name: str) -> Module:
    """Make a pruned tensor a parameter again, with its zeros."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ArgumentError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether a tensor of the module, or of one below, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod) for one in module.modules() for hook in one._forward_pre_hooks.values()
    )


def _checked(amount: Any) -> Any:
    if not isinstance(amount, numbers.Real):
        raise ArgumentTypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, numbers.Integral) and amount > 1):
        raise ArgumentError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
    return amount


def _count(amount: Any, size: int) -> int:
    count = int(amount) if isinstance(amount, numbers.Integral) else round(amount * size)
    if count > size:
        raise ArgumentError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return count


def _wrapped(t: Any, dim: int) -> int:
    if not -t.dim() <= dim < t.dim():
        raise DimensionError(f"Invalid index {dim} for tensor of size {t.shape}")
    return dim % t.dim()
