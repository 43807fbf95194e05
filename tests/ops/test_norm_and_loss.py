"""Normalisations and losses: literal results, running statistics, errors, and what PyTorch answers."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.ops.layers import entropy, loss, norm

X = np.array([[[0.5, -1.0, 2.0], [1.5, 0.0, -0.5]], [[3.0, 1.0, -2.0], [0.25, 0.75, 1.25]]])


def numbers(tensor: Any) -> np.ndarray:
    """Values that NumPy can compare."""
    return np.array(tensor.detach().tolist(), dtype=float)


def close(ours: Any, theirs: Any) -> None:
    """Fail unless values and shape agree."""
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=1e-9, atol=1e-10)


def test_softmax_does_not_overflow() -> None:
    """Large scores are shifted before they are exponentiated."""
    assert tc.softmax(tc.tensor([1000.0, 1000.0]), 0).tolist() == [0.5, 0.5]


def test_soft_margins_of_complex_scores() -> None:
    """They are the logarithm of one and an exponential, whatever the angle: no shift by a size, as real scores have it."""
    score, target = tc.tensor([1 + 2j, -2j]), tc.tensor([1j, -1.0 + 0j])
    made = tc.nn.functional.soft_margin_loss(score, target, reduction="none")
    assert (made - (1 + (-target * score).exp()).log()).abs().max() < 1e-6
    assert tc.nn.functional.soft_margin_loss(score, target) == made.mean()


def test_softmax_refuses_integers() -> None:
    """Integers have no softmax, unless a dtype is named."""
    with pytest.raises(NotImplementedError):
        tc.softmax(tc.arange(3), 0)
    assert tc.softmax(tc.arange(1), 0, dtype=tc.float32).tolist() == [1.0]


def test_batch_norm_moves_the_running_statistics() -> None:
    """By the momentum, towards the batch's mean and its unbiased variance."""
    mean, var = tc.zeros(1), tc.ones(1)
    norm.batch_norm(tc.tensor([[1.0], [3.0]]), mean, var, training=True, momentum=0.5)
    assert (mean.tolist(), var.tolist()) == ([1.0], [1.5])


def test_batch_norm_result_may_be_written_in_place() -> None:
    """Backward needs the input, not the result, so that an activation in place may follow."""
    x = tc.tensor([[1.0], [3.0]], requires_grad=True)
    norm.batch_norm(x, training=True).mul_(2.0).sum().backward()
    assert x.grad.tolist() == [[0.0], [0.0]]


def test_batch_norm_of_one_value_raises() -> None:
    """One value per channel has no variance."""
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm.batch_norm(tc.ones(1, 3), training=True)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: norm.layer_norm(tc.ones(2, 3), (4,)), RuntimeError),
        (lambda: norm.group_norm(tc.ones(2, 3), 2), RuntimeError),
        (lambda: loss.mse_loss(tc.ones(2), tc.ones(2), reduction="no"), ValueError),
        (lambda: entropy.nll_loss(tc.ones(2, 3), tc.tensor([0, 3])), IndexError),
        (lambda: entropy.nll_loss(tc.ones(2, 3), tc.tensor([0])), ValueError),
        (lambda: entropy.cross_entropy(tc.ones(2, 3), tc.tensor([0.0, 1.0])), RuntimeError),
        (lambda: entropy.binary_cross_entropy(tc.tensor([2.0]), tc.tensor([1.0])), RuntimeError),
        (lambda: entropy.binary_cross_entropy_with_logits(tc.ones(2), tc.ones(3)), ValueError),
    ],
)
def test_errors_are_those_of_pytorch(call: Any, error: type[Exception]) -> None:
    """The exception that PyTorch raises in that place."""
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("dtype", [tc.float32, tc.float64, tc.bfloat16])
def test_the_mean_over_ignored_targets_alone_is_nan_with_a_gradient_of_zeros(
    dtype: Any, recorded: bool, smoothing: float
) -> None:
    """A batch in which every target is ignored moves no parameter, also where the walk is recorded."""
    scores = tc.tensor([[0.5, -1.0, 2.0], [1.0, 0.0, -0.5]], dtype=dtype, requires_grad=True)
    loss = tc.nn.functional.cross_entropy(scores, tc.tensor([-100, -100]), label_smoothing=smoothing)
    (gradient,) = tc.autograd.grad(loss, scores, create_graph=recorded)
    assert loss.isnan().item()
    assert gradient.tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("recorded", [False, True])
def test_classes_that_are_ruled_out_have_a_gradient_of_zeros(recorded: bool) -> None:
    """A score of -inf for a class that is not the target's leaves the others' gradients finite."""
    scores = tc.tensor([[0.0, float("-inf"), 0.0]], requires_grad=True)
    loss = tc.nn.functional.cross_entropy(scores, tc.tensor([0]))
    (gradient,) = tc.autograd.grad(loss, scores, create_graph=recorded)
    assert gradient.tolist() == [[-0.5, 0.0, 0.5]]


@pytest.mark.parametrize("dtype", [tc.float32, tc.float64, tc.bfloat16])
def test_a_score_that_is_infinite_and_wrong_costs_infinitely_much(dtype: Any) -> None:
    """Infinite scores, also against a soft target, are an infinite loss and no NaN; their slopes are finite."""
    scores = tc.tensor([math.inf, math.inf, -math.inf, -math.inf], dtype=dtype, requires_grad=True)
    losses = tc.nn.functional.binary_cross_entropy_with_logits(
        scores, tc.tensor([0, 0.5, 0.5, 1]).to(dtype), reduction="none"
    )
    losses.sum().backward()
    assert losses.tolist() == [math.inf] * 4
    assert scores.grad.tolist() == [1.0, 0.5, -0.5, -1.0]


def test_the_gradient_of_certain_chances_is_large_and_finite() -> None:
    """Chances of exactly 0 and 1, as a sigmoid gives them, divide by 1e-12 and not by 0."""
    chances = tc.tensor([0.0, 1.0, 1.0, 0.5], dtype=tc.float64, requires_grad=True)
    loss = tc.nn.functional.binary_cross_entropy(chances, tc.tensor([0.5, 0.75, 1.0, 1.0]).double(), reduction="sum")
    loss.backward()
    assert loss.item() == pytest.approx(50 + 25 + 0.6931471805599453)
    assert chances.grad.tolist() == pytest.approx([-0.5e12, 0.25e12, 0.0, -2.0])


@pytest.mark.parametrize("recorded", [False, True])
def test_squares_of_halves_do_not_overflow_in_rms_norm(recorded: bool) -> None:
    """The gradient of values whose squares float16 does not hold is that of single precision, rounded."""
    x = tc.tensor([[300.0, 400.0]], dtype=tc.float16, requires_grad=True)
    made = tc.nn.functional.rms_norm(x, (2,))
    (gradient,) = tc.autograd.grad(made[0, 0], x, create_graph=recorded)
    assert gradient.tolist() == [[pytest.approx(1.81e-3, rel=0.01), pytest.approx(-1.3576e-3, rel=0.01)]]


def test_ignored_targets_count_for_nothing() -> None:
    """The mean is over the others."""
    made = entropy.nll_loss(tc.tensor([[-1.0, -2.0], [-3.0, -5.0]]), tc.tensor([1, 0]), ignore_index=0)
    assert made.item() == 2.0


def test_target_of_another_size_warns() -> None:
    """A loss that broadcasts is most likely a mistake."""
    with pytest.warns(UserWarning, match="different to the input size"):
        loss.mse_loss(tc.ones(2, 1), tc.ones(2))


def test_decomposition_agrees_with_the_fused_kernel() -> None:
    """A backend without the fused kernel computes the same numbers and gradients."""
    x, w = tc.tensor(X, requires_grad=True), tc.tensor([0.5, 1.0, 2.0], dtype=tc.float64, requires_grad=True)
    options = {"view": X.shape, "dims": (2,), "affine": (3,), "eps": 1e-5, "centre": True}
    fused = norm._layer_norm((x, w, None), options)
    plain = norm._layer_norm.decomposition(x, w, None, **options)
    close(fused, plain)
    g = tc.tensor(X[::-1].copy())
    for a, b in zip(
        tc.autograd.grad((fused * g).sum(), (x, w)), tc.autograd.grad((plain * g).sum(), (x, w)), strict=True
    ):
        close(a, b)


@pytest.mark.oracle
@pytest.mark.parametrize("momentum", [0.1, 1.0])
@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
def test_running_statistics_are_pytorchs(name: str, momentum: float, torch: Any) -> None:
    """In training they move, afterwards they are used."""
    theirs, ours = torch.tensor(X), tc.tensor(X)
    their_stats = [torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)]
    our_stats = [tc.zeros(2, dtype=tc.float64), tc.ones(2, dtype=tc.float64)]
    switch = "training" if name == "batch_norm" else "use_input_stats"
    for training in (True, True, False):
        expected = getattr(torch.nn.functional, name)(theirs, *their_stats, momentum=momentum, **{switch: training})
        close(getattr(norm, name)(ours, *our_stats, momentum=momentum, **{switch: training}), expected)
    for a, b in zip(our_stats, their_stats, strict=True):
        close(a, b)


@pytest.mark.oracle
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 4, 3), (2, 4, 2, 2)])
def test_cross_entropy_is_pytorchs(shape: Any, weighted: bool, smoothing: float, reduction: str, torch: Any) -> None:
    """Classes at every place, some ignored, with weights and smoothing; value, gradient and second gradient."""
    rng = np.random.default_rng(5)
    scores = rng.normal(size=shape)
    classes = rng.integers(0, 4, (shape[0], *shape[2:]) if len(shape) > 1 else ())
    weight = np.array([0.5, 1.0, 2.0, 0.25])
    results = []
    for module, function in ((torch, torch.nn.functional.cross_entropy), (tc, entropy.cross_entropy)):
        x = module.tensor(scores, requires_grad=True)
        made = function(x, module.tensor(classes), module.tensor(weight) if weighted else None, reduction=reduction,
                        ignore_index=2 if len(shape) > 1 else -100, label_smoothing=smoothing)  # fmt: skip
        (g,) = module.autograd.grad((made * made).sum(), x, create_graph=True)
        (g2,) = module.autograd.grad((g * g).sum(), x)
        results.append((made, g, g2))
    for a, b in zip(results[1], results[0], strict=True):
        close(a, b)


@pytest.mark.oracle
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(
    "name",
    ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "binary_cross_entropy", "poisson_nll_loss",
     "binary_cross_entropy_with_logits", "soft_margin_loss"],
)  # fmt: skip
def test_pairwise_losses_are_pytorchs(name: str, reduction: str, torch: Any) -> None:
    """Value and both gradients of the losses of an input and a target."""
    first = np.array([[0.2, 0.7, 0.4], [0.9, 0.5, 0.1]])
    second = np.array([[0.5, 0.1, 1.0], [0.0, 0.3, 0.6]])
    results = []
    for module, place in ((torch, torch.nn.functional), (tc, loss)):
        x, y = module.tensor(first, requires_grad=True), module.tensor(second)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = (getattr(place, name, None) or getattr(entropy, name))(x, y, reduction=reduction)
        (g,) = module.autograd.grad((made * made).sum(), x, create_graph=True)
        results.append((made, g))
    for a, b in zip(results[1], results[0], strict=True):
        close(a, b)


def test_softmax_of_a_turned_tensor_is_row_major(device) -> None:
    """Wherever its elements lay, and also where there are none, the result of a row op lies in row-major order."""
    x = tc.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device=device).t()
    assert [one.stride() for one in (x.softmax(0), x.log_softmax(1))] == [(2, 1), (2, 1)]
    assert [one.stride() for one in tc.topk(x, 0)] == [(1, 1), (1, 1)]


@pytest.mark.oracle
@pytest.mark.parametrize(
    "call", ["x.norm(0)", "x.norm(0, 1).sum()", "T.linalg.vector_norm(x, 0)", "T.dist(x, x.detach() + 1, 0)"]
)
def test_a_count_of_what_is_not_zero_has_no_gradient(call: str, torch: Any) -> None:
    """The norm of order 0 is recorded, and leaves the gradient of what it is of None, as in PyTorch."""
    found = []
    for T in (tc, torch):
        x = T.tensor(X, requires_grad=True)
        made = eval(call)
        made.backward()
        found.append((made.requires_grad, x.grad))
    assert found == [(True, None)] * 2


@pytest.mark.oracle
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtypes", [("float64", "float32"), ("float32", "float64"), ("float16", "float32")])
def test_logits_and_answers_of_two_dtypes(dtypes: Any, weighted: bool, torch: Any) -> None:
    """The loss of yes-or-no scores has the dtype of the answers where that is a floating one, as in PyTorch."""
    found = []
    for T in (tc, torch):
        scores = T.full((3,), 1.5, dtype=getattr(T, dtypes[0]), requires_grad=True)
        weight = T.full((3,), 2.0, dtype=T.float64) if weighted else None
        loss = T.nn.functional.binary_cross_entropy_with_logits(
            scores, T.ones(3, dtype=getattr(T, dtypes[1])), pos_weight=weight
        )
        loss.backward()
        found.append((str(loss.dtype), pytest.approx(loss.item(), rel=1e-3), str(scores.grad.dtype)))
    assert found[0] == found[1]


@pytest.mark.parametrize("place", ["target", "weight", "pos_weight"])
def test_yes_or_no_scores_refuse_complex_numbers_beside_them(place: str) -> None:
    """Answers and weights are real; PyTorch takes complex answers, which are no probabilities."""
    given = {"target": tc.ones(2), place: tc.ones(2, dtype=tc.complex64)}
    with pytest.raises(RuntimeError, match=f"can't be cast to the desired output type .*, got a {place} of complex64"):
        entropy.binary_cross_entropy_with_logits(tc.ones(2), **given)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Using a target size:UserWarning")
@pytest.mark.parametrize(
    "dtypes", [("float64", "float16"), ("float16", "float64"), ("float32", "bfloat16"), ("float32", "int64")]
)
@pytest.mark.parametrize("name", ["l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss"])
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_losses_of_one_number_and_a_row(torch: Any, name: str, dtypes: tuple[str, str], reduction: str) -> None:
    """A tensor without dims is broadcast before dtypes are promoted, so that its own counts as much."""
    answers = []
    for of in (torch, tc):
        one = of.tensor(1.5, dtype=getattr(of, dtypes[0]))
        row = of.tensor([1.0, 2.0, 4.0], dtype=getattr(of, dtypes[1]))
        made = getattr(of.nn.functional, name)(one, row, reduction=reduction)
        answers.append((str(made.dtype), numbers(made)))
    assert answers[0][0] == answers[1][0]
    np.testing.assert_allclose(answers[1][1], answers[0][1], rtol=2e-3)


@pytest.mark.parametrize("target", ["bool", "int64", "float16", "float64"])
@pytest.mark.parametrize("input", ["int64", "float16", "float32"])
@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"])
def test_losses_of_two_dtypes(torch: Any, name: str, input: str, target: str) -> None:
    """Bools, integers and floats beside each other give PyTorch's loss in its dtype, or an error where that has one."""
    made = []
    for T in (torch, tc):
        one = T.tensor([0, 2, 3], dtype=getattr(T, input))
        other = T.tensor([1, 0, 1], dtype=getattr(T, target))
        try:
            loss = getattr(T.nn.functional, name)(one, other)
            made.append((str(loss.dtype), pytest.approx(loss.item(), rel=1e-3)))
        except RuntimeError:
            made.append(None)
    assert made[0] == made[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_huber_loss_without_a_limit(reduction: str, dtype: str, torch: Any) -> None:
    """A delta that no difference is over leaves half squares, whatever it is: 0.5 and 2 for differences of 1 and 2."""
    made = []
    for T in (tc, torch):
        x = T.tensor([1.0, -2.0], dtype=getattr(T, dtype), requires_grad=True)
        each = [T.nn.functional.huber_loss(x, T.zeros_like(x), reduction, delta) for delta in (1e300, math.inf)]
        (each[0].sum() + each[1].sum()).backward()
        made.append([*[one.tolist() for one in each], x.grad.tolist()])
    assert made[0] == made[1]
    assert reduction != "none" or made[0] == [[0.5, 2.0], [0.5, 2.0], [2.0, -4.0]]


@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight:UserWarning")
@pytest.mark.parametrize("weight", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("input", ["float16", "bfloat16", "float32", "float64"])
def test_rms_norm_of_two_dtypes(input: str, weight: str, torch: Any) -> None:
    """A weight of another dtype is promoted, and the result is in the input's, as in PyTorch; both have gradients."""
    made = []
    for T in (tc, torch):
        x = T.tensor([[1.0, 2.0, -4.0]], dtype=getattr(T, input), requires_grad=True)
        scale = T.tensor([0.5, 1.0, 3.0], dtype=getattr(T, weight), requires_grad=True)
        found = T.nn.functional.rms_norm(x, (3,), scale)
        found.sum().backward()
        made.append([found, x.grad, scale.grad])
    for ours, theirs in zip(*made, strict=True):
        assert str(ours.dtype) == str(theirs.dtype)
        np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2.0])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_softmax_of_one_number(name: str, value: float, torch: Any) -> None:
    """Of a tensor without dims it is 1, or 0 as a logarithm, and NaN of NaN and of the infinities."""
    made = getattr(tc.nn.functional, name)(tc.tensor(value), 0)
    wanted = getattr(torch.nn.functional, name)(torch.tensor(value), 0)
    np.testing.assert_array_equal(made.numpy(), wanted.numpy())


@pytest.mark.parametrize("target", [[1, -1, 1], [1.0, -1.0, -1.0], [[1], [-1], [1]]])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_margins_of_yes_or_no(target: Any, reduction: str, torch: Any) -> None:
    """Integer and floating targets give PyTorch's loss and gradient, to 1e-6; a target of a larger shape is refused."""
    made = []
    for library in (tc, torch):
        x = library.tensor([0.5, -200.0, 3.0], requires_grad=True)
        try:
            loss = library.nn.functional.soft_margin_loss(x, library.tensor(target), reduction=reduction)
        except RuntimeError:
            made.append(None)
            continue
        loss.sum().backward()
        made.append((loss.detach().numpy(), x.grad.numpy()))
    assert (made[0] is None) is (made[1] is None) is (target == [[1], [-1], [1]])
    for one, other in zip(*[found or () for found in made], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("weight", [-1, 1.0, [1.0, 1.0]])
def test_weights_of_classes_are_tensors(weight: Any) -> None:
    """A number or a list is refused by name, beside classes and beside chances."""
    scores, classes = tc.ones(2, 2), tc.tensor([0, 1])
    for target in (classes, scores):
        with pytest.raises(TypeError, match="cross_entropy: expected argument 'weight' to be a Tensor"):
            tc.nn.functional.cross_entropy(scores, target, weight)  # type: ignore[arg-type]


def test_cross_entropy_of_certain_chances(torch: Any) -> None:
    """Chances of 0 and 1 have losses of up to 100 and a large gradient, which stays finite; PyTorch's, to 1e-6. Those of an
    empty tensor are none, and NaN or what is over 1 is refused."""
    made = []
    for library in (tc, torch):
        x, weight = library.tensor([0.0, 1.0, 0.0, 0.3], requires_grad=True), library.tensor([1.0, 2.0, 3.0, 0.5])
        target = library.tensor([1.0, 0.0, 0.0, 0.7])
        loss = library.nn.functional.binary_cross_entropy(x, target, weight)
        (g,) = library.autograd.grad(loss, x, create_graph=library is tc)
        plain = library.nn.functional.binary_cross_entropy(x, target, reduction="none")
        made.append([loss.item(), *g.tolist(), *plain.tolist()])
        assert library.nn.functional.binary_cross_entropy(x[:0], target[:0], reduction="sum").item() == 0
        for wrong in (math.nan, 1.5, -0.1):
            with pytest.raises(RuntimeError):
                library.nn.functional.binary_cross_entropy(library.tensor([wrong]), library.tensor([0.5]))
    np.testing.assert_allclose(*made, rtol=1e-6)


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3), (2, 3, 1), (2, 1, 4), (1, 3, 4)])
def test_variances_of_a_normal_loss_may_be_one_for_all_along_a_dim(shape: tuple[int, ...]) -> None:
    """One dim of var, whichever it is, may be of size 1 where the input's is not, or the last one may be left out."""
    x, target = tc.arange(24.0).reshape(2, 3, 4), tc.ones(2, 3, 4)
    var = tc.arange(1.0, 1 + math.prod(shape)).reshape(shape)
    whole = (var if var.ndim == 3 else var[..., None]).expand(2, 3, 4)
    loss = tc.nn.functional.gaussian_nll_loss
    assert tc.equal(loss(x, target, var, reduction="none"), loss(x, target, whole, reduction="none"))


@pytest.mark.parametrize("shape", [(1, 1, 4), (3, 4), (2, 2, 4), (1, 2, 3, 4)])
def test_variances_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    """Two dims of size 1, dims that are missing in front, and sizes that are neither are said to be wrong."""
    with pytest.raises(ValueError, match="var is of incorrect size"):
        tc.nn.functional.gaussian_nll_loss(tc.ones(2, 3, 4), tc.ones(2, 3, 4), tc.ones(shape))
