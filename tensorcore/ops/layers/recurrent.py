"""Recurrent networks: LSTM, GRU and Elman's, over sequences that are padded or packed, and their cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorcore.errors import ArgumentTypeError, DimensionError, DtypeError, ShapeError, not_bool
from tensorcore.ops import rules
from tensorcore.ops.fused import Fused
from tensorcore.ops.kinds import FLOATING, INTEGER, operation
from tensorcore.ops.layers.dropout import dropout as drop
from tensorcore.ops.linalg.affine import linear
from tensorcore.ops.linalg.products import matmul
from tensorcore.ops.operands import check_optional, check_tensors
from tensorcore.ops.samples import recurrent as samples
from tensorcore.ops.shapes.join import cat, stack
from tensorcore.tensor import Tensor

__all__ = [
    "gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell",
]  # fmt: skip

State = tuple[Tensor, ...]
Cell = Callable[[Any, State], State]


# Over whole sequences


@operation(samples=samples.lstm, method=False)
def lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Long short-term memory (Hochreiter and Schmidhuber, Neural Computation 1997) over sequences.

    ``lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)``, or
    ``lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)`` of packed ones.

    Args:
        input: (steps, batch, features), or (batch, steps, features) with ``batch_first``.
        hx: the first state and cell, each (layers * directions, batch, size).
        params: of each layer and direction ``w_ih`` (4 * hidden, features), ``w_hh`` (4 * hidden, size), with
            biases two more of (4 * hidden), and ``w_hr`` (size, hidden) where states are projected.

    Returns:
        The state after each step, and the last state and cell of each layer and direction.
    """
    return _sequences("lstm", _lstm_layer, 2, *args, **kwargs)


@operation(samples=samples.gru, method=False)
def gru(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Gated recurrent units (Cho et al., EMNLP 2014) over sequences; arguments as ``lstm``, with one state ``hx``."""
    return _sequences("gru", _gru_layer, 1, *args, **kwargs)


@operation(samples=samples.rnn, method=False)
def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Elman's network with tanh over sequences; arguments as ``lstm``, with one state ``hx``."""
    return _sequences("rnn_tanh", _rnn_layer("tanh"), 1, *args, **kwargs)


@operation(samples=samples.rnn, method=False)
def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Elman's network with relu over sequences; arguments as ``lstm``, with one state ``hx``."""
    return _sequences("rnn_relu", _rnn_layer("relu"), 1, *args, **kwargs)


# One step


@operation(samples=samples.lstm_cell, method=False)
def lstm_cell(input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
              b_hh: Tensor | None = None) -> tuple[Tensor, Tensor]:  # fmt: skip
    """One step of an LSTM: state and cell (batch, hidden) to the next ones."""
    if not isinstance(hx, (tuple, list)):
        raise ArgumentTypeError(f"lstm_cell: expected hx to be a tuple of Tensors, got {hx!r}; pass (state, cell)")
    check_tensors("lstm_cell", **{f"hx[{i}]": one for i, one in enumerate(hx)})
    if len(hx) != 2:
        raise ShapeError(f"lstm_cell: expects two hidden states, got {len(hx)}; pass (state, cell)")
    _check_types("lstm_cell", (input, *hx, w_ih, w_hh))
    _check_step("lstm_cell", input, tuple(hx), w_hh)
    made = _lstm_layer("lstm_cell", input, w_ih, w_hh, b_ih, b_hh, None, tuple(hx), _one_step(input))
    return made[1:]  # type: ignore[no-any-return]


@operation(samples=samples.gru_cell, method=False)
def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
             b_hh: Tensor | None = None) -> Tensor:  # fmt: skip
    """One step of a GRU: the state (batch, hidden) to the next one."""
    _check_types("gru_cell", (input, hx, w_ih, w_hh))
    _check_step("gru_cell", input, (hx,), w_hh)
    return _gru_layer("gru_cell", input, w_ih, w_hh, b_ih, b_hh, None, (hx,), _one_step(input))[1]  # type: ignore[no-any-return]


@operation(samples=samples.rnn_cell, method=False)
def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
                  b_hh: Tensor | None = None) -> Tensor:  # fmt: skip
    """One step of Elman's network with tanh: the state (batch, hidden) to the next one."""
    return _rnn_cell("rnn_tanh_cell", "tanh", input, hx, w_ih, w_hh, b_ih, b_hh)


@operation(samples=samples.rnn_cell, method=False)
def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
                  b_hh: Tensor | None = None) -> Tensor:  # fmt: skip
    """One step of Elman's network with relu: the state (batch, hidden) to the next one."""
    return _rnn_cell("rnn_relu_cell", "relu", input, hx, w_ih, w_hh, b_ih, b_hh)


def _rnn_cell(name: str, nonlinearity: str, input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    _check_types(name, (input, hx, w_ih, w_hh))
    _check_step(name, input, (hx,), w_hh)
    if _is_plain(input, hx, w_ih, w_hh, b_ih, b_hh):
        made = linear(input, w_ih, b_ih)
        if made.dtype is input.dtype:  # no autocast
            made = made + linear(hx, w_hh, b_hh)
            return made.tanh() if nonlinearity == "tanh" else made.relu()  # type: ignore[attr-defined]
    return _rnn_layer(nonlinearity)(name, input, w_ih, w_hh, b_ih, b_hh, None, (hx,), _one_step(input))[1]


_STEPPED = FLOATING | INTEGER


def _is_plain(input: Any, hx: Any, w_ih: Any, w_hh: Any, *biases: Any) -> bool:
    """Whether a step of Elman's network fits together and leaves nothing on a tape: as two products it takes 2 us less."""
    dtype = input.dtype
    given = [input, hx, w_ih, w_hh, *[one for one in biases if one is not None]]
    if not (dtype in _STEPPED or dtype.is_complex):
        return False
    for one in given:
        if type(one) is not Tensor or one.node is not None or one.dtype is not dtype:
            return False
    features, hidden = input.native.shape[1], hx.native.shape[1]
    return (w_ih.native.shape, w_hh.native.shape) == ((hidden, features), (hidden, hidden)) and all(
        [one.native.shape == (hidden,) for one in given[4:]]
    )


def _check_step(name: str, input: Any, states: Any, w_hh: Any) -> None:
    if len(input.native.shape) != 2:
        kind = DimensionError if len(input.native.shape) < 2 else ShapeError
        raise kind(f"{name}: expected an input of 2 dims, got {list(input.shape)}; unsqueeze(0) a single one")
    wanted = input.native.shape[0], w_hh.native.shape[-1] if w_hh.native.shape else 0
    for one in states:
        if tuple(one.native.shape) != wanted:
            raise ShapeError(f"{name}: expected a hidden state of {list(wanted)}, got {list(one.shape)}; make it that")


def _one_step(input: Any) -> dict[str, Any]:
    return {"sizes": (input.native.shape[0],), "reverse": False}


# Layers and directions


def _sequences(name: str, layer: Callable[..., Any], states: int, *args: Any, **kwargs: Any) -> Any:
    """Both forms of the calls over sequences."""
    packed = len(args) > 3 and not isinstance(args[3], bool)
    names = ("has_biases", "num_layers", "dropout", "train", "bidirectional", *(() if packed else ("batch_first",)))
    head = ("data", "batch_sizes", "hx", "params") if packed else ("input", "hx", "params")
    given = dict(zip((*head, *names), args, strict=False)) | kwargs
    count = len(head) + len(names)
    if (len(args) != count or kwargs) and (len(given) > count or [one for one in (*head, *names) if one not in given]):
        raise ArgumentTypeError(
            f"{name}: expected {', '.join((*head, *names))}, got {', '.join(given)}; pass each once"
        )
    for one in ("has_biases", "train", "bidirectional", *names[5:]):
        if given[one] is not True and given[one] is not False:
            raise not_bool(name, one, given[one])
    given["num_layers"] = rules.whole(name, "num_layers", given["num_layers"])
    if given["num_layers"] < 1:
        raise ShapeError(f"{name}: expected at least one layer, got num_layers={given['num_layers']}; pass 1 or more")
    input = given["data" if packed else "input"]
    for one in ("hx", "params") if states > 1 else ("params",):
        if not isinstance(given[one], (tuple, list)):
            raise ArgumentTypeError(f"{name}: expected {one} to be a tuple of Tensors, got {given[one]!r}; pass a list")
    hx = tuple(given["hx"]) if states > 1 else (given["hx"],)
    if states > 1 and not all([type(one) is Tensor for one in hx]):
        check_tensors(name, **{f"hx[{i}]": one for i, one in enumerate(hx)})
    params = list(given["params"])
    if len(hx) != states:
        raise ShapeError(f"{name}: expected {states} hidden states, got {len(hx)}; pass (state, cell)")
    _check_types(name, (input, *hx, *params))
    if packed:
        sizes = tuple(given["batch_sizes"].tolist())
        rows = input
    else:
        if len(input.native.shape) != 3:
            raise ShapeError(f"{name}: expected an input of 3 dims, got {list(input.shape)}; unsqueeze the batch")
        if given["batch_first"]:
            input = input.transpose(0, 1)
        steps, batch, features = input.native.shape
        sizes = (batch,) * steps
        rows = input.reshape(steps * batch, features)
    if not sizes:
        raise ShapeError(f"{name}: Expected sequence length to be larger than 0 in RNN, got {list(input.shape)}")
    made, finals = _layers(name, layer, rows, sizes, hx, params, **{one: given[one] for one in names[:5]})
    if not packed:
        made = made.reshape(steps, batch, made.native.shape[-1])
        made = made.transpose(0, 1) if given["batch_first"] else made
    return (made, *finals)


def _layers(
    name: str, layer: Callable[..., Any], rows: Any, sizes: tuple[int, ...], hx: State, params: list[Tensor], *,
    has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Each layer over the rows that the one below made, both directions beside each other."""
    directions = 2 if bidirectional else 1
    count = num_layers * directions
    each, odd = divmod(len(params), count)
    projected = name == "lstm" and each == (5 if has_biases else 3)
    if odd or each != (4 if has_biases else 2) + projected:
        raise ShapeError(
            f"{name}: expected {4 if has_biases else 2} weights for each of {count} layers and directions, got {len(params)}"
        )
    for one in hx:
        if len(one.native.shape) != 3 or one.native.shape[0] != count or one.native.shape[1] != sizes[0]:
            raise ShapeError(
                f"{name}: expected hidden states of shape [{count}, {sizes[0]}, size], got {list(one.shape)}; make it that"
            )
    finals: list[list[Tensor]] = [[] for _ in hx]
    for at in range(num_layers):
        made = []
        for side in range(directions):
            i = at * directions + side
            w_ih, w_hh, *others = params[i * each : (i + 1) * each]
            w_hr = others.pop() if projected else None
            b_ih, b_hh = others or (None, None)
            states = tuple([one[i] for one in hx])  # type: ignore[index]
            options = {"sizes": sizes, "reverse": side == 1}
            out, *last = layer(name, rows, w_ih, w_hh, b_ih, b_hh, w_hr, states, options)
            made.append(out)
            for found, one in zip(finals, last, strict=True):
                found.append(one)
        rows = made[0] if directions == 1 else cat(made, 1)
        if dropout and train and at < num_layers - 1:
            rows = drop(rows, dropout, True)
    return rows, [stack(found) if count > 1 else found[0].unsqueeze(0) for found in finals]  # type: ignore[attr-defined]


def _lstm_layer(
    name: str, rows: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, w_hr: Any, states: State, options: Any
) -> Any:
    h0, c0 = states
    _check_weights(name, w_ih, w_hh, b_ih, b_hh, 4, rows.native.shape[1], h0.native.shape[-1], c0.native.shape[-1])
    gates = linear(rows, w_ih, _sum(b_ih, b_hh))
    dtype = _dtype_of_states(gates, h0)
    gates, w_hh, w_hr = _of_one_dtype(name, dtype, gates, w_ih, (rows, h0, c0), w_hh, w_hr)
    if h0.dtype is not dtype or c0.dtype is not dtype:
        h0, c0 = h0.to(dtype), c0.to(dtype)  # type: ignore[attr-defined]
    if w_hr is not None:
        # Rare enough to go step by step.
        if tuple(w_hr.native.shape) != (h0.native.shape[-1], c0.native.shape[-1]):
            raise ShapeError(
                f"{name}: expected a projection of [{h0.shape[-1]}, {c0.shape[-1]}], got {list(w_hr.shape)}"
            )
        return _unrolled(lambda z, state: _lstm_next(z, state, w_hh, w_hr), gates, (h0, c0), **options)
    return _lstm_steps((gates, w_hh, h0, c0), options)


def _gru_layer(
    name: str, rows: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, _: Any, states: State, options: Any
) -> Any:
    _check_weights(name, w_ih, w_hh, b_ih, b_hh, 3, rows.native.shape[1], states[0].native.shape[-1])
    gates = linear(rows, w_ih, b_ih)
    (h0,) = states
    dtype = _dtype_of_states(gates, h0)
    gates, w_hh, b_hh = _of_one_dtype(name, dtype, gates, w_ih, (rows, h0), w_hh, b_hh)
    return _gru_steps((gates, w_hh, b_hh, h0 if h0.dtype is dtype else h0.to(dtype)), options)  # type: ignore[attr-defined]


def _rnn_layer(nonlinearity: str) -> Callable[..., Any]:
    def layer(
        name: str, rows: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, _: Any, states: State, options: Any
    ) -> Any:
        _check_weights(name, w_ih, w_hh, b_ih, b_hh, 1, rows.native.shape[1], states[0].native.shape[-1])
        gates = linear(rows, w_ih, _sum(b_ih, b_hh))
        gates, w_hh, h0 = _of_one_dtype(name, gates.dtype, gates, w_ih, (rows, *states), w_hh, *states)
        return _rnn_steps((gates, w_hh, h0), {**options, "nonlinearity": nonlinearity})

    return layer


def _sum(b_ih: Any, b_hh: Any) -> Any:
    return b_hh if b_ih is None else b_ih if b_hh is None else b_ih + b_hh


def _check_types(name: str, tensors: Any) -> None:
    for one in tensors:
        if not isinstance(one, Tensor):
            raise ArgumentTypeError(f"{name}: expected Tensors, got {type(one).__name__}; wrap it in torch.tensor(...)")


def _dtype_of_states(gates: Any, h0: Any) -> Any:
    """That of the gates, but inside an autocast region on the host, where states keep their own, as PyTorch's do there."""
    return h0.dtype if gates.device.capabilities.host else gates.dtype


def _of_one_dtype(name: str, dtype: Any, gates: Any, w_ih: Any, given: Any, *others: Any) -> Any:
    """The gates and what else the steps take, in the dtype they run in; refuses a mixture where nobody asked for one.

    Inside an autocast region the product with ``w_ih`` comes in the region's dtype, and what follows has its precision.
    """
    if gates.dtype is w_ih.dtype:
        for one in (*given, *others):
            if one is not None and one.dtype is not w_ih.dtype:
                raise DtypeError(
                    f"{name}: expected one dtype, got {given[0].dtype} and {one.dtype}; convert with .to(...)"
                )
        return gates, *others
    return gates.to(dtype), *[None if one is None else one.to(gates.dtype).to(dtype) for one in others]


def _check_weights(
    name: str,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any,
    b_hh: Any,
    gates: int,
    features: int,
    size: int,
    hidden: int | None = None,
) -> None:
    rows = gates * (hidden or size)
    for which, one, shape in (
        ("w_ih", w_ih, (rows, features)),
        ("w_hh", w_hh, (rows, size)),
        ("b_ih", b_ih, (rows,)),
        ("b_hh", b_hh, (rows,)),
    ):
        if one is None or (type(one) is Tensor and one.native.shape == shape):
            continue
        check_optional(name, **{which: one})
        if tuple(one.native.shape) != shape:
            raise ShapeError(f"{name}: expected {which} of shape {list(shape)}, got {list(one.shape)}; make it that")


# The steps written in other ops


def _unrolled(cell: Cell, gates: Any, state: State, *, sizes: tuple[int, ...], reverse: bool) -> tuple[Tensor, ...]:
    """Step by step: all states, then the last ones of each sequence."""
    starts = [sum(sizes[:t]) for t in range(len(sizes))]
    made: list[Any] = [None] * len(sizes)
    first, ended = state, []
    if reverse:
        state = tuple([one[: sizes[-1]] for one in first])  # type: ignore[index]
    for t in reversed(range(len(sizes))) if reverse else range(len(sizes)):
        rows, n = state[0].native.shape[0], sizes[t]
        if n < rows:
            ended.append([one[n:] for one in state])  # type: ignore[index]
            state = tuple([one[:n] for one in state])  # type: ignore[index]
        elif n > rows:
            state = tuple([cat([one, new[rows:n]]) for one, new in zip(state, first, strict=True)])  # type: ignore[index]
        state = cell(gates[starts[t] : starts[t] + n], state)
        made[t] = state[0]
    ended.append(list(state))
    last = [cat(parts) if len(parts) > 1 else parts[0] for parts in zip(*reversed(ended), strict=True)]
    return (cat(made) if len(made) > 1 else made[0], *last)


def _lstm_next(gates: Any, state: State, weight: Any, projection: Any = None) -> State:
    z = gates + linear(state[0], weight)
    i, f, g, o = z.chunk(4, 1)
    cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    h = o.sigmoid() * cell.tanh()
    return (h if projection is None else matmul(h, projection.t())), cell


def _gru_next(gates: Any, state: State, weight: Any, bias: Any) -> State:
    h: Any = state[0]
    r, z, n = gates.chunk(3, 1)
    hr, hz, hn = linear(h, weight, bias).chunk(3, 1)  # type: ignore[attr-defined]
    new = (n + (r + hr).sigmoid() * hn).tanh()
    return (new + (z + hz).sigmoid() * (h - new),)


def _rnn_next(gates: Any, state: State, weight: Any, nonlinearity: str) -> State:
    z = gates + linear(state[0], weight)
    return (z.tanh() if nonlinearity == "tanh" else z.relu(),)


def _lstm_apart(gates: Any, weight: Any, h0: Tensor, c0: Tensor, **options: Any) -> Any:
    return _unrolled(lambda z, state: _lstm_next(z, state, weight), gates, (h0, c0), **options)


def _gru_apart(gates: Any, weight: Any, bias: Any, h0: Tensor, **options: Any) -> Any:
    return _unrolled(lambda z, state: _gru_next(z, state, weight, bias), gates, (h0,), **options)


def _rnn_apart(gates: Any, weight: Any, h0: Tensor, *, nonlinearity: str, **options: Any) -> Any:
    return _unrolled(lambda z, state: _rnn_next(z, state, weight, nonlinearity), gates, (h0,), **options)


class _Steps(Fused):
    """Fused for real floating tensors; others go step by step, as far as their dtype goes."""

    def __call__(self, inputs: Sequence[Tensor | None], options: dict[str, Any], dtype: Any = None) -> Any:
        kind = inputs[0].dtype.kind  # type: ignore[union-attr]
        if kind == "floating":
            return super().__call__(inputs, options, dtype)
        if kind != "complex" and self is not _rnn_steps:
            raise DtypeError(
                f"{self.name}: result type Float can't be cast to the desired output type, got {inputs[0].dtype}; "  # type: ignore[union-attr]
                f"convert the tensors with .float()"
            )
        return self.decomposition(*inputs, **options)


_lstm_steps = _Steps("lstm_steps", "gates weight h0 c0", "An LSTM over a sequence.", _lstm_apart, results=3)
_gru_steps = _Steps("gru_steps", "gates weight bias h0", "A GRU over a sequence.", _gru_apart, results=2)
_rnn_steps = _Steps("rnn_steps", "gates weight h0", "Elman's network over a sequence.", _rnn_apart, results=2)
