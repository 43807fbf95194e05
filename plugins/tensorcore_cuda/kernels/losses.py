"""Mean squared error and binary cross entropy with logits, both ways: one pass over the elements, then one over the sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensorcore_cuda.kernels.launch import C_TYPES, WIDE, Driver
from tensorcore_cuda.kernels.pointwise import Body, Pointwise
from tensorcore_cuda.kernels.reduce import Reducer

__all__ = ["kernels"]

Native = Any
Run = Callable[..., Any]

_SQUARE = "const W away = a - b; y0 = away * away;"
_SQUARE_BACK = "y0 = (a - b) * c * W(n0);"
# With t the target: max(a, 0) - a t + log(1 + exp(-|a|)), the last two weighted where there is a pos_weight.
_ENTROPY = "y0 = ((W(1) - b) * a + (W(1) + (P - W(1)) * b) * (log1p(exp(-absolute(a))) + larger_of(-a, W(0))))"
_ENTROPY_BACK = "y0 = ((P * b + W(1) - b) * sigmoid(a) - P * b) * c * W(n0)"


def kernels(driver: Driver, table: Mapping[str, Run]) -> dict[str, Run]:
    """The family's kernels; what they do not take goes to the table's."""
    pointwise, reduce, empty = Pointwise(driver), Reducer(driver), driver.empty

    def takes(x: Native, *others: Any) -> bool:
        return x.dtype in WIDE and all([one is None or one.dtype == x.dtype for one in others])

    def mapped(text: str, arrays: list[Native], numbers: list[float], shape: tuple[int, ...], dtype: Any) -> Native:
        """An elementwise body over arrays ``a``, ``b`` ..., of which the first is the input."""
        kind = C_TYPES[arrays[0].dtype]
        names = " ".join([f"const W {letter} = x{i};" for i, letter in enumerate("abcdef"[: len(arrays)])])
        number = "double" if kind == "double" else "float"
        body = Body(
            tuple([C_TYPES[one.dtype] for one in arrays]), (number,) * len(numbers), (C_TYPES[dtype],),
            f"typedef wide<{kind}> W; {names} {text}",
        )  # fmt: skip
        made = empty(shape, dtype)
        pointwise.run(body, shape, arrays, numbers, [made])
        return made

    def finished(text: str, arrays: list[Native], reduction: str) -> Native:
        x = arrays[0]
        shape = np.broadcast_shapes(*[one.shape for one in arrays])
        if reduction == "none":
            return mapped(text, arrays, [], shape, x.dtype)
        each = mapped(text, arrays, [], shape, WIDE[x.dtype])
        return reduce("mean_of" if reduction == "mean" else "sum_of", each, None, False, x.dtype)

    def mse_loss(x: Native, target: Native, *, reduction: str) -> Native:
        if not takes(x, target):
            return table["mse_loss"](x, target, reduction=reduction)
        return finished(_SQUARE, [x, target], reduction)

    def mse_loss_backward(g: Native, x: Native, target: Native, *, needs: Any, reduction: str) -> Any:
        if not takes(x, target, g) or x.shape != target.shape:
            return table["mse_loss_backward"](g, x, target, needs=needs, reduction=reduction)
        factor = 2.0 / x.size if reduction == "mean" and x.size else 2.0
        return tuple(
            mapped(_SQUARE_BACK, [x, target, g], [sign * factor], x.shape, x.dtype) if need else None
            for need, sign in zip(needs, (1.0, -1.0), strict=True)
        )

    def entropy(text: str, arrays: list[Native], weight: Any, pos_weight: Any) -> str:
        """The text for the weights there are, whose arrays are appended."""
        if pos_weight is not None:
            arrays.append(pos_weight)
        text = text.replace("P", "W(1)" if pos_weight is None else "abcdef"[len(arrays) - 1])
        if weight is not None:
            arrays.append(weight)
            text += f" * {'abcdef'[len(arrays) - 1]}"
        return f"{text};"

    def binary_cross_entropy_with_logits(
        x: Native, target: Native, weight: Any, pos_weight: Any, *, reduction: str
    ) -> Native:
        if not takes(x, target, weight, pos_weight):
            return table["binary_cross_entropy_with_logits"](x, target, weight, pos_weight, reduction=reduction)
        arrays = [x, target]
        text = entropy(_ENTROPY, arrays, weight, pos_weight)
        return finished(text, arrays, reduction)

    def binary_cross_entropy_with_logits_backward(
        g: Native, x: Native, target: Native, weight: Any, pos_weight: Any, *, needs: Any, reduction: str
    ) -> Any:
        if any(needs[1:]) or not takes(x, target, g, weight, pos_weight):
            return table["binary_cross_entropy_with_logits_backward"](
                g, x, target, weight, pos_weight, needs=needs, reduction=reduction
            )
        arrays = [x, target, g]
        text = entropy(_ENTROPY_BACK, arrays, weight, pos_weight)
        factor = 1.0 / x.size if reduction == "mean" and x.size else 1.0
        return mapped(text, arrays, [factor], x.shape, x.dtype), None, None, None

    return {function.__name__: function for function in (
        mse_loss, mse_loss_backward, binary_cross_entropy_with_logits, binary_cross_entropy_with_logits_backward,
    )}  # fmt: skip
