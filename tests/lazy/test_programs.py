"""Random programs: what is written down and run later gives the bits of what runs at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import strategies as st

import tensorcore as tc

SHAPE = (3, 4)
# Each takes the tensors so far and three whole numbers that decide.
Move = Callable[[list[tc.Tensor], int, int, int], tc.Tensor | None]


def pick(tensors: list[tc.Tensor], i: int) -> tc.Tensor:
    return tensors[i % len(tensors)]


def part_of(x: tc.Tensor, i: int) -> tc.Tensor:
    """A view of one kind or another."""
    views = [
        lambda: x.t() if x.ndim == 2 else x.unsqueeze(0),
        lambda: x[..., i % x.shape[-1] :] if x.ndim else x.view(1),
        lambda: x[0] if x.ndim and x.shape[0] else x.unsqueeze(-1),
        lambda: x.reshape(-1),
        lambda: x.detach(),
        lambda: x.expand(2, *x.shape),
        lambda: x.as_strided((x.shape[0],), (x.stride(0),), x.storage_offset()) if x.ndim else x.view(1),
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
        if x.untyped_storage().nbytes() == 0 or c % 2 == 0:
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


MOVES: list[Move] = [
    view, view, unary, binary, binary, reduction, product, write, write, recorded_write, random, dropout, look, chosen, rows,
    heads, between,
]  # fmt: skip
PROGRAMS = st.lists(st.tuples(st.sampled_from(MOVES), *[st.integers(0, 30)] * 3), min_size=1, max_size=14)


def steps_of(x: tc.Tensor) -> list[int]:
    """The strides; that of a dim of one element leads nowhere, and kernels leave there what they like."""
    return [step for step, size in zip(x.stride(), x.shape, strict=True) if size != 1]


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
    values = [
        (one.detach().cpu().numpy().tobytes(), tuple(one.shape), steps_of(one), one.storage_offset(), one.dtype)
        for one in tensors
    ]
    return [*values, errors, [one._version for one in tensors], tc.get_rng_state().tolist()]


@hypothesis.settings(max_examples=150)
@hypothesis.given(PROGRAMS)
def test_a_program_gives_the_same_bits(program: list[tuple[Move, int, int, int]]) -> None:
    """Views, writes, broadcasting, random numbers, decisions and a backward pass: bits, layout and versions as eagerly."""
    assert run(program, "lazy") == run(program, "cpu")


@hypothesis.settings(max_examples=50)
@hypothesis.given(PROGRAMS, st.integers(1, 12))
def test_a_tight_budget_changes_no_bit(program: list[tuple[Move, int, int, int]], steps: int) -> None:
    """Making what is pending at any place changes nothing but when it is made."""
    before = tc.lazy.budget()
    tc.lazy.budget(steps=steps)
    try:
        got = run(program, "lazy")
    finally:
        tc.lazy.budget(before[0], steps=before[1])
    assert got == run(program, "cpu")
