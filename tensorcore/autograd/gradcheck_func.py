"""What ``gradcheck`` asks of forward mode and of vmap: their Jacobians against differences, and against a loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorcore.autograd.differences import GradcheckError, host_of, name_of, outputs_of, reals, units_of
from tensorcore.autograd.walks import grad, stack
from tensorcore.func.transforms import Linearized
from tensorcore.func.vmapping import vmap
from tensorcore.tensor import Tensor

__all__ = ["check_batched", "check_batched_forward", "check_forward"]


def check_forward(
    func: Any, values: Any, checked: list[int], numerical: list[list[np.ndarray]], rtol: float, atol: float
) -> None:
    """Compare the tangents for each element of each input with the differences."""
    line = _line(func, values, checked)
    for k, i in enumerate(checked):
        rows = [
            [reals(host_of(one)) for one in line(_directions(values, checked, k, unit))] for unit in units_of(values[i])
        ]
        for o in range(len(line.flat)):
            mine = np.stack([row[o] for row in rows], 0) if rows else np.zeros_like(numerical[o][k])
            if not np.allclose(mine, numerical[o][k], rtol=rtol, atol=atol):
                raise GradcheckError(
                    f"gradcheck: Jacobian computed with forward mode mismatch for output {o} of {name_of(func)} with respect to "
                    f"input {i},\nnumerical:\n{numerical[o][k]}\nanalytical:\n{mine}\n(rows are elements of the input, "
                    f"columns of the output); correct the jvp, got this one"
                )


def check_batched_forward(func: Any, values: Any, checked: list[int]) -> None:
    """Compare the tangents in all directions of an input at once with those in each of them."""
    line = _line(func, values, checked)
    for k, i in enumerate(checked):
        units = units_of(values[i])
        if not units:
            continue

        def at_once(unit: Tensor, k: int = k) -> tuple[Tensor, ...]:
            return tuple(line(_directions(values, checked, k, unit)))

        together = vmap(at_once)(stack(units))
        for o in range(len(line.flat)):
            one_by_one = np.stack([host_of(at_once(unit)[o]) for unit in units])
            _same("check_batched_forward_grad", func, host_of(together[o]), one_by_one, o, i)


def check_batched(func: Any, values: Any, checked: list[int]) -> None:
    """Compare the gradients for all units of an output at once with those for each of them."""
    outputs = outputs_of(func, values)
    targets = [values[i] for i in checked]
    for o, output in enumerate(outputs):
        units = units_of(output)
        if output.node is None or not units:
            continue
        together = grad(output, targets, stack(units), retain_graph=True, allow_unused=True, is_grads_batched=True)
        rows = [grad(output, targets, unit, retain_graph=True, allow_unused=True) for unit in units]
        for k, i in enumerate(checked):
            found, parts = together[k], [row[k] for row in rows]
            if found is not None:
                one_by_one = np.stack([np.zeros(found.shape[1:]) if one is None else host_of(one) for one in parts])
                _same("check_batched_grad", func, host_of(found), one_by_one, o, i)


def _line(func: Any, values: Any, checked: list[int]) -> Linearized:
    def call(twins: Any) -> list[Any]:
        given = list(values)
        for i, one in zip(checked, twins, strict=True):
            given[i] = one
        return given

    return Linearized("gradcheck", lambda *given: tuple(outputs_of(func, given)), [values[i] for i in checked], call)


def _directions(values: Any, checked: list[int], k: int, unit: Tensor) -> list[Tensor]:
    """The unit for one of the checked inputs, and zeros for the others."""
    return [unit if j == k else values[i].detach() * 0 for j, i in enumerate(checked)]


def _same(check: str, func: Any, together: np.ndarray, one_by_one: np.ndarray, o: int, i: int) -> None:
    if not np.allclose(together, one_by_one, equal_nan=True):
        raise GradcheckError(
            f"gradcheck: {check}: expected the same for output {o} of {name_of(func)} and input {i} by vmap as one by one, got\n"
            f"{together}\nand\n{one_by_one}\nTesting if batched gradient computation is correct failed; write the function "
            f"in tensor operations that vmap knows"
        )
