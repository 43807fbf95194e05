"""Recurrent layers over whole sequences: RNN, LSTM and GRU."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

from tensorcore.errors import ArgumentError, ArgumentTypeError, ShapeError
from tensorcore.nn import init
from tensorcore.nn.module import Module
from tensorcore.nn.parameter import Parameter
from tensorcore.nn.utils.rnn import PackedSequence
from tensorcore.ops.creation.create import empty, zeros
from tensorcore.ops.layers import recurrent as ops
from tensorcore.tensor import Tensor

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_OPS = {"LSTM": ops.lstm, "GRU": ops.gru, "RNN_TANH": ops.rnn_tanh, "RNN_RELU": ops.rnn_relu}


class RNNBase(Module):
    """What the recurrent layers share.

    Args:
        input_size: features of each step of the input.
        hidden_size: of the state.
        num_layers: how many layers lie one on the other.
        bias: whether the gates have biases.
        batch_first: inputs and outputs are (batch, steps, features), instead of (steps, batch, features).
        dropout: of the outputs of every layer but the last, in training.
        bidirectional: a second set of layers reads each sequence from its end; the outputs lie side by side.
        proj_size: of an LSTM, the size that its states are projected to; 0 for none.
    """

    mode: str
    input_size: int
    hidden_size: int

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:  # type: ignore[operator]
            raise ArgumentError(
                f"dropout should be a number in range [0, 1] representing the probability of an element being zeroed, "
                f"got {dropout!r}"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                f"dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        if not isinstance(hidden_size, int):
            raise ArgumentTypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if size <= 0:
                raise ArgumentError(f"{name} must be greater than zero, got {size}")
        if not 0 <= proj_size < hidden_size:
            raise ArgumentError(f"proj_size has to be a positive integer smaller than hidden_size, got {proj_size}")
        if mode not in _GATES:
            raise ArgumentError(f"Unrecognized RNN mode: {mode}, expected one of {sorted(_GATES)}")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        directions = 2 if bidirectional else 1
        rows, size = _GATES[mode] * hidden_size, proj_size or hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            width = size * directions if layer else input_size
            for suffix in ("", "_reverse")[:directions]:
                shapes = {"weight_ih": (rows, width), "weight_hh": (rows, size)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}  # type: ignore[dict-item]
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    made = Parameter(empty(*shape, device=device, dtype=dtype))
                    self.register_parameter(f"{name}_l{layer}{suffix}", made)
                self._all_weights.append([f"{name}_l{layer}{suffix}" for name in shapes])
        self.reset_parameters()

    @property
    def _flat_weights(self) -> list[Tensor]:
        own = self._parameters
        return [own[name] if name in own else getattr(self, name) for names in self._all_weights for name in names]

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Kept for programs that call it: the kernels take the weights from wherever they lie."""

    def reset_parameters(self) -> None:
        """Draw all weights anew, uniformly within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for one in self.parameters():
            init.uniform_(one, -bound, bound)

    def _sizes(self) -> tuple[int, ...]:
        """The last dim of the state, and of an LSTM of the cell."""
        size = self.proj_size or self.hidden_size
        return (size, self.hidden_size) if self.mode == "LSTM" else (size,)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The state after each step, and the last one of each layer and direction.

        Args:
            input: (steps, batch, features), or as ``batch_first`` says, or one sequence (steps, features), or a
                PackedSequence.
            hx: the first state, (layers * directions, batch, size); of an LSTM state and cell. Zeros where None.
        """
        weights = self._flat_weights
        count = self.num_layers * (2 if self.bidirectional else 1)
        packed, single, order = isinstance(input, PackedSequence), False, None
        data = input.data if packed else input
        if not packed:
            if data.dim() not in (2, 3):
                raise ArgumentError(
                    f"{self._get_name()}: Expected input to be 2D or 3D, got {data.dim()}D instead; unsqueeze the batch"
                )
            single = data.dim() == 2
            if single:
                data = data.unsqueeze(0 if self.batch_first else 1)
            batch = data.shape[0 if self.batch_first else 1]
        else:
            order, batch = input.sorted_indices, int(input.batch_sizes[0])
        self._check_input(data, weights[0])
        if hx is None:
            sizes = self._sizes()
            first = zeros(count, batch, sizes[0], dtype=data.dtype, device=data.device)
            states = tuple([  # nobody writes to them: one is enough for both where they are alike
                first if size == sizes[0] else zeros(count, batch, size, dtype=data.dtype, device=data.device)
                for size in sizes
            ])  # fmt: skip
        else:
            states = self._states(hx, single, count, batch)
            if order is not None:
                states = tuple([one.index_select(1, order) for one in states])
        given = states if self.mode == "LSTM" else states[0]
        rest = (weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if packed:
            made, *last = self._run(data, input.batch_sizes, given, *rest)
            if order is not None:
                last = [one.index_select(1, input.unsorted_indices) for one in last]
            made = PackedSequence(made, input.batch_sizes, order, input.unsorted_indices)
        else:
            made, *last = self._run(data, given, *rest, self.batch_first)
            if single:
                made = made.squeeze(0 if self.batch_first else 1)
                last = [one.squeeze(1) for one in last]
        return made, tuple(last) if self.mode == "LSTM" else last[0]

    def _run(self, *args: Any) -> Any:
        return _OPS[self.mode](*args)

    def _check_input(self, data: Any, weight: Any) -> None:
        if data.dtype is not weight.dtype:
            from tensorcore.amp.state import is_autocast_enabled

            if not is_autocast_enabled(data.device.type):
                raise ArgumentError(
                    f"input must have the type {weight.dtype}, got type {data.dtype}; convert one of them"
                )
        if data.shape[-1] != self.input_size:
            raise ShapeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {data.shape[-1]}"
            )

    def _states(self, hx: Any, single: bool, count: int, batch: int) -> tuple[Any, ...]:
        states = tuple(hx) if self.mode == "LSTM" else (hx,)
        wanted = 2 if single else 3
        if any(one.dim() != wanted for one in states):
            names = "hx and cx" if self.mode == "LSTM" else "hx"
            got = ", ".join(f"{one.dim()}-D" for one in states)
            raise ShapeError(
                f"For {'unbatched 2-D' if single else 'batched 3-D'} input, {names} should also be {wanted}-D but got "
                f"({got}) tensors"
            )
        if single:
            states = tuple([one.unsqueeze(1) for one in states])
        for i, (one, size) in enumerate(zip(states, self._sizes(), strict=True)):
            if tuple(one.shape) != (count, batch, size):
                which = f"hidden[{i}]" if len(states) > 1 else "hidden"
                raise ShapeError(f"Expected {which} size {(count, batch, size)}, got {list(one.shape)}")
        return states

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = dict(proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False)
        return text + "".join(
            f", {name}={getattr(self, name)}" for name, value in defaults.items() if getattr(self, name) != value
        )


class RNN(RNNBase):
    """Elman's network: ``tanh`` or ``relu`` of the input's and the last state's linear maps.

    Args:
        nonlinearity: "tanh" or "relu"; fourth, before ``bias``.
        args, kwargs: as RNNBase.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ArgumentError(
                f"proj_size argument is only supported for LSTM, not RNN or GRU, got {kwargs['proj_size']}"
            )
        if len(args) > 3:
            args, nonlinearity = args[:3] + args[4:], args[3]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, Neural Computation 1997); arguments as RNNBase."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., EMNLP 2014); arguments as RNNBase, without ``proj_size``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ArgumentError(
                f"proj_size argument is only supported for LSTM, not RNN or GRU, got {kwargs['proj_size']}"
            )
        super().__init__("GRU", *args, **kwargs)
