"""DataParallel: one process, a copy of the module on each of several devices for each forward."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from tensorcore.amp.state import again, regions
from tensorcore.backend.registry import device as find_device
from tensorcore.errors import ArgumentError
from tensorcore.nn.module import Module
from tensorcore.ops.shapes.join import cat
from tensorcore.tape.mode import mode, set_grad_enabled
from tensorcore.tensor import Tensor

__all__ = ["DataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]


class DataParallel(Module):
    """A module whose batches are split over devices, and whose results are joined on one.

    Gradients flow through the copies to the parameters of ``module``. Buffers that a copy writes are kept of the first
    device alone.

    Args:
        module: on the first device.
        device_ids: numbers of accelerators, or devices; without accelerators None leaves the module as it is.
        output_device: where the results are joined: the first where None.
        dim: of inputs and results, that counts the batch.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module, self.dim = module, dim
        if device_ids is None:
            import tensorcore.cuda as accelerators

            count = getattr(accelerators, "device_count", int)()
            device_ids = list(range(count))
        self.device_ids = [_device(one) for one in device_ids]
        self.output_device = _device(output_device) if output_device is not None else next(iter(self.device_ids), None)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module's result on the whole batch."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        return _run(self.module, inputs, kwargs, self.device_ids, self.output_device, self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """What ``DataParallel(module, ...)`` gives for these inputs."""
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*given, **(module_kwargs or {}))


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """Copies of a module, one on each device, whose gradients flow to the module's parameters unless ``detach``."""
    return [_copy(network, _device(one), detach) for one in devices]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> tuple[Any, ...]:
    """What each device gets: tensors in chunks along ``dim``, everything else as it is."""
    return tuple(_scatter(inputs, [_device(one) for one in target_gpus], dim))


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Any = None,
) -> list[Any]:
    """What each module gives for its input, a tuple of arguments or the only one, all of them at once in threads.

    ``devices`` is accepted: a module computes where its tensors are. The first exception of a module is raised here.
    """
    if len(modules) != len(inputs):
        raise AssertionError(  # as in PyTorch
            f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}; pass one for each"
        )
    options = kwargs_tup or [{}] * len(modules)
    results: list[Any] = [None] * len(modules)
    errors: list[BaseException] = []
    recording, casting = mode.enabled, regions()

    def act(i: int) -> None:
        given = inputs[i] if isinstance(inputs[i], list | tuple) else (inputs[i],)
        try:
            with set_grad_enabled(recording), again(casting):
                results[i] = modules[i](*given, **options[i])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=act, args=(i,)) for i in range(1, len(modules))]
    for one in threads:
        one.start()
    act(0)
    for one in threads:
        one.join()
    if errors:
        raise errors[0]
    return results


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The results of several devices as one on ``target_device``, joined along ``dim``."""
    return _gather(list(outputs), _device(target_device), dim)


def _run(module: Module, inputs: Any, kwargs: Any, devices: Sequence[Any], output: Any, dim: int) -> Any:
    for one in [*module.parameters(), *module.buffers()]:
        if one.device is not devices[0]:
            raise ArgumentError(
                f"module must have its parameters and buffers on device {_name(devices[0])} (device_ids[0]) but found one of "
                f"them on device: {_name(one.device)}"
            )
    parts = _scatter((inputs, kwargs), devices, dim)
    if len(parts) == 1:
        return module(*parts[0][0], **parts[0][1])
    copies = [module, *replicate(module, devices[1 : len(parts)])]
    return _gather(parallel_apply(copies, [given for given, _ in parts], [named for _, named in parts]), output, dim)


def _name(device: Any) -> str:
    return f"{device.type}:{device.index or 0}"


def _copy(module: Module, device: Any, detach: bool = False) -> Module:
    """The module with its tensors on another device, recorded, and without registering anything."""

    def moved(one: Any) -> Any:
        return None if one is None else one.detach().to(device) if detach else one.to(device)

    made = object.__new__(type(module))
    made.__dict__.update(module.__dict__)
    made.__dict__["_parameters"] = {name: moved(one) for name, one in module._parameters.items()}
    made.__dict__["_buffers"] = {name: moved(one) for name, one in module._buffers.items()}
    made.__dict__["_modules"] = {
        name: None if one is None else _copy(one, device, detach) for name, one in module._modules.items()
    }
    return made


def _scatter(value: Any, devices: Sequence[Any], dim: int) -> list[Any]:
    """One value for each device: tensors in chunks, everything else as it is."""
    if isinstance(value, Tensor):
        return [chunk.to(device) for chunk, device in zip(value.chunk(len(devices), dim), devices, strict=False)]  # type: ignore[attr-defined]
    if isinstance(value, dict):
        columns = {name: _scatter(one, devices, dim) for name, one in value.items()}
        return [{name: column[i] for name, column in columns.items()} for i in range(_count(columns.values(), devices))]
    if isinstance(value, tuple | list):
        rows = [_scatter(one, devices, dim) for one in value]
        return [_like(value, [row[i] for row in rows]) for i in range(_count(rows, devices))]
    return [value] * len(devices)


def _like(value: Any, items: list[Any]) -> Any:
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def _count(columns: Any, devices: Sequence[Any]) -> int:
    return min((len(one) for one in columns), default=len(devices))


def _gather(results: list[Any], device: Any, dim: int) -> Any:
    first = results[0]
    if isinstance(first, Tensor):
        return cat([one.to(device).reshape(1) if not one.shape else one.to(device) for one in results], dim)
    if isinstance(first, dict):
        return {name: _gather([one[name] for one in results], device, dim) for name in first}
    if isinstance(first, tuple | list):
        return _like(first, [_gather([one[i] for one in results], device, dim) for i in range(len(first))])
    return first


def _device(given: Any) -> Any:
    return find_device(f"cuda:{given}" if isinstance(given, int) else given)
