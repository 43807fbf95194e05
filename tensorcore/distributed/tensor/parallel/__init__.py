"""Plans of how the layers of a model are shared out over a mesh: columns, rows, sequences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from tensorcore.distributed.tensor.api import DTensor, from_local, place_parameters
from tensorcore.distributed.tensor.placement_types import Placement, Replicate, Shard
from tensorcore.errors import ArgumentError, ArgumentTypeError
from tensorcore.nn.module import Module

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel",
    "parallelize_module",
]  # fmt: skip


class ParallelStyle(ABC):
    """What one entry of a plan does to a module."""

    @abstractmethod
    def apply(self, module: Module, mesh: Any) -> Module:
        """Share the module out, in place."""


def parallelize_module(
    module: Module, device_mesh: Any, parallelize_plan: ParallelStyle | Mapping[str, ParallelStyle] | None = None
) -> Module:
    """Share a module out over a mesh of one dim, in place.

    Args:
        parallelize_plan: a style for the module itself, or a dict of styles by the names of modules within it, in which
            ``*`` stands for any one name.

    Raises:
        ArgumentError: for a mesh of several dims (take one, ``mesh["tp"]``), or a name that no module has.
    """
    if device_mesh.ndim != 1:
        raise ArgumentError(
            f"parallelize_module: expected a mesh of one dim, got {device_mesh.ndim}; take one of its dims, as mesh['tp']"
        )
    if parallelize_plan is None:
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        return parallelize_plan.apply(module, device_mesh)
    for pattern, style in parallelize_plan.items():
        wanted = pattern.split(".")
        found = [
            one
            for name, one in module.named_modules()
            if len(parts := name.split(".")) == len(wanted) and all(map(fnmatchcase, parts, wanted))
        ]
        if not found:
            raise ArgumentError(
                f"parallelize_module: expected the plan to name modules, got {pattern!r}, which none has"
            )
        for one in found:
            style.apply(one, device_mesh)
    return module


class _Layered(ParallelStyle):
    """Parameters with placements, and inputs and outputs that come and go as the neighbours have them."""

    needs: Placement  # how the module takes its input

    def __init__(
        self, input_layouts: Placement | None, output_layouts: Placement | None, use_local_output: bool
    ) -> None:
        self.input, self.output, self.local = input_layouts, output_layouts, use_local_output

    def apply(self, module: Module, mesh: Any) -> Module:
        place_parameters(module, mesh, self.placements_of(module))
        module.register_forward_pre_hook(lambda layer, inputs: (self._taken(inputs[0], mesh, layer), *inputs[1:]))
        module.register_forward_hook(lambda layer, inputs, made: self._given(made, mesh))
        return module

    def placements_of(self, module: Module) -> dict[str, Sequence[Placement]]:
        """The placements of parameters that are not whole on each rank."""
        raise NotImplementedError

    def wanted(self, module: Module) -> Placement:
        """How this module takes its input."""
        return self.needs

    def _taken(self, given: Any, mesh: Any, module: Module) -> Any:
        if not isinstance(given, DTensor):
            given = from_local(given, mesh, [self.input])  # type: ignore[list-item]
        return given.redistribute(placements=[self.wanted(module)])

    def _given(self, made: Any, mesh: Any) -> Any:
        made = made.redistribute(placements=[self.output])
        return made.to_local() if self.local else made


class ColwiseParallel(_Layered):
    """The outputs of a Linear, or the columns of an Embedding, shared out. Without more ado its outputs stay so."""

    needs = Replicate()

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output)

    def placements_of(self, module: Module) -> dict[str, Sequence[Placement]]:
        kind = _kind("ColwiseParallel", module)
        return {"weight": [Shard(1)]} if kind == "Embedding" else {"weight": [Shard(0)], "bias": [Shard(0)]}


class RowwiseParallel(_Layered):
    """The inputs of a Linear, or the rows of an Embedding, shared out; what the ranks make of theirs is summed up."""

    needs = Shard(-1)

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        self.asked = input_layouts
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output)

    def placements_of(self, module: Module) -> dict[str, Sequence[Placement]]:
        kind = _kind("RowwiseParallel", module)
        return {"weight": [Shard(0)]} if kind == "Embedding" else {"weight": [Shard(1)]}

    def wanted(self, module: Module) -> Placement:
        return Replicate() if _kind("RowwiseParallel", module) == "Embedding" else self.needs

    def _taken(self, given: Any, mesh: Any, module: Module) -> Any:
        if self.asked is None and not isinstance(given, DTensor) and self.wanted(module).is_replicate():
            return from_local(given, mesh, [Replicate()])
        return super()._taken(given, mesh, module)


class SequenceParallel(_Layered):
    """A module without sums over the sequence (LayerNorm, Dropout), of which each rank has its part of the sequence."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.needs = Shard(sequence_dim)
        super().__init__(self.needs, self.needs, use_local_output)

    def placements_of(self, module: Module) -> dict[str, Sequence[Placement]]:
        return {}


class PrepareModuleInput(ParallelStyle):
    """Inputs by position turned from ``input_layouts`` into ``desired_input_layouts``; None leaves one as it is."""

    def __init__(
        self, *, input_layouts: Any = None, desired_input_layouts: Any = None, use_local_output: bool = False
    ) -> None:
        self.before, self.after, self.local = _each(input_layouts), _each(desired_input_layouts), use_local_output
        if len(self.before) != len(self.after):
            raise ArgumentError(
                f"PrepareModuleInput: input_layouts and desired_input_layouts should have same length! got "
                f"{len(self.before)} and {len(self.after)}"
            )

    def apply(self, module: Module, mesh: Any) -> Module:
        module.register_forward_pre_hook(
            lambda layer, inputs: _turned("module inputs", inputs, self.before, self.after, mesh, self.local)
        )
        return module


class PrepareModuleOutput(ParallelStyle):
    """Outputs turned from ``output_layouts`` into ``desired_output_layouts``; None leaves one as it is."""

    def __init__(
        self, *, output_layouts: Any = None, desired_output_layouts: Any = None, use_local_output: bool = True
    ) -> None:
        self.before, self.after, self.local = _each(output_layouts), _each(desired_output_layouts), use_local_output

    def apply(self, module: Module, mesh: Any) -> Module:
        def hook(layer: Any, inputs: Any, made: Any) -> Any:
            several = isinstance(made, tuple)
            turned = _turned("module outputs", made if several else (made,), self.before, self.after, mesh, self.local)
            return turned if several else turned[0]

        module.register_forward_hook(hook)
        return module


def _each(layouts: Any) -> tuple[Any, ...]:
    return layouts if isinstance(layouts, tuple) else (layouts,)


def _turned(what: str, given: Any, before: Any, after: Any, mesh: Any, local: bool) -> tuple[Any, ...]:
    if len(given) != len(before):
        raise ArgumentError(f"{what} and layouts should have same length! got {len(given)} and {len(before)}")
    made = []
    for one, have, want in zip(given, before, after, strict=True):
        if have is not None:
            one = one if isinstance(one, DTensor) else from_local(one, mesh, [have])
            one = one.redistribute(placements=[want])
            one = one.to_local() if local else one
        made.append(one)
    return tuple(made)


def _kind(style: str, module: Module) -> str:
    from tensorcore.nn import Embedding, Linear

    if isinstance(module, Linear):
        return "Linear"
    if isinstance(module, Embedding):
        return "Embedding"
    raise ArgumentTypeError(f"{style} currently only support nn.Linear and nn.Embedding! got {type(module).__name__}")
