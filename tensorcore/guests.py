"""Packages that ask for the kind of a tensor: einops and opt_einsum learn of ours when they are imported.

einops has its layers for them too.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

__all__ = ["Finder", "tell", "tell_contractions", "welcome"]

_LAYERS = "einops.layers.tensorcore"  # beside einops.layers.torch
_OURS = "tensorcore.nn.einops"


class Finder:
    """Finds both as ever, and ``einops.layers.tensorcore`` too; other packages cost it two comparisons of names."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of a module of theirs that concerns tensors, and None for all others."""
        if name == _LAYERS:
            return spec_from_loader(name, _Same())
        if name not in _ASKS:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_tell(module: ModuleType) -> None:
                execute(module)
                _ASKS[name](module)

            spec.loader.exec_module = execute_and_tell  # type: ignore[method-assign]
        return spec


class _Same:
    """Loads a module under a second name."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        from importlib import import_module

        ours = import_module(_OURS)
        module.__doc__ = ours.__doc__
        for name in ours.__all__:
            setattr(module, name, getattr(ours, name))


def tell(backends: ModuleType) -> None:
    """Adds tensors to the kinds that einops knows: it asks each subclass of its ``AbstractBackend`` for them."""
    import tensorcore as torch

    class TensorcoreBackend(backends.AbstractBackend):  # type: ignore[name-defined, misc]
        """Tensors of this library, on any device."""

        framework_name = "tensorcore"

        def is_appropriate_type(self, tensor: object) -> bool:
            return isinstance(tensor, torch.Tensor)

        def from_numpy(self, x: Any) -> torch.Tensor:
            found = torch.from_numpy(x)
            return found.requires_grad_() if self.is_float_type(found) else found

        def to_numpy(self, x: torch.Tensor) -> Any:
            return x.detach().cpu().numpy()

        def arange(self, start: int, stop: int) -> torch.Tensor:
            return torch.arange(start, stop, dtype=torch.int64)

        def reduce(self, x: torch.Tensor, operation: str, axes: tuple[int, ...]) -> torch.Tensor:
            if operation in ("min", "max"):
                return getattr(x, "a" + operation)(dim=axes)
            if operation in ("sum", "mean"):
                return getattr(x, operation)(dim=axes)
            for axis in sorted(axes, reverse=True):  # any, all and prod take one dim at a time
                x = getattr(x, operation)(dim=axis)
            return x

        def transpose(self, x: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
            return x.permute(axes)

        def stack_on_zeroth_dimension(self, tensors: list[torch.Tensor]) -> torch.Tensor:
            return torch.stack(tensors)

        def add_axis(self, x: torch.Tensor, new_position: int) -> torch.Tensor:
            return x.unsqueeze(new_position)

        def add_axes(self, x: torch.Tensor, n_axes: int, pos2len: dict[int, int]) -> torch.Tensor:
            for position in pos2len:
                x = x.unsqueeze(position)
            return x.expand([pos2len.get(axis, -1) for axis in range(n_axes)])

        def tile(self, x: torch.Tensor, repeats: tuple[int, ...]) -> torch.Tensor:
            return x.repeat(repeats)

        def concat(self, tensors: list[torch.Tensor], axis: int) -> torch.Tensor:
            return torch.cat(tensors, dim=axis)

        def is_float_type(self, x: torch.Tensor) -> bool:
            return x.dtype.is_floating_point

        def einsum(self, pattern: str, *x: torch.Tensor) -> torch.Tensor:
            return torch.einsum(pattern, *x)

        def layers(self) -> ModuleType:
            from importlib import import_module

            return import_module(_OURS)

    backends.tensorcore_backend = TensorcoreBackend  # type: ignore[attr-defined]  # subclasses are known as long as they live


def tell_contractions(dispatch: ModuleType) -> None:
    """Gives opt_einsum the two functions that it calls in NumPy's way, where it would take ours of the same names."""
    import tensorcore as torch

    def tensordot(x: torch.Tensor, y: torch.Tensor, axes: Any = 2) -> torch.Tensor:
        return torch.tensordot(x, y, dims=axes)

    known = dispatch._cached_funcs
    known["tensordot", "tensorcore"] = tensordot
    known["transpose", "tensorcore"] = torch.permute


_ASKS = {"einops._backends": tell, "opt_einsum.backends.dispatch": tell_contractions}


def welcome() -> None:
    """Tells them of tensors, now where they are imported already, or else when they will be."""
    sys.meta_path.insert(0, Finder)
    for name, told in _ASKS.items():
        if name in sys.modules:
            told(sys.modules[name])
