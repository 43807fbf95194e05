"""What a model is made of: its layers with their shapes, parameters and operations, as a table."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, TensorcoreError
from tensorcore.nn.module import Module
from tensorcore.nn.parameter import Parameter, is_lazy
from tensorcore.ops.creation.create import empty
from tensorcore.ops.creation.random import get_rng_state, set_rng_state
from tensorcore.ops.placement import as_device
from tensorcore.tape.mode import no_grad
from tensorcore.tensor import Tensor
from tensorcore.utils.flop_counter import FlopCounterMode
from tensorcore.utils.tables import bytes_text, count_text, table_text

__all__ = ["Row", "Summary", "summary"]


class Row(NamedTuple):
    """One module.

    Attributes:
        name: its dotted name; empty for the model itself.
        kind: its class.
        depth: how many modules it lies within.
        input_shape, output_shape: of its first call; a list of shapes where it takes or gives several tensors, None
            where it was not called.
        parameters: elements in its parameters and in those below.
        flops: operations of all its calls, those of the modules below included, counted as
            ``tensorcore.utils.flop_counter`` counts them; None where the model was not run.
    """

    name: str
    kind: str
    depth: int
    input_shape: Any
    output_shape: Any
    parameters: int
    flops: int | None


class Summary:
    """The rows of a model, and their sums; ``print`` shows the table, and so does ``rich.print`` in colour.

    Attributes:
        rows: one for each module, the model itself first.
        total_params, trainable_params: elements in all parameters, and in those that require grad; a shared one
            counts once.
        param_bytes, buffer_bytes: of their memory.
        total_flops: operations of one call; None where the model was not run.
        device: where it was run; None where it was not.
    """

    def __init__(self, model: Module, rows: list[Row], depth: int, device: Any) -> None:
        known = [one for one in model.parameters() if not is_lazy(one)]
        self.rows, self.depth, self.device = rows, depth, device
        self.total_params = rows[0].parameters
        self.trainable_params = sum([one.numel() for one in known if one.requires_grad])
        self.param_bytes = sum([one.nbytes for one in known])
        self.buffer_bytes = sum([one.nbytes for one in model.buffers() if not is_lazy(one)])
        self.total_flops = rows[0].flops

    def text(self) -> str:
        """The table in plain characters."""
        heads, lines = self._cells()
        return table_text(heads, lines, left=1, footer=self._footer())

    def __str__(self) -> str:
        try:
            from rich.console import Console
        except ImportError:
            return self.text()
        import io

        made = io.StringIO()
        # As wide as it needs to be: a terminal wraps lines, a file does not mind.
        Console(file=made, width=200, no_color=True, force_terminal=False).print(self)
        return made.getvalue().rstrip("\n")

    __repr__ = __str__

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table

        heads, lines = self._cells()
        made = Table()
        for i, head in enumerate(heads):
            made.add_column(head, justify="left" if i == 0 else "right", no_wrap=True, style="bold" if i == 0 else None)
        for line in lines:
            made.add_row(*line)
        return Group(made, self._footer())

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        ran = self.device is not None
        heads = ["Layer", *(["Input", "Output"] if ran else []), "Parameters", *(["FLOPs"] if ran else [])]
        lines = []
        for row in self.rows:
            if row.depth > self.depth:
                continue
            title = f"{row.kind} ({row.name.rpartition('.')[2]})" if row.name else row.kind
            shapes = [_shape_text(row.input_shape), _shape_text(row.output_shape)] if ran else []
            flops = [count_text(row.flops) if row.flops else "-"] if ran else []
            lines.append(["  " * row.depth + title, *shapes, f"{row.parameters:,}" if row.parameters else "-", *flops])
        return heads, lines

    def _footer(self) -> str:
        fixed = self.total_params - self.trainable_params
        words = [
            f"Parameters: {self.total_params:,} ({self.trainable_params:,} trainable, {fixed:,} not), "
            f"{bytes_text(self.param_bytes)}; buffers: {bytes_text(self.buffer_bytes)}"
        ]
        if self.total_flops is not None:
            words.append(f"FLOPs of one call: {count_text(self.total_flops)}, counted on {self.device}")
        return "\n".join(words)


def summary(
    model: Module,
    input_size: Any = None,
    *,
    input_data: Any = None,
    dtypes: Any = None,
    depth: int = 3,
    device: Any = None,
    mode: str = "same",
) -> Summary:
    """The layers of a model with their shapes, parameters and FLOPs.

    The model runs once on the device ``meta``, on a copy that has shapes and no values, so it takes no memory and
    changes nothing. Where its ``forward`` asks for values (``.item()``, a mask that chooses rows), it runs on its own
    device instead, without recording, and its buffers and the generator's state are put back.

    Args:
        input_size: the shape of the input, batch included, or a list of shapes for several inputs. Without it and
            ``input_data`` the model is not run, and the table has no shapes.
        input_data: the inputs themselves, in the place of ``input_size``: a tensor, a tuple or list of arguments, or a
            dict of keyword arguments.
        dtypes: of the inputs of ``input_size``, one or a list; the model's own where None.
        depth: how many levels of modules the table shows; ``rows`` has all.
        device: where to run instead of ``meta``.
        mode: ``"train"`` or ``"eval"`` for the run, ``"same"`` as the model is.

    Raises ArgumentTypeError for a model that is no Module, ArgumentError for sizes and modes that make no sense.
    """
    if not isinstance(model, Module):
        raise ArgumentTypeError(f"summary: expected a Module, got {type(model).__name__}; pass the model itself")
    if mode not in ("same", "train", "eval"):
        raise ArgumentError(f"summary: expected mode 'same', 'train' or 'eval', got {mode!r}; leave it out")
    if input_size is not None and input_data is not None:
        raise ArgumentError("summary: expected input_size or input_data, got both; leave one out")
    if input_size is None and input_data is None:
        return Summary(model, _rows(model, {}, None), depth, None)
    if device is None:
        try:
            on_meta = _on_meta(model)
            return _run(on_meta, *_inputs(model, input_size, input_data, dtypes, "meta"), depth, mode, "meta")
        except (TensorcoreError, NotImplementedError, TypeError):
            # Values were asked for, or the model cannot be copied; what else is wrong shows on the model's own device.
            pass
    place = as_device(device) if device is not None else _device_of(model)
    with _kept(model):
        return _run(model, *_inputs(model, input_size, input_data, dtypes, place), depth, mode, place)


def _run(model: Module, args: Any, kwargs: Any, depth: int, mode: str, device: Any) -> Summary:
    shapes: dict[int, tuple[Any, Any]] = {}
    handles = [
        one.register_forward_hook(
            lambda module, args, kwargs, result: (
                shapes.setdefault(id(module), (_shapes([*args, *kwargs.values()]), _shapes([result]))) and None
            ),
            with_kwargs=True,
        )
        for one in model.modules()
    ]
    before = [(one, one.training) for one in model.modules()]
    if mode != "same":
        model.train(mode == "train")
    device = as_device(device)
    counter = FlopCounterMode(display=False)
    try:
        with device, no_grad(), counter:
            model(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
        for one, training in before:
            one.training = training
    return Summary(model, _rows(model, shapes, counter.get_flop_counts()), depth, device)


def _rows(model: Module, shapes: dict[int, tuple[Any, Any]], flops: dict[str, dict[str, int]] | None) -> list[Row]:
    title, rows = type(model).__name__, []
    for name, one in model.named_modules():
        parameters = sum([each.numel() for each in one.parameters() if not is_lazy(each)])
        counts = None if flops is None else sum(flops.get(f"{title}.{name}" if name else title, {}).values())
        level = name.count(".") + 1 if name else 0
        rows.append(Row(name, type(one).__name__, level, *shapes.get(id(one), (None, None)), parameters, counts))
    return rows


def _on_meta(model: Module) -> Module:
    """A copy of the model whose tensors have shapes and no values; no value is copied on the way."""
    memo: dict[int, Any] = {}

    def note(value: Any) -> None:
        if isinstance(value, Tensor) and id(value) not in memo:
            made = value.to("meta") if is_lazy(value) else _twin(value)
            memo[id(value)] = made
        elif isinstance(value, dict):
            for one in value.values():
                note(one)
        elif isinstance(value, (list, tuple)):
            for one in value:
                note(one)

    for module in model.modules():
        note(vars(module))
    # The hooks of the model are the program's: they are not called for a look at it.
    made = copy.deepcopy(model, memo)
    for module in made.modules():
        for name, value in vars(module).items():
            if name.endswith("_hooks") and "state_dict" not in name:
                for key in [key for key, hook in value.items() if not _is_of_a_layer(hook)]:
                    del value[key]
    return made


def _is_of_a_layer(hook: Any) -> bool:
    """Whether a hook is a layer's own: those of lazy layers learn shapes, those of ``weight_norm`` make the weight."""
    package = Module.__module__.partition(".")[0] + "."
    return any([str(getattr(one, "__module__", "")).startswith(package) for one in (hook, type(hook))])


def _twin(tensor: Tensor) -> Tensor:
    made = empty(tuple(tensor.shape), dtype=tensor.dtype, device="meta")
    if isinstance(tensor, Parameter):
        made = Parameter(made, requires_grad=tensor.requires_grad)
    made.__dict__.update({key: value for key, value in vars(tensor).items() if not isinstance(value, Tensor)})
    return made


def _inputs(model: Module, size: Any, data: Any, kinds: Any, device: Any) -> tuple[Any, dict[str, Any]]:
    if data is not None:
        moved = _moved(data, as_device(device))
        if isinstance(moved, dict):
            return (), moved
        return (tuple(moved) if isinstance(moved, (tuple, list)) else (moved,)), {}
    several = isinstance(size, (list, tuple)) and any([isinstance(one, (tuple, list)) for one in size])
    sizes = [tuple(one) for one in size] if several else [tuple(size)]
    for one in sizes:
        if not all([isinstance(n, int) and n >= 0 for n in one]):
            raise ArgumentError(
                f"summary: expected input_size of whole numbers, got {size!r}; pass a shape, batch included"
            )
    kinds = list(kinds) if isinstance(kinds, (list, tuple)) else [kinds] * len(sizes)
    if len(kinds) != len(sizes):
        raise ArgumentError(
            f"summary: expected a dtype for each of {len(sizes)} inputs, got {len(kinds)}; pass as many"
        )
    place = as_device(device)
    args = []
    for shape, kind in zip(sizes, kinds, strict=True):
        kind = _dtype_of(model) if kind is None else kind
        made = empty(shape, dtype=kind, device=place)
        args.append(made.zero_() if place.capabilities.values else made)  # type: ignore[attr-defined]
    return tuple(args), {}


def _moved(value: Any, device: Any) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return {key: _moved(one, device) for key, one in value.items()}
    return type(value)([_moved(one, device) for one in value]) if type(value) in (tuple, list) else value


def _dtype_of(model: Module) -> dtypes.dtype:
    floating = [one.dtype for one in model.parameters() if one.dtype.is_floating_point]
    return floating[0] if floating else dtypes.get_default_dtype()


def _device_of(model: Module) -> Any:
    return next((one.device for one in model.parameters()), as_device(None))


@contextmanager
def _kept(model: Module) -> Iterator[None]:
    """Put back what a run changes: the buffers, and where the generator stood."""
    state = get_rng_state()
    held = [(one, one.clone()) for one in model.buffers() if not is_lazy(one)]
    try:
        yield
    finally:
        set_rng_state(state)
        with no_grad():
            for one, values in held:
                one.copy_(values)  # type: ignore[attr-defined]


def _shapes(values: Sequence[Any]) -> Any:
    """The shapes of the tensors within, in order: one alone, or a list."""
    found = list(_tensor_shapes(values))
    return found[0] if len(found) == 1 else found


def _tensor_shapes(value: Any) -> Iterator[tuple[int, ...]]:
    if isinstance(value, Tensor):
        yield tuple(value.shape)
    elif isinstance(value, dict):
        yield from _tensor_shapes(list(value.values()))
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensor_shapes(one)


def _shape_text(shape: Any) -> str:
    if shape is None or shape == []:
        return "-"
    if isinstance(shape, list):
        return ", ".join(map(_shape_text, shape[:3])) + (", ..." if len(shape) > 3 else "")
    return "[" + ", ".join(map(str, shape)) + "]"
