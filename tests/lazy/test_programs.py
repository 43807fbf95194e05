"""Random programs: what is written down and run later gives the bits of what runs at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
from hypothesis import strategies as st

import tensorcore as tc
from tensorcore.lazy import making

SHAPE = (3, 4)
# Each takes the tensors so far and three whole numbers that decide.
Move = Callable[[list[tc.Tensor], int, int, int], tc.Tensor | None]


def pick(tensors: list[tc.Tensor], i: int) -> tc.Tensor:
    return tensors[i % len(tensors)]


def part_of(x: tc.Tensor, i: int) -> tc.Tensor:
    """A view of one kind or another."""
    views = [
        lambda: x.t() if x.ndim == 2 else x.unsqueeze(0),
        lambda: x[..., i % max(x.shape[-1], 1) :] if x.ndim else x.view(1),
        lambda: x[0] if x.ndim and x.shape[0] else x.unsqueeze(-1),
        lambda: x.reshape(-1),
        lambda: x.detach(),
        lambda: x.expand(2, *x.shape),
        lambda: x.as_strided((x.shape[0],), (x.stride(0),)) if x.ndim else x.view(1),
        lambda: x.diagonal() if x.ndim == 2 else x.flatten(),
        lambda: x.narrow(0, 0, x.shape[0]) if x.ndim else x,
        lambda: x.unfold(-1, 2, 1) if x.ndim and x.shape[-1] > 1 else x,
    ]
    return views[i % len(views)]()


def view(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    return part_of(pick(tensors, a), b)


def unary(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    ops = ["sin", "relu", "neg", "tanh", "abs", "clone", "sigmoid", "square"]
    return getattr(pick(tensors, a), ops[b % len(ops)])()


def binary(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor | None:
    x, y = pick(tensors, a), pick(tensors, b)
    try:
        tc.broadcast_shapes(x.shape, y.shape)
    except RuntimeError:
        return x * (c - 2.5)
    return [tc.add, tc.mul, tc.sub, tc.maximum][c % 4](x, y)


def reduction(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    x = pick(tensors, a)
    if b % 3 == 0 or not x.ndim:
        return [x.sum, x.mean][c % 2]()
    return [x.sum, x.mean, x.amax][c % 3](b % x.ndim, keepdim=bool(c % 2))


def product(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor | None:
    x, y = pick(tensors, a), pick(tensors, b)
    if x.ndim != 2 or y.ndim != 2:
        return None
    return x @ y.t() if x.shape[1] == y.shape[1] else x.t() @ y if x.shape[0] == y.shape[0] else None


def laps(x: tc.Tensor) -> bool:
    """Whether two elements may lie in one place, where what a write leaves depends on its order."""
    reach = 1
    for step, size in sorted(zip(x.stride(), x.shape, strict=True)):
        if size > 1 and step < reach:
            return True
        reach = max(reach, step * size)
    return False


def write(tensors: list[tc.Tensor], a: int, b: int, c: int) -> None:
    x = pick(tensors, a)
    if laps(x):
        return
    with tc.no_grad():
        moves = [
            lambda: x.add_(1.5), lambda: x.mul_(pick(tensors, b).sum()), lambda: x.zero_(), lambda: x.fill_(c),
            lambda: x.copy_(pick(tensors, b).sum()), lambda: x.clamp_(-1, 1), lambda: x.normal_(), lambda: x.neg_(),
            lambda: tc.add(x, 1.0, out=x),
        ]  # fmt: skip
        if c % 2 == 0 or 0 in x.shape:
            moves[b % len(moves)]()
        elif x.ndim:
            x[c % x.shape[0]] = float(b)


def recorded_write(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    x = pick(tensors, a) * 1.0
    part = x[..., : 1 + c % x.shape[-1]] if x.ndim and x.shape[-1] else x
    part.mul_(b - 1.5)
    return x


def random(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    return [tc.randn_like, tc.rand_like][b % 2](pick(tensors, a))


def dropout(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    return tc.nn.functional.dropout(pick(tensors, a), 0.5)


def look(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    x = pick(tensors, a)
    return x + 1 if bool((x.detach() > 0).any()) else x - 1


def chosen(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    x = pick(tensors, a)
    return x[x.detach() > 0]


def rows(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    x = pick(tensors, a)
    index = tc.arange(x.shape[0] if x.ndim else 1, device=x.device) % (1 + b)
    return tc.cat([x.view(1) if not x.ndim else x, x.view(1) if not x.ndim else x])[index]


def heads(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    """Turned parts made dense and joined, as attention leaves its heads."""
    x = pick(tensors, a).reshape(-1)
    x = x[: x.shape[0] // 4 * 4]
    parts = [(x * k).view(2, -1, 1 + b % 2).transpose(0, 1) for k in (2, 3)]
    return tc.cat([part.reshape(part.shape[0], -1) for part in parts], 1) + c


def between(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    """Views between elementwise ops, and a kept dim that one of them drops."""
    x = pick(tensors, a)
    flat = (x * 2 + c).view(1, -1).view(-1).tanh()
    return (flat.view(1, *x.shape) * x.sum(-1, keepdim=True).expand(x.shape)).exp() if b % 2 and x.ndim else flat


def normalised(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor | None:
    """Ops over rows, whose parts a plan may fuse with what stands beside them."""
    x, f = pick(tensors, a), tc.nn.functional
    if not x.ndim or not x.shape[-1]:
        return None
    made = [
        lambda: x.softmax(-1),
        lambda: x.log_softmax(-1),
        lambda: f.layer_norm(x, x.shape[-1:]),
        lambda: x.softmax(0),
    ]
    return made[b % 4]() * pick(tensors, c).sum().tanh()


def activation(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    names = ["gelu", "silu", "elu", "softplus", "leaky_relu", "hardtanh", "mish", "logsigmoid"]
    return getattr(tc.nn.functional, names[b % len(names)])(pick(tensors, a))


def casts(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    """Through another dtype and on in it, beside what has another one."""
    x = pick(tensors, a)
    kinds = [tc.float64, tc.float16, tc.bfloat16, tc.int32, tc.bool]
    y = x.clamp(-100, 100).to(kinds[b % 5])
    return y * x if c % 2 else y.to(tc.float32) + c


def chosen_by(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    """Where, masks and comparisons."""
    x = pick(tensors, a)
    mask = x.detach() > c / 10 - 1
    made = [
        lambda: tc.where(mask, x, b * 0.5),
        lambda: x.masked_fill(mask, c),
        lambda: x * mask,
        lambda: (~mask).to(x.dtype),
    ]
    return made[b % 4]()


def picked(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor | None:
    """Reads and writes at places that tensors name."""
    x = pick(tensors, a)
    if x.ndim != 2 or 0 in x.shape:
        return None
    at = (tc.arange(x.numel(), device=x.device).view(x.shape) * b) % x.shape[c % 2]
    made = [
        lambda: x.gather(c % 2, at),
        lambda: tc.zeros_like(x).scatter_add(c % 2, at, x),
        lambda: x.index_select(c % 2, at.reshape(-1)[:3]),
        lambda: (
            x.index_put((at[0] % x.shape[0],), x.detach()[0] * 0 + c, accumulate=bool(b % 2)) if c % 2 else x.flip(0)
        ),
        lambda: x.cumsum(c % 2),
        lambda: x.sort(c % 2)[0],
    ]
    return made[(a + b + c) % 6]()


def joined(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    """Cut, turned and joined."""
    x = pick(tensors, a)
    x = x.view(1) if not x.ndim else x
    made = [
        lambda: tc.cat(x.chunk(2, -1)[::-1], -1),
        lambda: tc.stack([x, x * c])[b % 2],
        lambda: x.roll(b, 0),
        lambda: tc.cat([one.transpose(0, -1) for one in (x, x + 1)]),
        lambda: x.repeat(2, *[1] * (x.ndim - 1)),
        lambda: x.unbind(0)[-1] if x.shape[0] else x,
    ]
    return made[b % 6]()


def aliased_write(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    """A write through one view that another one, of the same memory, shows."""
    whole = pick(tensors, a).detach().clone().reshape(-1)
    front, turned = whole[: 1 + b % 4], whole.view(-1, 2).t() if whole.shape[0] % 2 == 0 else whole
    read = turned * 2
    front.add_(c)
    turned.mul_(0.5)
    return read + turned if c % 2 else turned


def numbered(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    """Writes to places that a loop counts."""
    x = pick(tensors, a).detach().reshape(-1)[:6].clone()
    rows = tc.zeros(5, x.shape[0], device=x.device)
    for i in range(b % 4):
        rows[(i + c) % 5] = x * i
        rows[i, : c % 3] += 1
        rows[i : i + 2].t()[c % max(x.shape[0], 1) :] = i
    return rows


def trained(tensors: list[tc.Tensor], a: int, b: int, c: int) -> tc.Tensor:
    """Steps of an optimizer over a leaf of its own."""
    x = pick(tensors, a).detach().reshape(-1)[:4]
    w = tc.full((x.shape[0],), 0.5, device=x.device, requires_grad=True)
    kinds = [tc.optim.SGD, tc.optim.Adam, tc.optim.AdamW, tc.optim.RMSprop]
    optimizer = kinds[b % 4]([w], lr=0.1 / (1 + c))
    for _ in range(1 + c % 2):
        optimizer.zero_grad()
        (w * x.to(w.dtype)).tanh().sum().backward()
        optimizer.step()
    return w.detach()


MOVES: list[Move] = [
    view, view, unary, binary, binary, reduction, product, write, write, recorded_write, random, dropout, look, chosen, rows,
    heads, between, activation, casts, chosen_by, picked, joined, aliased_write, numbered, trained,
]  # fmt: skip
# Those in which a last bit decides nothing, with the ones that a fused kernel adds up in another order.
CALM = [*[move for move in MOVES if move not in (look, chosen)], normalised]
PROGRAMS = st.lists(st.tuples(st.sampled_from(MOVES), *[st.integers(0, 30)] * 3), min_size=1, max_size=14)


def steps_of(x: tc.Tensor) -> list[int]:
    """The strides; that of a dim of one element leads nowhere, and kernels leave there what they like."""
    return [step for step, size in zip(x.stride(), x.shape, strict=True) if size != 1]


def place_of(x: tc.Tensor) -> tuple[list[int], int]:
    """The strides, and where the first element lies, if there is one."""
    return steps_of(x), x.storage_offset() if x.numel() else 0


def run(program: list[tuple[Move, int, int, int]], device: str) -> list[Any]:
    """All tensors of a program, the gradients of its leaves, and the state of the generator after it."""
    tc.manual_seed(1)
    leaves = [tc.randn(*SHAPE).to(device).requires_grad_() for _ in range(2)]
    tensors = [*leaves, tc.arange(12.0, device=device).view(4, 3), *[one * 1 for one in leaves]]
    errors = []
    for move, a, b, c in program:
        try:
            made = move(tensors, a, b, c)
        except (RuntimeError, ValueError, IndexError) as error:
            errors.append(type(error).__name__)
            continue
        if made is not None and made.numel() < 5000:
            tensors.append(made)
    total = sum(one.sum() for one in tensors)
    try:
        total.backward()
    except RuntimeError as error:
        errors.append(type(error).__name__)
    tensors += [one.grad for one in leaves if one.grad is not None]
    values = [(one.detach().cpu().numpy().tobytes(), tuple(one.shape), *place_of(one), one.dtype) for one in tensors]
    return [*values, errors, [one._version for one in tensors], tc.get_rng_state().tolist()]


def forget() -> None:
    """No program has been seen: each is run as it stands, in the kernels that eager runs."""
    making._known.clear()
    tc.device("lazy").tracks.clear()


@hypothesis.settings(max_examples=150)
@hypothesis.given(PROGRAMS)
@hypothesis.example([(binary, 1, 1, 2), (chosen, 5, 0, 0), (aliased_write, 6, 0, 1)])  # nothing, turned
def test_a_program_gives_the_same_bits(program: list[tuple[Move, int, int, int]]) -> None:
    """Views, writes, broadcasting, random numbers, decisions and a backward pass: bits, layout and versions as eagerly."""
    forget()
    assert run(program, "lazy") == run(program, "cpu")


def close(one: Any, other: Any) -> bool:
    """Whether two tensors of ``run`` agree up to what another order of sums leaves: 1e-3 of the largest, 2e-2 in half types."""
    if type(one) is not tuple or one == other:
        return bool(one == other)
    dtype = one[-1]
    if one[1:] != other[1:] or not dtype.is_floating_point:
        return False
    x, y = (np.frombuffer(side[0], dtype.numpy).astype(np.float64) for side in (one, other))
    known = np.isfinite(x)
    reach = np.abs(x[known]).max(initial=1.0) * (2e-2 if dtype.itemsize == 2 else 1e-3)
    return np.allclose(x[known], y[known], rtol=0, atol=reach)


@hypothesis.settings(max_examples=60)
@hypothesis.given(st.lists(st.tuples(st.sampled_from(CALM), *[st.integers(0, 30)] * 3), min_size=1, max_size=14))
def test_a_program_that_comes_again_is_the_same(program: list[tuple[Move, int, int, int]]) -> None:
    """Replayed in fused kernels and planned memory, it gives eager's numbers but for the order of sums."""
    wanted = run(program, "cpu")
    for _ in range(4):
        got = run(program, "lazy")
        assert len(got) == len(wanted)
        assert all(map(close, got, wanted))


@hypothesis.settings(max_examples=50)
@hypothesis.given(PROGRAMS, st.integers(1, 12))
def test_a_tight_budget_changes_no_bit(program: list[tuple[Move, int, int, int]], steps: int) -> None:
    """Making what is pending at any place changes nothing but when it is made."""
    forget()
    before = tc.lazy.budget()
    tc.lazy.budget(steps=steps)
    try:
        got = run(program, "lazy")
    finally:
        tc.lazy.budget(before[0], steps=before[1])
    assert got == run(program, "cpu")
