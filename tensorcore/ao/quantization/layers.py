"""Layers with packed weights: Linear, Embedding, LSTM and GRU."""

from __future__ import annotations

from typing import Any

from tensorcore.ao.quantization.weights import Packed, QConfig, default_dynamic_qconfig
from tensorcore.errors import ArgumentError, ArgumentTypeError, ShapeError
from tensorcore.nn.containers import ModuleList
from tensorcore.nn.embedding import Embedding as FloatEmbedding
from tensorcore.nn.linear import Linear as FloatLinear
from tensorcore.nn.module import Module
from tensorcore.nn.recurrent import GRU as FloatGRU
from tensorcore.nn.recurrent import LSTM as FloatLSTM
from tensorcore.nn.recurrent import RNNBase
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.tape.mode import no_grad

__all__ = [
    "DYNAMIC", "GRU", "LSTM", "WEIGHT_ONLY", "Embedding", "Linear", "WeightOnlyGRU", "WeightOnlyLSTM", "WeightOnlyLinear",
]  # fmt: skip


class Linear(Module):
    """A linear layer with an int8 weight, which quantises its input at each call; made by :meth:`from_float`.

    Results require no gradient. Devices without a product of int8 compute the same numbers in float32.
    """

    rounds = True
    title = "DynamicQuantizedLinear"

    def __init__(self, packed: Packed) -> None:
        super().__init__()
        self.packed = packed
        self.out_features, self.in_features = packed.data.shape

    @classmethod
    def from_float(cls, mod: FloatLinear, qconfig: QConfig = default_dynamic_qconfig) -> Linear:
        """The layer with the weights of a trained one."""
        if not isinstance(mod, FloatLinear):
            raise ArgumentTypeError(f"from_float: expected a Linear, got {type(mod).__name__}; pass the trained layer")
        made = cls(Packed(mod.weight, mod.bias, qconfig))
        made.training = mod.training
        return made

    def weight(self) -> Any:
        """The weight as float32."""
        return self.packed.dequantize()

    def bias(self) -> Any:
        """The bias, None where there is none."""
        return self.packed.bias

    def forward(self, input: Any) -> Any:
        """The layer's result for (..., in_features)."""
        return self._modules["packed"].product(input, self.rounds)  # past __getattr__, as in the float layer

    def _get_name(self) -> str:
        return self.title

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, {_kind(self.packed.qconfig)}"

    def __repr__(self) -> str:
        return f"{self.title}({self.extra_repr()})"


class WeightOnlyLinear(Linear):
    """A linear layer with an int8 weight whose input stays float32."""

    rounds = False
    title = "WeightOnlyQuantizedLinear"


class Embedding(Module):
    """An embedding with int8 rows, each with its scale; made by :meth:`from_float`."""

    def __init__(self, packed: Packed, padding_idx: int | None) -> None:
        super().__init__()
        self.packed, self.padding_idx = packed, padding_idx
        self.num_embeddings, self.embedding_dim = packed.data.shape

    @classmethod
    def from_float(cls, mod: FloatEmbedding, qconfig: QConfig = default_dynamic_qconfig) -> Embedding:
        """The layer with the rows of a trained one."""
        if mod.max_norm is not None:
            raise ArgumentError(
                f"from_float: expected an Embedding without max_norm, which writes its rows, got {mod.max_norm}; leave it as it is"
            )
        made = cls(Packed(mod.weight, None, qconfig._replace(per_channel=True)), mod.padding_idx)
        made.training = mod.training
        return made

    def forward(self, input: Any) -> Any:
        """A row of float32 for each index."""
        with no_grad():
            rows: Any = self.packed.data[input].float()  # type: ignore[attr-defined]
            return rows if self.packed.scale is None else rows * self.packed.scale[input].unsqueeze(-1)

    def __repr__(self) -> str:
        return (
            f"WeightOnlyQuantizedEmbedding({self.num_embeddings}, {self.embedding_dim}, {_kind(self.packed.qconfig)})"
        )


class _Recurrent(RNNBase):
    """What LSTM and GRU share: two packed weights for each layer and direction.

    The steps run one by one, in evaluation: there is no dropout between layers, and results require no gradient.
    """

    rounds = True

    def __init__(self, mod: RNNBase, qconfig: QConfig) -> None:
        Module.__init__(self)
        for name in ("mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional",
                     "proj_size", "training"):  # fmt: skip
            setattr(self, name, getattr(mod, name))
        if mod.proj_size:
            raise ArgumentError(
                f"from_float: expected a layer without proj_size, got {mod.proj_size}; leave it as it is"
            )
        self.qconfig = qconfig
        self.inner, self.outer = ModuleList(), ModuleList()
        for weights in mod.all_weights:
            biases = weights[2:] if mod.bias else (None, None)
            self.inner.append(Packed(weights[0], biases[0], qconfig))
            self.outer.append(Packed(weights[1], biases[1], qconfig))

    @property
    def _flat_weights(self) -> list[Any]:
        return list(self.inner)

    def _check_input(self, data: Any, weight: Any) -> None:
        if data.shape[-1] != self.input_size:
            raise ShapeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {data.shape[-1]}"
            )

    def _run(self, data: Any, *rest: Any) -> Any:
        packed = not isinstance(rest[1], list)
        sizes, given = (rest[0].tolist(), rest[1]) if packed else (None, rest[0])
        states = given if self.mode == "LSTM" else (given,)
        with no_grad():
            if sizes is None:
                data = data.transpose(0, 1) if self.batch_first else data
                steps, batch = data.shape[:2]
                sizes, data = [batch] * steps, data.reshape(steps * batch, -1)
            made, last = self._layers(data, states, sizes)
            if not packed:
                made = made.reshape(steps, batch, -1)
                made = made.transpose(0, 1) if self.batch_first else made
        return (made, *last)

    def _layers(self, rows: Any, states: tuple[Any, ...], sizes: list[int]) -> tuple[Any, list[Any]]:
        directions = 2 if self.bidirectional else 1
        ends: list[list[Any]] = [[] for _ in states]
        for layer in range(self.num_layers):
            sides = []
            for side in range(directions):
                at = layer * directions + side
                made, last = self._direction(rows, [one[at] for one in states], sizes, at, bool(side))
                sides.append(made)
                for found, one in zip(ends, last, strict=True):
                    found.append(one)
            rows = sides[0] if directions == 1 else cat(sides, 1)
        return rows, [stack(one) for one in ends]

    def _direction(
        self, rows: Any, states: list[Any], sizes: list[int], at: int, reverse: bool
    ) -> tuple[Any, list[Any]]:
        """All rows' states, and the last one of each sequence; a step has one row for each that is so long."""
        entered = self.inner[at].product(rows, self.rounds).split(sizes)
        product, rounds = self.outer[at].product, self.rounds
        order = range(len(sizes))[::-1] if reverse else range(len(sizes))
        made: list[Any] = [None] * len(sizes)
        all_of = sizes[0]  # rows of the states
        for i in order:
            n = sizes[i]
            if n == all_of:
                states = self._step(entered[i], states, product(states[0], rounds))
                made[i] = states[0]
                continue
            mine = [one[:n] for one in states]
            new = self._step(entered[i], mine, product(mine[0], rounds))
            made[i] = new[0]
            states = [cat([one, old[n:]]) for one, old in zip(new, states, strict=True)]
        return cat(made), states

    def _step(self, entered: Any, states: list[Any], recurrent: Any) -> list[Any]:
        raise NotImplementedError

    @classmethod
    def from_float(cls, mod: Any, qconfig: QConfig = default_dynamic_qconfig) -> Any:
        """The layer with the weights of a trained one."""
        return cls(mod, qconfig)

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"


class LSTM(_Recurrent):
    """An LSTM with int8 weights, which quantises its input and its state at each step."""

    def _step(self, entered: Any, states: list[Any], recurrent: Any) -> list[Any]:
        enter, forget, new, out = (entered + recurrent).chunk(4, 1)
        cell = forget.sigmoid() * states[1] + enter.sigmoid() * new.tanh()
        return [out.sigmoid() * cell.tanh(), cell]


class GRU(_Recurrent):
    """A GRU with int8 weights, which quantises its input and its state at each step."""

    def _step(self, entered: Any, states: list[Any], recurrent: Any) -> list[Any]:
        (reset, update, new), (r, z, n) = entered.chunk(3, 1), recurrent.chunk(3, 1)
        made = (new + (reset + r).sigmoid() * n).tanh()
        keep = (update + z).sigmoid()
        return [made + keep * (states[0] - made)]


class WeightOnlyLSTM(LSTM):
    """An LSTM with int8 weights whose input and state stay float32."""

    rounds = False


class WeightOnlyGRU(GRU):
    """A GRU with int8 weights whose input and state stay float32."""

    rounds = False


DYNAMIC = {FloatLinear: Linear, FloatLSTM: LSTM, FloatGRU: GRU}
WEIGHT_ONLY = {
    FloatLinear: WeightOnlyLinear,
    FloatEmbedding: Embedding,
    FloatLSTM: WeightOnlyLSTM,
    FloatGRU: WeightOnlyGRU,
}


def _kind(qconfig: QConfig) -> str:
    if not hasattr(qconfig.dtype, "name") or qconfig.dtype.name != "qint8":
        return "dtype=torch.float16"
    return f"dtype=torch.qint8, qscheme=torch.per_{'channel' if qconfig.per_channel else 'tensor'}_affine"
