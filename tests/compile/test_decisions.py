"""What is decided by values, such as whether a matrix is singular, is a check of a replay; and what checkpoints compute again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.distributions import Bernoulli, Categorical, MultivariateNormal, Normal, kl_divergence
from tensorcore.nn import functional as F
from tensorcore.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tensorcore.utils.checkpoint import checkpoint


def square(scale: float = 1.0) -> Any:
    return tc.randn(4, 4) * scale + 5 * tc.eye(4)


UNITS = [
    lambda x: tc.linalg.solve(x, x.detach().sum(0)),
    lambda x: tc.linalg.solve(x, x.t(), left=False),
    tc.linalg.inv,
    tc.linalg.pinv,
    lambda x: tc.linalg.cholesky(x @ x.t()),
    tc.linalg.svdvals,
    lambda x: tc.linalg.eigvalsh(x + x.t()),
    lambda x: tc.linalg.norm(x, 2),
    lambda x: x.quantile(0.3),
    lambda x: F.binary_cross_entropy(x.sigmoid(), x.detach().cos().square()),
    lambda x: F.gaussian_nll_loss(x, x.detach().flip(0), x.exp()),
    lambda x: Normal(x, x.exp()).log_prob(x.detach().t()),
    lambda x: Categorical(logits=x).entropy(),
    lambda x: kl_divergence(MultivariateNormal(x[0], x @ x.t()), MultivariateNormal(x[1], tc.eye(4))),
]


@pytest.mark.parametrize("function", UNITS)
def test_what_asks_for_values_to_refuse_them_is_replayed(function: Callable[[Any], Any]) -> None:
    """Solvers and factorisations look at values for errors only: results and gradients of replays are those of eager."""
    compiled = tc.compile(function)
    for i in range(4):
        tc.manual_seed(i)
        x = square()
        one, two = x.clone().requires_grad_(), x.clone().requires_grad_()
        expected, made = function(one), compiled(two)
        expected.sum().backward()
        made.sum().backward()
        tc.testing.assert_close(made, expected)
        tc.testing.assert_close(two.grad, one.grad)
    assert (compiled.explain().traces, compiled.explain().replays) == (1, 3)


@pytest.mark.parametrize("op", [lambda x, y: tc.linalg.solve(x, y), lambda x, y: tc.linalg.inv(x) @ y])
def test_a_singular_matrix_is_eagers_error_and_changes_what_eager_changes(op: Callable[[Any, Any], Any]) -> None:
    """A write before the error is made once, and replays go on behind it."""
    counts = [tc.zeros(2), tc.zeros(2)]

    def step(x: Any, y: Any, count: Any) -> Any:
        count.add_(1)
        return op(x, y)

    compiled = tc.compile(step)
    for i in range(5):
        x, y = square() if i != 2 else tc.zeros(4, 4), tc.randn(4, 2)
        answers = []
        for f, count in ((step, counts[0]), (compiled, counts[1])):
            try:
                answers.append(f(x, y, count))
            except tc.linalg.LinAlgError as error:
                answers.append(str(error))
        if i == 2:
            assert answers[0] == answers[1]
            assert "singular" in answers[1]
        else:
            tc.testing.assert_close(answers[1], answers[0])
        assert counts[0].tolist() == counts[1].tolist()
    assert compiled.explain().replays == 3


@pytest.mark.parametrize(
    "refuses, message",
    [
        (lambda x: Normal(0.0, x).log_prob(x), "to satisfy the constraint"),
        (lambda x: Bernoulli(probs=x.clamp(max=1.0)).log_prob(x.detach().round()), "to satisfy the constraint"),
        (lambda x: F.binary_cross_entropy(x, x.detach()), "between 0 and 1"),
    ],
)
def test_a_parameter_that_is_none_raises_in_a_replay_too(refuses: Callable[[Any], Any], message: str) -> None:
    """Distributions and losses that check what they are given are replayed, and refuse what eager refuses."""
    compiled = tc.compile(refuses)
    for i in range(6):
        x = tc.rand(5) * 0.9 + 0.05
        if i == 3:
            x[2] = -1.0
            with pytest.raises(ValueError if "constraint" in message else RuntimeError, match=message):
                compiled(x)
        else:
            compiled(x)
    assert compiled.explain().replays == 4


def test_a_decision_that_comes_out_otherwise_is_traced() -> None:
    """As many squarings as a matrix exponential needs are told apart, and each kind is replayed."""
    compiled = tc.compile(tc.linalg.matrix_exp)
    for i in range(12):
        x = tc.randn(3, 3) * (0.1, 3.0)[i % 2]
        tc.testing.assert_close(compiled(x), tc.linalg.matrix_exp(x))
    assert compiled.explain().replays >= 6


def test_a_decision_behind_a_step_of_an_optimizer_is_no_replay() -> None:
    """Where a second run would take the step again, calls run as they are: parameters are those of eager."""

    def trained(compiled: bool) -> list[Any]:
        tc.manual_seed(0)
        model = nn.Linear(3, 3)
        optimizer = tc.optim.SGD(model.parameters(), lr=0.1)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
            return tc.linalg.inv(x)

        f = tc.compile(step) if compiled else step
        for i in range(5):
            x = tc.randn(3, 3) if i != 3 else tc.zeros(3, 3)
            try:
                f(x)
            except tc.linalg.LinAlgError:
                assert i == 3
        return [one.detach() for one in model.parameters()]

    tc.testing.assert_close(trained(True), trained(False), rtol=0, atol=0)


def test_numbers_that_decide_are_not_drawn_twice() -> None:
    """A decision on drawn numbers that comes out otherwise is traced anew: the generator goes on as in eager."""
    found = []
    for compiled in (False, True):
        f: Any = lambda scale: tc.linalg.matrix_exp(tc.randn(3, 3) * scale)  # noqa: E731
        f = tc.compile(f) if compiled else f
        tc.manual_seed(0)
        found.append([f(tc.tensor(float(i))) for i in range(6)] + [tc.rand(2)])
    tc.testing.assert_close(found[1], found[0])


def test_one_hot_with_a_number_of_classes_is_replayed() -> None:
    """And a class outside is eager's error."""
    encode = tc.compile(lambda x: F.one_hot(x, 5))
    for i in range(4):
        assert encode(tc.tensor([i, 0])).tolist() == F.one_hot(tc.tensor([i, 0]), 5).tolist()
    with pytest.raises(RuntimeError, match="smaller than num_classes"):
        encode(tc.tensor([5, 0]))
    assert encode.explain().replays == 3


def test_a_causal_mask_is_looked_at_once() -> None:
    """A transformer that is given its masks is replayed, and another mask is another call."""
    tc.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1)
    compiled = tc.compile(encoder)
    causal = nn.Transformer.generate_square_subsequent_mask(4)
    for mask in (causal, causal.clone(), tc.zeros(4, 4), causal):
        x = tc.randn(2, 4, 8)
        tc.testing.assert_close(compiled(x, mask=mask), encoder(x, mask=mask))
    assert compiled.explain().replays >= 1


def test_clipping_that_refuses_what_is_not_finite_is_replayed() -> None:
    """And gradients that are not finite raise before anything is clipped."""
    tc.manual_seed(0)
    model = nn.Linear(3, 3)

    @tc.compile
    def step(x: Any) -> Any:
        model.zero_grad()
        model(x).square().sum().backward()
        return nn.utils.clip_grad_norm_(model.parameters(), 0.5, error_if_nonfinite=True)

    for _ in range(3):
        step(tc.randn(2, 3))
        assert float(model.weight.grad.norm()) <= 0.5001
    with pytest.raises(RuntimeError, match="non-finite"):
        step(tc.full((2, 3), float("nan")))
    assert step.explain().replays == 1  # behind a trace without gradients, and one with them


@pytest.mark.parametrize("average", [None, get_ema_multi_avg_fn(0.9)])
def test_the_means_of_a_model_are_those_of_eager(average: Any) -> None:
    """The first update copies and later ones average, each replayed as what it is."""

    def means(compiled: bool) -> Any:
        tc.manual_seed(0)
        model = nn.Linear(3, 3)
        averaged = AveragedModel(model, multi_avg_fn=average)

        def update(x: Any) -> Any:
            averaged.update_parameters(model)
            return averaged(x)

        f = tc.compile(update) if compiled else update
        for _ in range(6):
            with tc.no_grad():
                model.weight.add_(1.0)
                f(tc.ones(1, 3))
        return [one.detach() for one in averaged.parameters()], averaged.n_averaged, f

    expected, count, _ = means(False)
    made, counted, f = means(True)
    tc.testing.assert_close(made, expected)
    assert int(counted) == int(count) == 6
    assert f.explain().replays >= 3


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpointed_step_is_replayed(reentrant: bool) -> None:
    """What is computed again is recorded, and drops what it dropped: parameters and generator go as in eager."""

    def trained(compiled: bool) -> Any:
        tc.manual_seed(0)
        block = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Tanh())
        optimizer = tc.optim.SGD(block.parameters(), lr=0.1)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            y = checkpoint(block, x, use_reentrant=reentrant)
            loss = checkpoint(block, F.dropout(y, 0.5), use_reentrant=reentrant).square().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        f = tc.compile(step) if compiled else step
        losses = [f(tc.randn(4, 3, requires_grad=True)) for _ in range(6)]
        return [*losses, *[one.detach() for one in block.parameters()], tc.rand(2)], f

    expected, _ = trained(False)
    made, f = trained(True)
    tc.testing.assert_close(made, expected)
    assert f.explain().replays == 5


def test_a_checkpoint_in_a_compiled_function_is_computed_again_behind_it() -> None:
    """Its gradients are those of eager, with other draws between forward and backward."""
    tc.manual_seed(0)
    block = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.5), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
    plain = lambda x: checkpoint(block, x, use_reentrant=False) * 2  # noqa: E731
    compiled = tc.compile(plain)
    for i in range(4):
        found = []
        for f in (plain, compiled):
            tc.manual_seed(i)
            x = tc.randn(8, 64, requires_grad=True)
            block.zero_grad()
            y = f(x)
            tc.rand(3)
            y.sum().backward()
            found.append([y, x.grad, *[one.grad for one in block.parameters()], tc.rand(1)])
        tc.testing.assert_close(found[1], found[0])
    assert compiled.explain().replays == 3


def test_writes_to_parts_of_what_requires_grad_are_replayed() -> None:
    """Their backward pass writes to views that show no element twice."""

    def f(x: Any) -> Any:
        y = x * 1
        y[1] = 0
        y[:, 2] = y[:, 0] * 2
        return y.square().sum()

    compiled = tc.compile(f)
    for _ in range(3):
        x = tc.randn(3, 3)
        one, two = x.clone().requires_grad_(), x.clone().requires_grad_()
        f(one).backward()
        compiled(two).backward()
        tc.testing.assert_close(two.grad, one.grad)
    assert compiled.explain().replays == 2


def test_an_array_of_numpys_is_read_as_it_is() -> None:
    """``from_numpy`` inside is replayed while the array holds the same, and traced again where it does not."""
    array = np.ones(3, np.float32)
    f = tc.compile(lambda x: x * tc.from_numpy(array) + tc.as_tensor(np.arange(3, dtype=np.float32)))
    for i in range(6):
        array[0] = i // 3
        assert f(tc.ones(3)).tolist() == [i // 3, 2.0, 3.0]
    assert (f.explain().traces, f.explain().replays) == (2, 4)


def _written(array: Any, x: Any) -> Any:
    tensor = tc.from_numpy(array)
    tensor.add_(x)
    return tensor * 2


def _given_out(array: Any, x: Any) -> Any:
    return tc.from_numpy(array)


def _changed(array: Any, x: Any) -> Any:
    tensor = tc.from_numpy(array)
    array[1] += 1
    return tensor + x


def _of_bytes(array: Any, x: Any) -> Any:
    return tc.frombuffer(array.data.cast("B"), dtype=tc.float32) + x


@pytest.mark.parametrize("function", [_written, _given_out, _changed, _of_bytes])
def test_memory_that_is_shared_with_numpy_stays_shared(function: Callable[..., Any]) -> None:
    """Where a call writes to such memory or hands it out, calls run as they are."""
    arrays = [np.ones(3, np.float32), np.ones(3, np.float32)]
    fs = [function, tc.compile(function)]
    for i in range(4):
        answers = [f(array, tc.ones(3)) for f, array in zip(fs, arrays, strict=True)]
        assert answers[0].tolist() == answers[1].tolist()
        for array in arrays:
            array[2] = i
        assert answers[0].tolist() == answers[1].tolist()
        assert arrays[0].tolist() == arrays[1].tolist()


def test_the_state_of_a_generator_is_that_of_the_call() -> None:
    """Whoever asks for it in a compiled function is answered by the generator."""
    f = tc.compile(lambda x: (x * 2, tc.get_rng_state()))
    for seed in range(4):
        tc.manual_seed(seed)
        assert tc.equal(f(tc.ones(2))[1], tc.get_rng_state())


def test_large_arrays_are_not_compared() -> None:
    """A call that may read more than 1 MiB outside tensors is no replay, and says so; the same values as a tensor are none of that."""
    data = np.zeros(300_000, np.float32)

    @tc.compile
    def shifted(x: tc.Tensor) -> tc.Tensor:
        return x + float(data[0])

    for i in range(4):
        data[0] = i
        assert shifted(tc.zeros(2)).tolist() == [i, i]
    assert shifted.explain().replays == 0
    assert any("1.1 MB outside tensors" in line for line in shifted.explain().reasons)
    tensor = tc.from_numpy(data)
    f = tc.compile(lambda x: x + tensor[0])
    assert [f(tc.zeros(1)).item() for _ in range(3)] == [3.0, 3.0, 3.0]
    assert f.explain().replays == 2
