"""Checkpoints, where the words of the error or the count of the runs matter."""

from __future__ import annotations

import pytest

import tensorcore as t
from tensorcore.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, set_checkpoint_early_stop


def leaf(*values: float) -> t.Tensor:
    return t.tensor(values, requires_grad=True)


def test_another_number_of_saved_tensors_is_an_error() -> None:
    """The message counts both."""
    runs = []

    def changing(x):
        runs.append(1)
        return x.exp().exp() if len(runs) == 1 else x.exp()

    y = checkpoint(changing, leaf(1.0), use_reentrant=False)
    with pytest.raises(CheckpointError, match="got 2 in the forward and 1 in the recomputation"):
        y.backward()


def test_other_shapes_are_an_error_unless_the_check_is_off() -> None:
    """``determinism_check="none"`` takes what comes."""
    runs = []

    def changing(x):
        runs.append(1)
        return (x if len(runs) == 1 else x.reshape(2, 1)).exp().sum()

    y = checkpoint(changing, leaf(1.0, 2.0), use_reentrant=False)
    with pytest.raises(CheckpointError, match=r"shape \[2, 1\], torch.float32 on cpu, before shape \[2\]"):
        y.backward()
    runs.clear()
    checkpoint(changing, leaf(1.0, 2.0), use_reentrant=False, determinism_check="none").backward()
    assert len(runs) == 2


def test_an_argument_that_was_written_is_an_error() -> None:
    """What is computed again must start from the same values."""
    x = leaf(1.0)
    h = x * 2.0
    y = checkpoint(lambda v: v.exp(), h, use_reentrant=False)
    h.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_recomputation_stops_early() -> None:
    """What comes after the last saved tensor does not run again, unless told to."""
    log = []

    def function(x):
        y = x.exp()
        log.append("after")
        return y + 1.0

    checkpoint(function, leaf(1.0), use_reentrant=False).backward()
    assert log == ["after"]
    checkpoint(function, leaf(1.0), use_reentrant=False, early_stop=False).backward()
    assert log == ["after"] * 3
    with set_checkpoint_early_stop(False):
        checkpoint(function, leaf(1.0), use_reentrant=False).backward()
    assert log == ["after"] * 5


def test_a_function_that_catches_exceptions_cannot_catch_the_early_stop() -> None:
    """The end of the recomputation is no Exception."""
    log = []

    def function(x):
        try:
            return x.exp()
        except Exception:
            log.append("caught")
            raise

    x = leaf(0.0)
    checkpoint(function, x, use_reentrant=False).backward()
    assert log == []
    assert x.grad.tolist() == [1.0]


def test_contexts_go_around_both_runs() -> None:
    """``context_fn`` gives one for the forward and one for the recomputation."""
    log = []

    class Noted:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            log.append(self.name)

        def __exit__(self, *exc):
            pass

    checkpoint(t.exp, leaf(1.0), use_reentrant=False, context_fn=lambda: (Noted("forward"), Noted("again"))).backward()
    assert log == ["forward", "again"]


def test_nested_checkpoints_recompute_each_level() -> None:
    """The inner one's arguments are forgotten with the rest of the outer one."""
    x = leaf(0.5)

    def inner(v):
        return v.exp().exp()

    def outer(v):
        return checkpoint(inner, v.exp(), use_reentrant=False).exp()

    checkpoint(outer, x, use_reentrant=False).backward()
    z = leaf(0.5)
    z.exp().exp().exp().exp().backward()
    assert x.grad.tolist() == z.grad.tolist()


def test_a_function_that_differentiates_inside() -> None:
    """A force inside a checkpoint, as the gradient of an energy, is recomputed too."""

    def function(x):
        (force,) = t.autograd.grad((x * x * x).sum(), x, create_graph=True)
        return (force * force).sum()

    x, z = leaf(2.0), leaf(2.0)
    checkpoint(function, x, use_reentrant=False).backward()
    function(z).backward()
    assert x.grad.tolist() == z.grad.tolist() == [288.0]


def test_without_the_choice_it_warns() -> None:
    """``use_reentrant`` is to be passed."""
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed"):
        checkpoint(t.exp, leaf(1.0))


def test_a_reentrant_checkpoint_of_constants_warns() -> None:
    """Its result requires no gradient."""
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        assert not checkpoint(t.exp, t.ones(1), use_reentrant=True).requires_grad


@pytest.mark.parametrize("reentrant", [False, True])
def test_random_numbers_are_the_same_again(reentrant: bool) -> None:
    """The mask of the recomputation is that of the forward, and the stream goes on where it was."""
    rand = getattr(t, "rand", None)
    if rand is None:
        pytest.skip("no random numbers in this build")
    masks = []

    def function(x):
        masks.append(rand(3).tolist())
        return (x * x).exp()

    t.manual_seed(8)
    y = checkpoint(function, leaf(1.0, 2.0, 3.0), use_reentrant=reentrant, early_stop=False)
    following = t.get_rng_state().tolist()
    y.sum().backward()
    assert masks[0] == masks[1]
    assert t.get_rng_state().tolist() == following


def test_sequential_parts() -> None:
    """All but the last segment run twice."""
    runs = []

    def part(i):
        def run(x):
            runs.append(i)
            return x.exp() * 0.1

        return run

    x = leaf(0.5)
    checkpoint_sequential([part(i) for i in range(5)], 2, x, use_reentrant=False).backward()
    assert runs == [0, 1, 2, 3, 4, 0, 1]
