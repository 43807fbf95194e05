"""Tools of nn.utils: parametrizations, pruning, fusion, clipping, modules without values."""

import copy
from importlib import import_module

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.nn.utils import parametrize, prune
from tests.nn.layers import numbers


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).t()

    def right_inverse(self, A):
        return A.triu()


class Halves(nn.Module):
    def forward(self, a, b):
        return a + b

    def right_inverse(self, X):
        return X / 2, X / 2


def test_a_parametrized_weight_is_computed_at_each_access():
    """The trained tensor moves to ``original``; assignment goes through ``right_inverse``; removal leaves the value."""
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    assert (layer.weight == layer.weight.t()).all()
    assert [name for name, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]
    layer.weight = tc.eye(3)
    assert layer.weight.tolist() == tc.eye(3).tolist()
    layer(tc.ones(1, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad[2].tolist() == [0, 0, 1]
    assert type(layer).__name__ == "ParametrizedLinear"
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert isinstance(layer.weight, nn.Parameter)
    assert layer.weight.tolist() == tc.eye(3).tolist()
    assert not parametrize.is_parametrized(layer)


def test_a_parametrization_of_several_tensors():
    """``right_inverse`` may give several originals; what they make can be left, but no single original."""
    layer = nn.Linear(2, 2)
    before = layer.weight.tolist()
    parametrize.register_parametrization(layer, "weight", Halves())
    assert list(layer.state_dict()) == [
        "bias",
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
    ]
    assert layer.weight.tolist() == before
    with pytest.raises(ValueError, match="sequence of tensors"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight.tolist() == before


def test_parametrizations_chain_cache_and_copy():
    """A second one takes the first one's result; inside ``cached`` each is computed once; copies stand alone."""
    calls = []

    class Doubled(nn.Module):
        def forward(self, X):
            calls.append(1)
            return X * 2

    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    once = layer.weight.tolist()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.tolist() == [[2 * x for x in row] for row in once]
    calls.clear()
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert len(calls) == 1
    twin = copy.deepcopy(layer)
    with tc.no_grad():
        twin.parametrizations.weight.original.zero_()
    assert twin.weight.tolist() == [[0, 0], [0, 0]]
    assert layer.weight.tolist() == [[2 * x for x in row] for row in once]


@pytest.mark.parametrize(
    "act, error, text",
    [
        (lambda: parametrize.register_parametrization(nn.Linear(2, 3), "w", Symmetric()), ValueError, "does not have"),
        (
            lambda: parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Flatten(0)),
            ValueError,
            "the shape",
        ),
        (
            lambda: parametrize.remove_parametrizations(nn.Linear(2, 2), "weight"),
            ValueError,
            "not have a parametrization",
        ),
        (lambda: nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), "bias"), ValueError, "Expected a matrix"),
        (lambda: nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), "weight", "qr"), ValueError, "one of"),
        (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2), dim=2), IndexError, "Dimension out of range"),
        (lambda: nn.utils.remove_weight_norm(nn.Linear(2, 2)), ValueError, "not found"),
        (lambda: prune.l1_unstructured(nn.Linear(2, 2), "weight", 1.5), ValueError, "range [0, 1]"),
        (lambda: prune.l1_unstructured(nn.Linear(2, 2), "weight", 5), ValueError, "should be smaller"),
        (lambda: prune.ln_structured(nn.Linear(2, 2), "bias", 1, 2, 0), ValueError, "multidimensional"),
        (lambda: prune.remove(nn.Linear(2, 2), "weight"), ValueError, "has to be pruned"),
        (lambda: nn.utils.skip_init(nn.ReLU), RuntimeError, "'device' arg"),
        (lambda: nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)), AssertionError, "only for eval"),
    ],
)
def test_misuse_is_refused(act, error, text):
    """Each misuse raises PyTorch's exception."""
    with pytest.raises(error) as caught:
        act()
    assert text in str(caught.value)


def test_a_refused_pruning_leaves_the_module_alone():
    """The weight stays the parameter that it was."""
    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError):
        prune.l1_unstructured(layer, "weight", 5)
    assert list(layer.state_dict()) == ["weight", "bias"]
    assert not prune.is_pruned(layer)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "act",
    [
        lambda prune, layer: prune.identity(layer, "weight"),
        lambda prune, layer: prune.random_unstructured(layer, "weight", 0.3),
        lambda prune, layer: prune.l1_unstructured(layer, "weight", 5),
        lambda prune, layer: prune.l1_unstructured(layer, "bias", 0.5, importance_scores=layer.bias.abs() * -1),
        lambda prune, layer: prune.random_structured(layer, "weight", 0.4, dim=1),
        lambda prune, layer: prune.ln_structured(layer, "weight", 2, n=2, dim=0),
        lambda prune, layer: prune.ln_structured(
            prune.l1_unstructured(layer, "weight", 0.3), "weight", 0.5, n=float("inf"), dim=-1
        ),
        lambda prune, layer: prune.l1_unstructured(prune.random_structured(layer, "weight", 1, 0), "weight", 0.5),
        lambda prune, layer: prune.global_unstructured(
            [(layer, "weight"), (layer, "bias")], prune.L1Unstructured, amount=0.4
        ),
    ],
)
def test_pruning_equals_pytorchs(act, torch):
    """Masks, names and pruned values are PyTorch's, and stay when the mask is made permanent."""
    found = []
    for lib in (tc, torch):
        lib.manual_seed(5)
        layer = lib.nn.Linear(4, 5)
        ways = import_module(f"{lib.__name__}.nn.utils.prune")
        act(ways, layer)
        state = {name: one.numpy() for name, one in layer.state_dict().items()}
        made = layer(lib.tensor(numbers(2, 4))).detach().numpy()
        for name in ("weight", "bias"):
            if f"{name}_mask" in state:
                ways.remove(layer, name)
        found.append((state, made, {name: one.numpy() for name, one in layer.state_dict().items()}))
    (ours, result, after), (theirs, expected, wanted) = found
    assert list(ours) == list(theirs)
    assert list(after) == list(wanted)
    for name, one in (theirs | wanted).items():
        np.testing.assert_array_equal((ours | after)[name], one, err_msg=name)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "layer, norm, shape",
    [
        (lambda: nn.Conv2d(2, 3, 2, bias=False), lambda: nn.BatchNorm2d(3), (1, 2, 4, 4)),
        (lambda: nn.ConvTranspose1d(2, 3, 2), lambda: nn.BatchNorm1d(3, affine=False), (2, 2, 4)),
        (lambda: nn.Linear(4, 3), lambda: nn.BatchNorm1d(3), (2, 4)),
    ],
)
def test_fusion_computes_the_same(layer, norm, shape):
    """A layer with the norm behind it made part of it gives what both gave."""
    first, second = layer(), norm()
    second(first(tc.tensor(numbers(*shape)) * 3))
    first.eval(), second.eval()
    x = tc.tensor(numbers(*shape, seed=2))
    if isinstance(first, nn.Linear):
        fused = nn.utils.fuse_linear_bn_eval(first, second)
    else:
        fused = nn.utils.fuse_conv_bn_eval(first, second, transpose=isinstance(first, nn.ConvTranspose1d))
    np.testing.assert_allclose(fused(x).detach().numpy(), second(first(x)).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", [2.0, 1.0, float("inf")])
def test_clipping_equals_pytorchs(kind, torch):
    """The norm from before and the gradients after are PyTorch's."""
    found = []
    for lib in (tc, torch):
        tensors = [lib.nn.Parameter(lib.zeros(3, 2)), lib.nn.Parameter(lib.zeros(4)), lib.nn.Parameter(lib.zeros(1))]
        tensors[0].grad, tensors[1].grad = lib.tensor(numbers(3, 2)), lib.tensor(numbers(4, seed=9))
        total = lib.nn.utils.clip_grad_norm_(iter(tensors), 0.5, kind)
        found.append([total, tensors[0].grad, tensors[1].grad])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


def test_clipping_refuses_what_is_not_finite():
    """With ``error_if_nonfinite`` a NaN raises, and the gradients stay."""
    one = nn.Parameter(tc.zeros(2))
    one.grad = tc.tensor([float("nan"), 1.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_([one], 1.0, error_if_nonfinite=True)
    assert one.grad[1].item() == 1.0


def test_a_skipped_initialisation_has_shapes_alone():
    """``skip_init`` draws no numbers."""
    tc.manual_seed(8)
    before = tc.rand(1).item()
    tc.manual_seed(8)
    layer = nn.utils.skip_init(nn.Linear, 3, 2)
    assert tuple(layer.weight.shape) == (2, 3)
    assert tc.rand(1).item() == before


def test_a_weight_in_its_older_normed_form():
    """``weight_norm`` trains length and direction, and ``remove_weight_norm`` gives the weight back."""
    layer = nn.Linear(2, 3)
    before = layer.weight.detach().clone()
    nn.utils.weight_norm(layer)
    assert list(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
    layer(tc.ones(1, 2)).sum().backward()
    assert layer.weight_g.grad is not None
    newer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
    newer.load_state_dict(layer.state_dict())
    np.testing.assert_allclose(newer.weight.detach().numpy(), before.numpy(), rtol=1e-6)
    nn.utils.remove_weight_norm(layer)
    np.testing.assert_allclose(layer.weight.detach().numpy(), before.numpy(), rtol=1e-6)
    assert list(layer.state_dict()) == ["bias", "weight"]


def test_a_module_as_a_function_of_its_parameters():
    """``functional_call`` takes other tensors for one call."""
    layer = nn.Linear(2, 1)
    made = nn.utils.stateless.functional_call(layer, {"weight": tc.ones(1, 2), "bias": tc.zeros(1)}, tc.ones(1, 2))
    assert made.tolist() == [[2.0]]
    assert isinstance(layer.weight, nn.Parameter)
    with nn.utils.stateless._reparametrize_module(layer, {"bias": tc.full((1,), 5.0)}):
        assert layer.bias.tolist() == [5.0]
        assert isinstance(layer.weight, nn.Parameter)
    assert isinstance(layer.bias, nn.Parameter)
