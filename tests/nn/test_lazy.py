"""Modules that learn their shapes, modules without values, and the names that programs look for."""

import copy
import pickle

import pytest

import tensorcore as tc
from tensorcore import nn


def test_a_lazy_module_becomes_an_ordinary_one():
    """The first call gives the parameters their shapes; they stay the objects that an optimizer was given."""
    layer = nn.LazyLinear(3)
    weight = layer.weight
    assert isinstance(weight, nn.UninitializedParameter)
    assert isinstance(weight, nn.Parameter)
    assert layer.has_uninitialized_params()
    optimizer = tc.optim.SGD(layer.parameters(), lr=1.0)
    layer(tc.ones(1, 4)).sum().backward()
    assert type(layer) is nn.Linear
    assert layer.in_features == 4
    assert layer.weight is weight
    assert not isinstance(weight, nn.UninitializedParameter)
    before = weight.detach().clone()
    optimizer.step()
    assert (weight == before - 1).all()
    assert not layer._forward_pre_hooks


def test_lazy_modules_convert_copy_and_pickle():
    """Without shapes yet they take another dtype, and their copies are lazy modules of their own."""
    layer = nn.Sequential(nn.LazyConv1d(2, 1), nn.LazyBatchNorm1d()).double()
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert twin(tc.ones(1, 3, 2, dtype=tc.float64)).dtype is tc.float64
        assert type(twin[1]) is nn.BatchNorm1d
    assert layer[0].has_uninitialized_params()


def test_states_of_lazy_modules():
    """A state with shapes gives them; one without leaves them open; and an ordinary module refuses the latter."""
    lazy, plain = nn.LazyLinear(3), nn.Linear(4, 3)
    assert repr(list(lazy.state_dict().values())) == "[<UninitializedParameter>, <UninitializedParameter>]"
    nn.LazyLinear(3).load_state_dict(lazy.state_dict())
    with pytest.raises(RuntimeError) as caught:
        plain.load_state_dict(lazy.state_dict())
    assert str(caught.value).count("uninitialized") == 2
    lazy.load_state_dict(plain.state_dict())
    assert lazy.weight.tolist() == plain.weight.tolist()
    assert lazy(tc.ones(1, 4)).tolist() == plain(tc.ones(1, 4)).tolist()


def test_a_failed_load_leaves_a_lazy_module_lazy():
    """Where one key is wrong nothing is written, not even a shape."""
    lazy = nn.LazyLinear(3)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        lazy.load_state_dict({**nn.Linear(4, 3).state_dict(), "more": tc.ones(1)})
    assert lazy.has_uninitialized_params()


@pytest.mark.parametrize(
    "act, error, text",
    [
        (lambda p: p.shape, RuntimeError, "shape of an uninitialized parameter"),
        (lambda p: p + 1, ValueError, "use an uninitialized parameter"),
        (lambda p: p.numel(), ValueError, "use an uninitialized parameter"),
        (lambda p: nn.LazyConv2d(2, 1)(tc.ones(3)), RuntimeError, "Expected 3D (unbatched) or 4D (batched)"),
        (lambda p: nn.LazyConv2d(3, 1, groups=2)(tc.ones(1, 3, 2, 2)), ValueError, "divisible by groups"),
    ],
)
def test_what_has_no_shape_cannot_be_used(act, error, text):
    """Using a parameter before it has a shape says what to do."""
    with pytest.raises(error) as caught:
        act(nn.UninitializedParameter())
    assert text in str(caught.value)


def test_a_lazy_module_of_ones_own():
    """A class that derives from the mixin shapes its parameters at the first call."""

    class Scale(tc.nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.UninitializedParameter()
            self.seen = nn.UninitializedBuffer()

        def initialize_parameters(self, x):
            if self.has_uninitialized_params():
                self.scale.materialize(x.shape[-1])
                self.seen.materialize((1,), dtype=tc.int64)
                with tc.no_grad():
                    self.scale.fill_(2.0)

        def forward(self, x):
            return x * self.scale

    layer = Scale()
    assert layer(tc.ones(3)).tolist() == [2, 2, 2]
    assert layer.seen.dtype is tc.int64
    assert layer.scale.requires_grad
    assert not layer.seen.requires_grad


def test_a_model_without_values():
    """Inside ``with device("meta")`` models have shapes alone, draw nothing, and get values by to_empty or a state."""
    tc.manual_seed(8)
    expected = tc.rand(1).item()
    tc.manual_seed(8)
    with tc.device("meta"):
        net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.LSTM(3, 2))
    assert tc.rand(1).item() == expected
    assert {one.device.type for one in (*net.parameters(), *net.buffers())} == {"meta"}
    assert tuple(net[:2](tc.ones(4, 2, device="meta")).shape) == (4, 3)
    with pytest.raises(NotImplementedError, match="to_empty"):
        net.to("cpu")
    source = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.LSTM(3, 2))
    with pytest.warns(UserWarning, match="assign=True"):
        net.load_state_dict(source.state_dict())
    net.load_state_dict(source.state_dict(), assign=True)
    assert net[0].weight.tolist() == source[0].weight.tolist()
    assert tc.ones(1).device.type == "cpu"


def test_layers_stand_under_pytorchs_module_names():
    """Programs that name bases and helpers by PyTorch's modules find them."""
    from tensorcore.nn.modules.batchnorm import _BatchNorm
    from tensorcore.nn.modules.utils import _pair

    assert isinstance(nn.BatchNorm2d(3), _BatchNorm)
    assert not isinstance(nn.InstanceNorm2d(3), _BatchNorm)
    assert _pair(3) == (3, 3)
    assert tc.nn.modules.conv.Conv2d is nn.Conv2d
    assert tc.nn.modules.Module is nn.Module
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        tc.nn.modules.conv.Nothing
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        nn.Nothing


def test_the_older_backward_hook_still_fires():
    """Programs that draw class activation maps register hooks by the older name."""
    layer, seen = nn.Linear(2, 1), []
    layer.register_backward_hook(lambda module, gi, go: seen.append(go[0].tolist()))
    layer(tc.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == [[[1.0]]]


def test_arguments_that_nobody_takes_are_refused():
    """``Module()`` takes none, unless a class says that the next one in line does."""

    class Mixin:
        def __init__(self, word):
            self.word = word

    class Both(nn.Module, Mixin):
        call_super_init = True

    assert Both("yes").word == "yes"
    with pytest.raises(TypeError, match="unexpected argument"):
        nn.Module(3)


def test_sync_batch_norm_takes_the_place_of_batch_norms():
    """Conversion keeps parameters, statistics and mode."""
    net = nn.Sequential(nn.Conv1d(1, 2, 1), nn.BatchNorm1d(2)).eval()
    weight = net[1].weight
    made = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert type(made[1]) is nn.SyncBatchNorm
    assert made[1].weight is weight
    assert not made[1].training
