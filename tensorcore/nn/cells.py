"""Recurrent cells: one step of an RNN, an LSTM or a GRU."""

from __future__ import annotations

import math
from typing import Any

from tensorcore.errors import ArgumentError, UsageError
from tensorcore.nn import init
from tensorcore.nn.module import Module
from tensorcore.nn.parameter import Parameter
from tensorcore.ops.creation.create import empty, zeros
from tensorcore.ops.layers import recurrent as ops
from tensorcore.tensor import Tensor

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """What the cells share.

    Args:
        input_size, hidden_size: features of the input and of the state.
        bias: whether the gates have biases.
        num_chunks: the number of gates.
    """

    bias_ih: Tensor | None
    bias_hh: Tensor | None
    weight_ih: Tensor
    weight_hh: Tensor

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(empty(rows, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(empty(rows, hidden_size, device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew, uniformly within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for one in self.parameters():
            init.uniform_(one, -bound, bound)

    def _batched(self, input: Any, states: Any, count: int) -> tuple[Any, list[Any]]:
        """The input and the states with a batch dim; zeros for states that are not given."""
        name = self._get_name()
        if input.dim() not in (1, 2):
            raise ArgumentError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for i, one in enumerate(states or ()):
            if one.dim() not in (1, 2):
                which = "hidden" if count == 1 else f"hx[{i}]"
                raise ArgumentError(f"{name}: Expected {which} to be 1D or 2D, got {one.dim()}D instead")
        rows = input if input.dim() == 2 else input.unsqueeze(0)
        if states is None:
            shape = rows.shape[0], self.hidden_size
            return rows, [zeros(*shape, dtype=rows.dtype, device=input.device) for _ in range(count)]
        return rows, [one if input.dim() == 2 else one.unsqueeze(0) for one in states]

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"


class RNNCell(RNNCellBase):
    """One step of Elman's network; ``nonlinearity`` is "tanh" or "relu"."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state, from (batch, features) or (features) and the last one, zeros where None."""
        rows, states = self._batched(input, None if hx is None else [hx], 1)
        if self.nonlinearity not in ("tanh", "relu"):
            raise UsageError(f"Unknown nonlinearity: {self.nonlinearity}, expected tanh or relu")
        cell = ops.rnn_tanh_cell if self.nonlinearity == "tanh" else ops.rnn_relu_cell
        made = cell(rows, states[0], *self._weights())
        return made if input.dim() == 2 else made.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of an LSTM."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The next state and cell, from (batch, features) or (features) and the last ones, zeros where None."""
        rows, states = self._batched(input, hx, 2)
        made = ops.lstm_cell(rows, states, *self._weights())
        return made if input.dim() == 2 else tuple([one.squeeze(0) for one in made])  # type: ignore[return-value, attr-defined]


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state, from (batch, features) or (features) and the last one, zeros where None."""
        rows, states = self._batched(input, None if hx is None else [hx], 1)
        made = ops.gru_cell(rows, states[0], *self._weights())
        return made if input.dim() == 2 else made.squeeze(0)  # type: ignore[attr-defined]
