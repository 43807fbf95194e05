"""Module: members, state, modes, hooks, text. Texts of errors are those that PyTorch's users search for."""

import copy
import gc
import pickle
import warnings
import weakref

import pytest

import tensorcore as tc
from tensorcore import nn


class Net(nn.Module):
    """Two layers, a buffer that is saved and one that is not."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Linear(3, 1, bias=False)
        self.register_buffer("count", tc.zeros(1))
        self.register_buffer("scratch", tc.zeros(2), persistent=False)

    def forward(self, x, scale=1.0):
        return self.second(self.first(x)) * scale


def test_assigned_members_are_listed_by_dotted_name():
    """Parameters, buffers and modules that are assigned appear under their attributes' names, in order."""
    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["first.weight", "first.bias", "second.weight"]
    assert [name for name, _ in net.named_buffers()] == ["count", "scratch"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "second"]
    assert list(net.children()) == [net.first, net.second]


def test_a_shared_parameter_is_listed_once():
    """A parameter under two names counts once, and twice when duplicates are asked for."""
    net = Net()
    net.second = nn.Linear(3, 3)
    net.second.weight = net.first.bias
    assert [name for name, _ in net.named_parameters()] == ["first.weight", "first.bias", "second.bias"]
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4


def test_the_state_has_parameters_and_persistent_buffers():
    """``state_dict`` lists detached tensors over the same memory, and leaves non-persistent buffers out."""
    net = Net()
    state = net.state_dict()
    assert list(state) == ["count", "first.weight", "first.bias", "second.weight"]
    assert state["first.weight"].data_ptr() == net.first.weight.data_ptr()
    assert not state["first.weight"].requires_grad
    assert net.state_dict(keep_vars=True)["first.weight"] is net.first.weight


def test_a_state_comes_back():
    """Loading copies the values, keeps the parameter objects, and says that everything matched."""
    source, target = Net(), Net()
    weight = target.first.weight
    assert str(target.load_state_dict(source.state_dict())) == "<All keys matched successfully>"
    assert target.first.weight is weight
    assert target.first.weight.tolist() == source.first.weight.tolist()
    assert target.first.weight.data_ptr() != source.first.weight.data_ptr()


def test_assigning_a_state_takes_its_tensors():
    """With ``assign`` the parameters are the given tensors themselves."""
    source, target = Net(), Net()
    target.load_state_dict(source.state_dict(), assign=True)
    assert target.first.weight.data_ptr() == source.first.weight.data_ptr()
    assert isinstance(target.first.weight, nn.Parameter)


def test_all_faults_of_a_state_come_in_one_error():
    """Missing and unexpected keys and wrong shapes are listed together, and nothing is loaded."""
    net = Net()
    before = net.first.bias.tolist()
    state = {"first.weight": tc.ones(3, 2), "first.bias": tc.ones(4), "odd": tc.ones(1), "count": tc.ones(1)}
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Net:\n"
        '\tMissing key(s) in state_dict: "second.weight". \n'
        '\tUnexpected key(s) in state_dict: "odd". \n'
        "\tsize mismatch for first.bias: copying a param with shape torch.Size([4]) from checkpoint, the "
        "shape in current "
        "model is torch.Size([3])."
    )
    assert net.first.bias.tolist() == before
    assert net.count.item() == 0


def test_a_loose_load_reports_what_did_not_match():
    """With ``strict=False`` what fits is loaded and the rest is returned."""
    net = Net()
    found = net.load_state_dict({"count": tc.ones(1), "odd": tc.ones(1)}, strict=False)
    assert net.count.item() == 1
    assert found.missing_keys == ["first.weight", "first.bias", "second.weight"]
    assert found.unexpected_keys == ["odd"]


def test_extra_state_travels_along():
    """What ``get_extra_state`` gives comes back through ``set_extra_state``."""

    class Extra(nn.Module):
        value = 1

        def get_extra_state(self):
            return self.value

        def set_extra_state(self, state):
            self.value = state

    source, target = Extra(), Extra()
    source.value = 5
    assert dict(source.state_dict()) == {"_extra_state": 5}
    target.load_state_dict(source.state_dict())
    assert target.value == 5


def test_a_load_hook_may_forgive():
    """A post hook that clears the missing keys lets a strict load succeed."""
    net = Net()
    net.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    net.load_state_dict({"count": tc.ones(1)})
    assert net.count.item() == 1


@pytest.mark.parametrize(
    "act, error, text",
    [
        (lambda net: net.register_buffer("first.x", None), KeyError, "t contain"),
        (lambda net: net.register_buffer("first", None), KeyError, "already exists"),
        (lambda net: net.register_parameter("", None), KeyError, "empty string"),
        (lambda net: net.register_parameter("p", tc.ones(1)), TypeError, "cannot assign 'torch.FloatTensor'"),
        (lambda net: setattr(net.first, "weight", tc.ones(1)), TypeError, "as parameter 'weight'"),
        (lambda net: setattr(net, "first", 3), TypeError, "as child module 'first'"),
        (lambda net: setattr(net, "count", 3), TypeError, "as buffer 'count'"),
        (lambda net: net.add_module("m", 3), TypeError, "int is not a Module subclass"),
        (lambda net: net.train(1), ValueError, "expected to be boolean"),
        (lambda net: net.to(tc.int64), TypeError, "only accepts floating point"),
        (lambda net: net.missing, AttributeError, "'Net' object has no attribute 'missing'"),
        (lambda net: net.get_submodule("first.nothing"), AttributeError, "has no attribute `nothing`"),
        (lambda net: net.get_parameter("count"), AttributeError, "is not an nn.Parameter"),
        (lambda net: nn.Module()(1), NotImplementedError, "missing the required"),
        (lambda net: net.load_state_dict(3), TypeError, "Expected state_dict to be dict-like"),
    ],
)
def test_misuse_is_refused(act, error, text):
    """Each misuse raises PyTorch's exception with PyTorch's words in it."""
    with pytest.raises(error) as caught:
        act(Net())
    assert text in str(caught.value)


def test_assignment_before_init_is_refused():
    """A subclass that forgot ``super().__init__()`` is told so."""

    class Forgetful(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(tc.ones(1))

    with pytest.raises(AttributeError, match=r"before Module\.__init__"):
        Forgetful()


def test_a_buffer_object_registers_itself():
    """An assigned ``nn.Buffer`` becomes a buffer, saved or not as it says."""
    net = nn.Module()
    net.kept = nn.Buffer(tc.ones(1))
    net.dropped = nn.Buffer(tc.ones(1), persistent=False)
    assert [name for name, _ in net.named_buffers()] == ["kept", "dropped"]
    assert list(net.state_dict()) == ["kept"]


def test_modes_reach_every_module():
    """``train`` and ``eval`` set the mode of all modules below."""
    net = Net().eval()
    assert [module.training for module in net.modules()] == [False, False, False]
    assert net.train() is net
    assert all(module.training for module in net.modules())


def test_conversion_keeps_parameter_objects():
    """``double()`` changes floating tensors in place, gradients too, and leaves integers alone."""
    net = Net()
    net.register_buffer("number", tc.tensor(3))
    weight = net.first.weight
    net(tc.ones(1, 2)).sum().backward()
    net.double()
    assert net.first.weight is weight
    assert weight.dtype is tc.float64
    assert weight.grad.dtype is tc.float64
    assert net.count.dtype is tc.float64
    assert net.number.dtype is tc.int64
    assert net(tc.ones(1, 2, dtype=tc.float64)).dtype is tc.float64


def test_zero_grad_forgets_or_fills():
    """Gradients become None by default, zeros on request."""
    net = Net()
    net(tc.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.first.bias.grad.tolist() == [0, 0, 0]
    net.zero_grad()
    assert net.first.bias.grad is None


def test_apply_visits_children_first():
    """``apply`` calls the function on every module, children before their parent."""
    seen = []
    Net().apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "Linear", "Net"]


def test_forward_hooks_may_replace_arguments_and_output():
    """A pre-hook's value replaces the arguments, a hook's value the output; removing them ends that."""
    layer = nn.Identity()
    before = layer.register_forward_pre_hook(lambda module, args: args[0] + 1)
    after = layer.register_forward_hook(lambda module, args, output: output * 10)
    assert layer(tc.tensor(1.0)).item() == 20
    before.remove()
    assert layer(tc.tensor(1.0)).item() == 10
    after.remove()
    assert layer(tc.tensor(1.0)).item() == 1


def test_hooks_with_kwargs_see_and_change_them():
    """``with_kwargs`` hooks get the keyword arguments, and pre-hooks may return new ones."""
    net = Net()
    seen = []
    net.register_forward_pre_hook(lambda module, args, kwargs: (args, {"scale": 0.0}), with_kwargs=True)
    net.register_forward_hook(lambda module, args, kwargs, output: seen.append(kwargs), with_kwargs=True)
    assert net(tc.ones(1, 2), scale=3.0).item() == 0
    assert seen == [{"scale": 0.0}]


def test_a_prepended_hook_comes_first():
    """``prepend`` puts a hook before those that are there."""
    layer, order = nn.Identity(), []
    layer.register_forward_hook(lambda *_: order.append("second"))
    layer.register_forward_hook(lambda *_: order.append("first"), prepend=True)
    layer(1)
    assert order == ["first", "second"]


def test_an_always_called_hook_sees_a_failed_forward():
    """``always_call`` hooks run when the forward raises, with None as output, and the error goes on."""
    layer, seen = nn.Linear(2, 2), []
    layer.register_forward_hook(lambda module, args, output: seen.append(output), always_call=True)
    with pytest.raises(RuntimeError):
        layer(tc.ones(1, 3))
    assert seen == [None]


def test_backward_hooks_see_the_gradients():
    """A full backward hook gets the gradients of inputs and outputs and may replace those of the inputs."""
    layer = nn.Linear(2, 1, bias=False)
    with tc.no_grad():
        layer.weight.copy_(tc.tensor([[3.0, 4.0]]))
    seen = []
    layer.register_full_backward_pre_hook(lambda module, grads: (grads[0] * 2,))

    def hook(module, grad_input, grad_output):
        seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 10,)

    layer.register_full_backward_hook(hook)
    x = tc.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert seen == [([[6.0, 8.0]], [[2.0]])]
    assert x.grad.tolist() == [[60.0, 80.0]]
    assert layer.weight.grad.tolist() == [[2.0, 2.0]]


def test_a_backward_hook_without_input_gradients_still_fires():
    """Where no input asks for a gradient the hook gets None for it."""
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda module, gi, go: seen.append((gi, go[0].tolist())))
    layer(tc.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])]


def test_hooks_for_all_modules():
    """A global hook runs for every module until it is removed."""
    seen = []
    with nn.hooks.register_module_forward_hook(lambda module, args, output: seen.append(type(module).__name__)):
        Net()(tc.ones(1, 2))
    Net()(tc.ones(1, 2))
    assert seen == ["Linear", "Linear", "Net"]


def test_handles_for_hooks_of_one_s_own():
    """A program keeps hooks under the ids of handles: each takes its own out again, and what is noted beside it."""
    hooks, beside = {}, {}
    handles = [tc.utils.hooks.RemovableHandle(hooks, extra_dict=extra) for extra in (None, beside, [beside, {}])]
    assert hooks == beside == {}
    for one in handles:
        hooks[one.id] = beside[one.id] = "hook"
    with handles[1]:
        assert len(hooks) == len(beside) == 3
    handles[0].remove()
    assert ([*hooks], [*beside]) == ([handles[2].id], [handles[0].id, handles[2].id])
    handles[2].remove()
    handles[2].remove()
    assert (hooks, [*beside]) == ({}, [handles[0].id])


def test_a_module_is_copied_and_pickled_whole():
    """Copies have the same values in memory of their own, and hooks of files survive."""
    net = Net()
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert twin.first.weight.tolist() == net.first.weight.tolist()
        assert twin.first.weight.data_ptr() != net.first.weight.data_ptr()
        assert isinstance(twin.first.weight, nn.Parameter)
        assert list(twin.state_dict()) == list(net.state_dict())


def test_cpu_and_cuda_do_not_ask_to():
    """A module may say where it goes in ``to`` by calling ``cpu``, which moves it without asking ``to`` again."""

    class Moved(Net):
        def to(self, device):
            return self.cpu() if device == "cpu" else self.cuda()

    net = Moved()
    assert net.to("cpu") is net
    assert net.first.weight.device.type == "cpu"
    if not tc.cuda.is_available():
        with pytest.raises((RuntimeError, AssertionError)):
            net.to("cuda")


def test_a_module_is_freed_at_once():
    """A used module hangs in no reference cycle."""
    gc.disable()
    try:
        net = Net()
        net(tc.ones(1, 2)).sum().backward()
        gone = weakref.ref(net)
        del net
        assert gone() is None
    finally:
        gc.enable()


def test_containers_behave_like_lists_and_dicts():
    """Sequential, ModuleList and ModuleDict index, slice, append, insert, delete and keep their names without gaps."""
    row = nn.Sequential(nn.ReLU(), nn.Tanh())
    row.append(nn.Sigmoid()).insert(1, nn.Identity())
    del row[0]
    assert [type(one).__name__ for one in row] == ["Identity", "Tanh", "Sigmoid"]
    assert [name for name, _ in row.named_children()] == ["0", "1", "2"]
    assert len(row[1:]) == 2
    assert isinstance(row[-1], nn.Sigmoid)
    several = nn.ModuleList([nn.ReLU()]) + nn.ModuleList([nn.Tanh()])
    assert len(several) == 2
    named = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
    assert list(named) == ["b", "a"]
    assert isinstance(named.pop("a"), nn.Tanh)
    with pytest.raises(IndexError, match="out of range"):
        row[3]


def test_parameter_containers_register():
    """ParameterList and ParameterDict make parameters of tensors, and list them."""
    several = nn.ParameterList([tc.ones(2), tc.zeros(1)])
    named = nn.ParameterDict({"a": tc.ones(2)})
    assert [name for name, _ in several.named_parameters()] == ["0", "1"]
    assert list(named.state_dict()) == ["a"]
    assert named["a"].requires_grad


@pytest.mark.oracle
@pytest.mark.parametrize(
    "make",
    [
        lambda nn: nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Flatten()), nn.Dropout(0.25)),
        lambda nn: nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), nn.Sequential(nn.Tanh(), nn.GELU())]),
        lambda nn: nn.ModuleDict({"a": nn.Conv2d(1, 2, 3, padding=1, bias=False), "b": nn.ModuleList()}),
        lambda nn: nn.ParameterList([nn.Parameter(nn.Linear(2, 3).weight)]),
        lambda nn: nn.ParameterDict({"w": nn.Parameter(nn.Linear(2, 3).weight)}),
        lambda nn: nn.Module(),
    ],
)
def test_printed_as_pytorch_prints(make, torch):
    """The text of nested modules is PyTorch's, character for character."""
    assert repr(make(nn)) == repr(make(torch.nn))


@pytest.mark.oracle
def test_load_errors_read_as_pytorchs(torch):
    """The one error of a load that cannot succeed reads as PyTorch's."""
    texts = []
    for library in (tc, torch):
        net = library.nn.Sequential(library.nn.Linear(2, 3), library.nn.BatchNorm1d(3))
        state = {"0.weight": library.ones(3, 3), "1.weight": 3, "2.bias": library.ones(1)}
        with pytest.raises(RuntimeError) as caught:
            net.load_state_dict(state)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_an_old_keyword_warns():
    """``size_average`` still works and says what to write instead."""
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.MSELoss()
