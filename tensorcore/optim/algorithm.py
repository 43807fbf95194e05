"""Algorithm: the step that all optimizers share which move every element by a formula of its own gradient.

A formula is written once, in the operators and functions that arrays and tensors have in common. A backend with the
kernel ``step`` runs it on its own arrays, whole groups at once and in place; elsewhere, and where the step itself is
recorded, it runs on tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tensorcore import dtypes
from tensorcore.errors import ArgumentError, ArgumentTypeError, UsageError
from tensorcore.ops.creation.create import full, zeros_like
from tensorcore.ops.output import written
from tensorcore.ops.placement import host_device
from tensorcore.ops.pointwise.arithmetic import abs, sign, sqrt
from tensorcore.ops.pointwise.choice import clip, maximum, where
from tensorcore.ops.pointwise.complex import view_as_real
from tensorcore.optim.optimizer import Optimizer, closed
from tensorcore.parameter import Parameter
from tensorcore.shortcuts import before
from tensorcore.tape.mode import enable_grad, no_grad, set_grad_enabled
from tensorcore.tape.node import ACCUMULATE, Node
from tensorcore.tensor import Tensor

__all__ = [
    "Algorithm", "check_betas", "check_lr", "check_modes", "check_numbers", "check_pair", "counted", "counted_each", "note", "number",
    "plain", "recording", "scalar", "with_gradients",
]  # fmt: skip

# What a formula finds in its first argument, where its other arguments are tensors.
TENSORS = SimpleNamespace(abs=abs, clip=clip, maximum=maximum, sign=sign, sqrt=sqrt, where=where)


class Algorithm(Optimizer):
    """An optimizer whose step is a formula. A subclass writes ``begin``, ``numbers`` and ``formula``.

    Attributes:
        arrays: names of the state's tensors in the order in which the formula takes those that are there.
        decoupled: weight decay shrinks the parameter itself, instead of being added to the gradient.
    """

    arrays: tuple[str, ...] = ()
    decoupled = False

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """Whether ``step`` itself divides gradients by ``grad_scale`` and heeds ``found_inf``: asked by GradScaler."""
        return bool(self.defaults.get("fused"))

    def begin(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter before its first step, beside the count of its steps."""
        return {name: zeros_like(param) for name in self.arrays}

    def numbers(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        """What the formula takes by keyword in this step; may note numbers in the state."""
        raise NotImplementedError

    @staticmethod
    def formula(xp: Any, p: Any, g: Any, *state: Any, **numbers: Any) -> None:
        """One step of the parameter ``p`` along its gradient ``g``, in place: ``p`` and ``state`` are written.

        Args:
            xp: where ``abs``, ``clip``, ``maximum``, ``sign``, ``sqrt`` and ``where`` are found.
        """
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once; ``closure`` computes the loss anew and returns it."""
        loss = closed(closure)
        for group in self.param_groups:
            for (device, _, array), (params, gradients) in with_gradients(group).items():
                _check_capture(self, device, group)
                sparse = array is not device.array and hasattr(type(gradients[0]), "instead")
                counts_there = self.on_device(device, group)
                if (sparse or not counts_there) and not self._proceeds(params):
                    continue
                if sparse:
                    for one in params:
                        self.sparse(one, one.grad.coalesce(), self.state_of(one, group), group)
                    continue
                states = self.states_of(params, group)
                # The counts of these groups are tensors on the device, which no kernel but those of ``on_device`` takes.
                counts = (group.get("capturable") or group.get("fused")) and not device.capabilities.host
                composed = group.get("differentiable") or (counts and not counts_there)
                if composed or not self.fused(device, params, gradients, states, group):
                    for one, state in zip(params, states, strict=True):
                        self._composed(one, state, group)
        return loss

    def on_device(self, device: Any, group: dict[str, Any]) -> bool:
        """Whether ``fused`` counts the steps, and heeds a GradScaler, on the device without waiting for it."""
        return False

    def scaling(self, device: Any) -> tuple[Any, Any]:
        """What a GradScaler multiplied the gradients by, and what is not 0 where one is not finite; None without."""
        given = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        scale, found = [None if one is None else one.to(device, dtypes.float32).native for one in given]
        return scale, found

    def _proceeds(self, params: list[Tensor]) -> bool:
        """Whether a GradScaler lets a step happen, whose gradients are as they should be then."""
        scale, found = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        if found is not None and found.item():
            return False
        if scale is not None:
            with no_grad():
                for one in params:
                    one.grad.div_(scale.to(one.device))  # type: ignore[union-attr]
        return True

    def sparse(self, param: Tensor, gradient: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """The step along a sparse gradient, its indices in order; most algorithms have none."""
        name = type(self).__name__
        raise UsageError(f"{name} does not support sparse gradients, please consider SparseAdam instead, got one")

    def fused(
        self,
        device: Any,
        params: list[Tensor],
        gradients: list[Any],
        states: list[dict[str, Any]],
        group: dict[str, Any],
    ) -> bool:
        """The step of all the group's parameters on one device in one kernel; False where the backend has none."""
        kernel = device.kernels["step"]
        if not kernel:
            return False
        options = plain(group)
        numbers = [self._numbers(one, state, options) for one, state in zip(params, states, strict=True)]
        tensors = [[*pair, *self._tensors(state)] for *pair, state in zip(params, gradients, states, strict=True)]
        kernel(_directed(self.formula), [[one.native for one in some] for some in tensors], numbers)
        for one, _, *held in tensors:
            written(one, *held)
        return True

    def _composed(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """The same in tensor operations."""
        differentiable = group.get("differentiable")
        with recording(group):
            # A length that is a tensor is read by no step that is counted on the device: a graph replays it as it is then.
            held_there = group.get("capturable") and not param.device.capabilities.host
            numbers = self._numbers(param, state, group if differentiable or held_there else plain(group))
            held = {name: state[name] for name in self.arrays if state.get(name) is not None}
            if differentiable:
                # A walk needs what this step read: the next one writes to copies.
                held = {name: one.clone() for name, one in held.items()}
                state.update(held)
            tensors = [param, param.grad, *held.values()]
            if param.dtype.is_complex:
                tensors = [view_as_real(one) for one in tensors]
            _directed(self.formula)(TENSORS, *tensors, **numbers)

    def _numbers(self, param: Tensor, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        return {
            "maximize": group["maximize"],
            "weight_decay": group.get("weight_decay", 0),
            "decoupled": group.get("decoupled_weight_decay", self.decoupled),
            **self.numbers(param, state, group),
        }

    def _tensors(self, state: dict[str, Any]) -> list[Tensor]:
        return [state[name] for name in self.arrays if state.get(name) is not None]

    def states_of(self, params: list[Tensor], group: dict[str, Any]) -> list[dict[str, Any]]:
        """The states of parameters of a group."""
        states = [*map(self.state.get, params)]
        # From the second step on all of them have begun.
        return states if all(states) else [self.state_of(one, group) for one in params]  # type: ignore[return-value]

    def state_of(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter, which begins with its first step."""
        state: dict[str, Any] = self.state[param]
        if not state:
            if group.get("fused"):
                check_fused(param)
            state["step"] = scalar(0.0, param, group)
            state.update(self.begin(param, group))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for one in group["params"]:
                held = self.state.get(one)
                # Files of long ago count in numbers.
                if held and "step" in held and not isinstance(held["step"], Tensor):
                    held["step"] = scalar(float(held["step"]), one, group)


def _directed(formula: Callable[..., None]) -> Callable[..., None]:
    """``formula`` of the gradient to descend along: turned round to maximize, with weight decay."""

    def run(
        xp: Any, p: Any, g: Any, *state: Any, maximize: bool, weight_decay: Any, decoupled: bool, **numbers: Any
    ) -> None:
        if maximize:
            g = -g
        if weight_decay and decoupled:
            p *= 1 - numbers["lr"] * weight_decay
        elif weight_decay:
            g = g + weight_decay * p
        formula(xp, p, g, *state, **numbers)

    return run


def _check_capture(optimizer: Algorithm, device: Any, group: dict[str, Any]) -> None:
    """Raise for counts on the host in a graph: replays would not move them on."""
    if device.capabilities.graphs and group.get("capturable") is False and device.capturing():
        raise UsageError(
            f"Attempting CUDA graph capture of step() for an instance of {type(optimizer).__name__} but param_groups' "
            f"capturable is False, got a capture; pass capturable=True"
        )


def scalar(value: float, param: Tensor, group: dict[str, Any]) -> Tensor:
    """A number in the state of a parameter: a tensor, as in PyTorch, and on the host, where reading it waits for nobody.

    Where a group is ``capturable`` or ``fused`` it is on the parameter's device.
    """
    there = group.get("capturable") or group.get("fused")
    dtype = dtypes.float32 if group.get("fused") or dtypes.get_default_dtype() is not dtypes.float64 else dtypes.float64
    return full((), value, dtype=dtype, device=param.device if there else host_device())


def note(held: Tensor, value: float) -> None:
    """Write a number into a state's scalar."""
    # Straight through the kernel: it is no view and on no tape, and fill_ would look for both (5 us).
    held.device.kernels["fill"](held.native, value)
    written(held)


def counted(state: dict[str, Any]) -> Any:
    """The number of steps with this one, which is noted: a tensor where the count is on a device, which is not read."""
    if not state["step"].device.capabilities.host:
        with no_grad():
            return state["step"].add_(1)
    count: float = state["step"].item() + 1.0
    note(state["step"], count)
    return count


def counted_each(states: list[dict[str, Any]]) -> list[Any]:
    """``counted`` of each state: half of the time where the counts lie on the host."""
    device = states[0]["step"].device
    if not device.capabilities.host or any([one["step"].device is not device for one in states]):
        return [counted(one) for one in states]
    fill, to_host = device.kernels["fill"], device.to_host
    held = [one["step"] for one in states]
    counts = [to_host(one.native).item() + 1.0 for one in held]
    for one, count in zip(held, counts, strict=True):
        fill(one.native, count)
    written(*held)
    return counts


def recording(group: dict[str, Any]) -> set_grad_enabled | no_grad:
    """The mode that a group's update runs in: off the tape, unless it shall be differentiated itself."""
    return enable_grad() if group.get("differentiable") else no_grad()


@before("with_gradients", ACCUMULATE, Parameter)
def with_gradients(group: dict[str, Any]) -> dict[tuple[Any, Any, Any], tuple[list[Tensor], list[Any]]]:
    """The group's parameters that have a gradient, and these, by device, dtype and the kind of the gradient's array."""
    found: dict[tuple[Any, Any, Any], tuple[list[Tensor], list[Any]]] = {}
    device = dtype = array = None
    params: list[Tensor] = []
    gradients: list[Any] = []
    for one in group["params"]:
        node = one.node
        grad = node.grad if type(node) is Node and node.op is ACCUMULATE else one.grad  # two frames fewer
        if grad is None:
            continue
        kind = type(grad.native)
        if one.device is not device or one.dtype is not dtype or kind is not array:  # most are like the one before
            device, dtype, array = one.device, one.dtype, kind
            params, gradients = found.setdefault((device, dtype, array), ([], []))
        params.append(one)
        gradients.append(grad)
    return found


def number(value: Any) -> Any:
    """An option that may be a tensor of one element, as a Python number."""
    return value.item() if isinstance(value, Tensor) else value


def plain(group: dict[str, Any]) -> dict[str, Any]:
    """A group's options with numbers for those that are tensors."""
    return {key: number(value) for key, value in group.items()}


def check_lr(lr: Any, text: str = "Invalid learning rate") -> None:
    """Raise for a learning rate that no optimizer takes."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ArgumentError("Tensor lr must be 1-element, got more; pass a float")
    if not _numeric("lr", lr) >= 0.0:
        raise ArgumentError(f"{text}: {lr}; expected at least 0")


def check_numbers(**options: Any) -> None:
    """Raise for options below 0."""
    for name, value in options.items():
        if not _numeric(name, value) >= 0.0:
            raise ArgumentError(f"Invalid {name} value: {value}; expected at least 0")


def check_betas(betas: tuple[Any, Any]) -> None:
    """Raise for means that never move, or that run away."""
    check_pair("betas", betas)
    for i, beta in enumerate(betas):
        if not 0.0 <= _numeric(f"betas[{i}]", beta) < 1.0:
            raise ArgumentError(f"Invalid beta parameter at index {i}: {beta}; expected 0 <= beta < 1")


def check_pair(name: str, pair: Any) -> None:
    """Raise for what is not two numbers where an option is."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ArgumentTypeError(f"{name}: expected two numbers, got {pair!r}; pass a tuple such as (0.9, 0.999)")


def _numeric(name: str, value: Any) -> Any:
    if not hasattr(value, "__float__"):
        raise ArgumentTypeError(f"{name}: expected a number, got {value!r}; pass a float")
    return value


def check_modes(foreach: Any, differentiable: bool, fused: Any) -> None:
    """Raise for ways to compute a step that exclude one another."""
    if fused and differentiable:
        raise UsageError("`fused` does not support `differentiable`, got both; pass one")
    if fused and foreach:
        raise UsageError("`fused` and `foreach` cannot be `True` together, got both; pass one")


def check_fused(param: Tensor) -> None:
    """Raise for a parameter that a group with ``fused=True`` does not take."""
    if not param.dtype.is_floating_point:
        raise UsageError(
            f"`fused=True` requires all the params to be floating point Tensors of supported devices, got {param.dtype} "
            f"on {param.device}; leave fused out"
        )
