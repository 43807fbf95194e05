"""Names without a place in PyTorch's documentation that public programs and libraries call all the same."""

from __future__ import annotations

import collections
import importlib
import importlib.util
import pickle

import numpy as np
import pytest

import tensorcore as tc

Pair = collections.namedtuple("Pair", "x y")


def test_where_a_module_is_to_go() -> None:
    """``_C._nn._parse_to`` reads the arguments of ``to`` for modules that override it, as a ``to`` of our own does."""
    parse = tc._C._nn._parse_to
    assert parse(tc.float16) == (None, tc.float16, False, None)
    assert parse("cpu", tc.float64, True) == (tc.device("cpu"), tc.float64, True, None)
    assert parse(tc.zeros(1, dtype=tc.float64), memory_format=tc.channels_last) == (
        tc.device("cpu"), tc.float64, False, tc.channels_last,
    )  # fmt: skip
    assert parse(device="cpu", non_blocking=True) == (tc.device("cpu"), None, True, None)


def test_switches_of_pytorchs_compilers_are_taken() -> None:
    """There is no trace and no fuser to switch; any other name of the compiled module is an AttributeError."""
    assert tc._C._get_tracing_state() is None
    assert tc._C._log_api_usage_once("a.library") is None
    assert tc._C._LinAlgError is tc.linalg.LinAlgError
    tc._C._jit_set_profiling_executor(False)
    tc._C._jit_override_can_fuse_on_gpu(True)
    with pytest.raises(AttributeError):
        tc._C._nothing_of_the_kind
    assert tc.jit._script_if_tracing(len) is len
    assert tc.jit._unwrap_optional(2) == 2
    with pytest.raises(AssertionError):
        tc.jit._unwrap_optional(None)
    assert importlib.import_module("tensorcore.jit.annotations").BroadcastingList2[int].__origin__ is list
    assert tc.cuda._initialized == tc.cuda.is_available()


@pytest.mark.parametrize(
    ("check", "error"),
    [("_check", RuntimeError), ("_check_index", IndexError), ("_check_value", ValueError), ("_check_type", TypeError),
     ("_check_not_implemented", NotImplementedError)],
)  # fmt: skip
def test_checks_raise_their_own_errors(check: str, error: type[Exception]) -> None:
    """Each raises its error with the text of the function it is given, and takes only a bool."""
    call = getattr(tc, check)
    call(True, lambda: 1 / 0)
    with pytest.raises(error, match="no 3"):
        call(False, lambda: "no 3")
    with pytest.raises(error, match="Expected cond to be True"):
        call(False)
    with pytest.raises(TypeError):
        call(tc.tensor(True))


def test_checks_of_values() -> None:
    """A size is not below zero or above its limit, and a tensor of one number is not zero."""
    tc._check_is_size(3, max=3)
    for size, most in ((-1, None), (4, 3)):
        with pytest.raises(RuntimeError):
            tc._check_is_size(size, max=most)
    tc._assert_async(tc.tensor(2.0))
    with pytest.raises(RuntimeError, match="too cold"):
        tc._assert_async(tc.tensor(False), "too cold")


def test_a_buffer_for_all_gradients() -> None:
    """``torch._utils`` lays tensors in one row, and cuts a row into views of their shapes."""
    tensors = [tc.ones(2, 3), tc.zeros(4)]
    flat = tc._utils._flatten_dense_tensors(tensors)
    parts = tc._utils._unflatten_dense_tensors(flat, tensors)
    assert flat.tolist() == [1.0] * 6 + [0.0] * 4
    assert [tuple(one.shape) for one in parts] == [(2, 3), (4,)]
    parts[1].fill_(2.0)
    assert flat[6:].tolist() == [2.0] * 4


def test_functions_by_their_older_room() -> None:
    """``import torch.functional as F`` finds the functions of ``torch``."""
    functional = importlib.import_module("tensorcore.functional")
    assert functional.einsum is tc.einsum
    with pytest.raises(AttributeError):
        functional.nothing_of_the_kind


def test_kinds_of_containers_can_be_looked_up() -> None:
    """A walk of one's own over ``SUPPORTED_NODES`` gives what ``tree_unflatten`` puts together, named tuples as well."""
    trees = importlib.import_module("tensorcore.utils._pytree")

    def taken_apart(tree):
        kind = trees._get_node_type(tree)
        if kind not in trees.SUPPORTED_NODES:
            return [tree], trees.LeafSpec()
        children, context = trees.SUPPORTED_NODES[kind].flatten_fn(tree)
        parts = [taken_apart(one) for one in children]
        leaves = [leaf for found, _ in parts for leaf in found]
        return leaves, trees.TreeSpec(kind, context, [spec for _, spec in parts])

    tree = {"a": Pair(1, (2, 3)), "b": [4]}
    leaves, spec = taken_apart(tree)
    assert leaves == [1, 2, 3, 4]
    assert spec == trees.tree_structure(tree)
    again = trees.tree_unflatten(leaves, spec)
    assert again == tree
    assert type(again["a"]) is Pair
    assert trees._get_node_type(tree["a"]) is collections.namedtuple
    assert trees._dict_unflatten(*trees._dict_flatten({"k": 1})) == {"k": 1}


def test_states_of_accelerators_by_tensor() -> None:
    """Tensors in host memory name no accelerator, so there is no state to keep, and none to put back."""
    found = tc.utils.checkpoint.get_device_states(tc.ones(2), [tc.ones(1), "text"])
    assert found == ([], [])
    tc.utils.checkpoint.set_device_states(*found)


def test_parts_of_pytorchs_optimizers() -> None:
    """Tensors go together by device and dtype, positions beside them; on the host the ways without lists are taken."""
    optimizer = importlib.import_module("tensorcore.optim.optimizer")
    a, b, c = tc.ones(2), tc.ones(2, dtype=tc.float64), tc.ones(1)
    groups = optimizer.Optimizer._group_tensors_by_device_and_dtype([[a, b, c], [1, 2, 3]], with_indices=True)
    assert groups == {
        (a.device, tc.float32): ([[a, c], [1, 3]], [0, 2]),
        (a.device, tc.float64): ([[b], [2]], [1]),
    }
    assert optimizer._default_to_fused_or_foreach([a, None], differentiable=False) == (False, False)
    assert optimizer._default_to_fused_or_foreach([a], differentiable=False, use_fused=True) == (True, False)
    assert optimizer._default_to_fused_or_foreach([a], differentiable=True, use_fused=True) == (False, False)
    assert "cpu" not in optimizer._get_capturable_supported_devices()


@pytest.mark.parametrize("differentiable", [False, True])
def test_a_step_records_where_it_is_differentiable(differentiable: bool) -> None:
    """PyTorch's decorator of ``step`` follows the optimizer's default, and puts recording back as it was."""
    optimizer = importlib.import_module("tensorcore.optim.optimizer")

    class Steps(tc.optim.Optimizer):
        @optimizer._use_grad_for_differentiable
        def step(self, closure=None):
            return tc.is_grad_enabled()

    made = Steps([tc.ones(1, requires_grad=True)], {"differentiable": differentiable})
    assert made.step() is differentiable
    assert tc.is_grad_enabled()


def test_rules_of_one_s_own_start_from_pytorchs_fills() -> None:
    """The fills behind ``nn.init`` are there by their names, and ``load_state_dict``'s result by its class."""
    weight = tc.zeros(3)
    assert tc.nn.init._no_grad_fill_(weight, 2.0).tolist() == [2.0] * 3
    assert tc.nn.init._no_grad_zero_(weight).tolist() == [0.0] * 3
    assert float(tc.nn.init._no_grad_uniform_(weight, 1.0, 2.0).amin()) >= 1.0
    keys = importlib.import_module("tensorcore.nn.modules.module")._IncompatibleKeys
    assert isinstance(tc.nn.Linear(1, 1).load_state_dict({}, strict=False), keys)


def test_the_progress_bar_is_borrowed_when_asked_for(monkeypatch) -> None:
    """``torch.hub`` and ``model_zoo`` have tqdm's bar where that package is, and neither has just any name."""
    import sys
    import types

    package = types.ModuleType("tqdm.auto")
    package.tqdm = iter
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", package)
    assert tc.hub.tqdm is iter
    assert importlib.import_module("tensorcore.utils.model_zoo").tqdm is iter
    with pytest.raises(AttributeError):
        tc.hub.nothing_of_the_kind


def test_hyperparameters_for_a_writer_of_one_s_own() -> None:
    """``utils.tensorboard.summary.hparams`` gives the three parts that ``add_hparams`` writes."""
    pytest.importorskip("tensorboard")
    summary = importlib.import_module("tensorcore.utils.tensorboard.summary")
    parts = summary.hparams({"lr": 0.1, "name": "a"}, {"loss": None})
    assert [one.value[0].tag for one in parts] == [
        "_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info",
    ]  # fmt: skip


def test_tables_of_dtypes_name_some_that_no_tensor_has() -> None:
    """``float8_e5m2`` and its kin print, compare, have limits and survive a pickle; what takes a dtype refuses them."""
    assert tc.finfo(tc.float8_e4m3fn).max == 448.0
    assert tc.finfo(tc.float8_e5m2) == tc.finfo(tc.float8_e5m2)
    assert (tc.float8_e5m2.itemsize, tc.complex32.itemsize, tc.complex32.is_complex) == (1, 4, True)
    assert repr(tc.float8_e8m0fnu) == "torch.float8_e8m0fnu"
    assert pickle.loads(pickle.dumps(tc.float8_e4m3fnuz)) is tc.float8_e4m3fnuz
    for take in (lambda one: tc.zeros(1, dtype=one), lambda one: tc.ones(1).to(one), tc.iinfo):
        with pytest.raises(TypeError):
            take(tc.float8_e5m2fnuz)
    with pytest.raises(TypeError):
        tc.finfo(tc.qint8)


def test_the_package_has_itself_and_its_rooms_have_all_their_names() -> None:
    """``torch.torch.Tensor`` is spelled out by programs, and libraries walk through the names of optimizers and distributions."""
    assert tc.torch is tc
    assert tc._C._TensorMeta is type(tc.Tensor)
    kinds = [one for one in vars(tc.optim).values() if isinstance(one, type) and issubclass(one, tc.optim.Optimizer)]
    assert {tc.optim.Adam, tc.optim.LBFGS} <= {*kinds}
    assert tc.distributions.Wishart in vars(tc.distributions).values()
    assert tc._dynamo.assume_constant_result(len) is len


def test_names_that_libraries_import() -> None:
    """The modules that pyro, monai, captum, diffusers and optimizers of public packages import from."""
    serialization = importlib.import_module("tensorcore.serialization")
    assert serialization.DEFAULT_PROTOCOL == 2
    assert str in serialization.MAP_LOCATION.__args__
    assert tc.futures.Future[int].__origin__ is tc.futures.Future
    pattern = importlib.import_module("tensorcore.utils.data._utils.collate").np_str_obj_array_pattern
    assert [pattern.search(one) is not None for one in ("<f4", "<U3", "|O", "|S1")] == [False, True, True, True]
    group = importlib.import_module("tensorcore.utils._foreach_utils")._group_tensors_by_device_and_dtype
    one = tc.ones(1)
    assert group([[one]], with_indices=True) == {(one.device, tc.float32): ([[one]], [0])}
    assert importlib.import_module("tensorcore.nn.attention.flex_attention")._DEFAULT_SPARSE_BLOCK_SIZE == 128
    x = tc.ones(2)
    assert x._cdata == x._cdata != x.detach()._cdata
    assert isinstance(tc.distributions.ExpTransform().inv, tc.distributions.transforms._InverseTransform)


def test_names_of_distributed_programs() -> None:
    """``torch.distributed`` has its rooms by importing it alone, and a part says where it begins."""
    assert tc.distributed.device_mesh.DeviceMesh is tc.distributed.DeviceMesh
    assert tc.distributed.constants.default_pg_timeout == tc.distributed.default_pg_timeout
    assert tc.distributed.ReduceOp.RedOpType.SUM is tc.distributed.ReduceOp.SUM
    shard = importlib.import_module("tensorcore.distributed.tensor.placement_types").Shard
    assert [shard.local_shard_size_and_offset(10, 4, i) for i in range(4)] == [(3, 0), (3, 3), (3, 6), (1, 9)]
    wait = importlib.import_module("tensorcore.distributed._functional_collectives").wait_tensor
    one = tc.ones(1)
    assert wait(one) is one


def test_questions_of_traceable_programs() -> None:
    """No number is symbolic, vmap says that it is under way, and a tensor of bools is checked as a whole."""
    assert not any(isinstance(3, one) for one in (tc.SymInt, tc.SymFloat, tc.SymBool))
    with pytest.raises(RuntimeError):
        tc.SymInt(3)
    assert not tc._C._are_functorch_transforms_active()
    assert tc.vmap(lambda x: x * tc._C._are_functorch_transforms_active())(tc.ones(2)).tolist() == [1.0, 1.0]
    tc._check_tensor_all(tc.tensor([True, True]))
    with pytest.raises(ValueError, match="too low"):
        tc._check_tensor_all_with(ValueError, tc.tensor([True, False]), lambda: "too low")
    with pytest.raises(TypeError):
        tc._check_tensor_all(tc.tensor([1]))


def test_marks_for_a_compiler_and_places_in_trees() -> None:
    """Hints about shapes and memory change nothing; a dict's values come with their keys; a vmapped index needs no mode."""
    dynamo, trees = importlib.import_module("tensorcore._dynamo"), importlib.import_module("tensorcore.utils._pytree")
    x = tc.arange(6.0)
    double = tc.compile(lambda x: x * 2)
    for mark in (lambda x: dynamo.mark_dynamic(x, 0), dynamo.mark_static, dynamo.mark_static_address):
        assert mark(x) is None
        assert double(x).tolist() == [0, 2, 4, 6, 8, 10]
    tree = {"a": 1, "b": [2]}
    pairs, context = trees._dict_flatten_with_keys(tree)
    assert [(str(place), place.get(tree), value) for place, value in pairs] == [("['a']", 1, 1), ("['b']", [2], [2])]
    assert trees._dict_unflatten([one for _, one in pairs], context) == tree
    modes = importlib.import_module("tensorcore._dynamo._trace_wrapped_higher_order_op")
    with modes.TransformGetItemToIndex():
        assert tc.vmap(lambda i: x[i])(tc.tensor([4, 1])).tolist() == [4, 1]


@pytest.mark.parametrize(
    "name",
    [
        "_dynamo.eval_frame", "_higher_order_ops.associative_scan", "_subclasses.fake_tensor", "fx.experimental.proxy_tensor",
        "jit.annotations", "utils.data._utils.pin_memory",
    ],
)  # fmt: skip
def test_modules_without_a_file_are_found(name: str) -> None:
    """Programs ask whether a module is there by ``find_spec``, which raised once it was imported."""
    importlib.import_module(f"tensorcore.{name}")
    found = importlib.util.find_spec(f"tensorcore.{name}")
    assert found is not None
    assert found.name == f"tensorcore.{name}"


@pytest.mark.parametrize("function", ["add", "sub", "mul", "div", "floor_divide", "trunc"])
@pytest.mark.parametrize("numbers", [(7, 2), (-7.5, 2), (2**40, 3), (7, 2.5)])
def test_arithmetic_of_two_numbers(function: str, numbers: tuple[float, float]) -> None:
    """``torch.div(7, 2)`` is a tensor as in PyTorch, also where it is rounded."""
    torch = pytest.importorskip("torch")

    def found(library):
        if function == "trunc":
            return library.div(*numbers, rounding_mode="trunc")
        return getattr(library, function)(*numbers)

    mine, theirs = found(tc), found(torch)
    assert repr(mine.dtype) == repr(theirs.dtype)
    assert mine.item() == pytest.approx(theirs.item(), rel=1e-6)


def test_numpys_functions_take_a_tensor_and_a_number() -> None:
    """Where the op of that name takes tensors alone, NumPy's function computes, in NumPy's dtype."""
    low = np.maximum(tc.tensor([1, 2]), 1.5)
    assert (low.tolist(), low.dtype) == ([1.5, 2.0], tc.float64)
    assert np.arctan2(tc.tensor([0.0]), 1.0).tolist() == [0.0]
    assert float(np.log(np.maximum(tc.tensor(0.0), 1.0))) == 0.0


def test_an_optimizer_around_another_one() -> None:
    """A subclass that wraps an optimizer and never ran ``Optimizer.__init__`` steps without hooks."""

    class Around(tc.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner

        def step(self, closure=None):
            return self.inner.step(closure)

    weight = tc.ones(1, requires_grad=True)
    weight.sum().backward()
    Around(tc.optim.SGD([weight], lr=0.5)).step()
    assert weight.item() == 0.5


def test_a_transform_that_is_a_module() -> None:
    """A transform initialises what stands behind it among the bases, and its cache has PyTorch's name."""

    class Scale(tc.distributions.Transform, tc.nn.Module):
        __hash__ = tc.nn.Module.__hash__

        def __init__(self):
            super().__init__(cache_size=1)
            self.weight = tc.nn.Parameter(tc.full((1,), 2.0))

        def _call(self, x):
            return x * self.weight

    scale = Scale()
    y = tc.distributions.Transform.__call__(scale, tc.ones(1))
    assert [one.tolist() for one in scale.parameters()] == [[2.0]]
    assert scale._cached_x_y[1] is y


def test_divergences_of_types_beside_distribution() -> None:
    """``register_kl`` takes any types, as PyTorch does, and nothing but types."""
    kind = type("Own", (), {})
    assert tc.distributions.register_kl(kind, kind)(len) is len
    with pytest.raises(TypeError):
        tc.distributions.register_kl(kind, 3)


def test_names_of_encoders_loaders_and_annotations() -> None:
    """Forecasting, speech and vision libraries import these: a clipped logistic, pinning, older places, types of scripts."""
    limits = tc.finfo(tc.float32)
    clipped = tc.distributions.transforms._clipped_sigmoid(tc.tensor([-200.0, 0.0, 200.0]))
    assert clipped.tolist() == [limits.tiny, 0.5, 1 - limits.eps]
    room = importlib.import_module("tensorcore.utils.data._utils.pin_memory")
    assert room.pin_memory(["text", {"a": 1}], "cpu") == ["text", {"a": 1}]
    assert importlib.import_module("tensorcore.distributed._tensor").Shard(1) == tc.distributed.tensor.Shard(1)
    assert not isinstance(tc.ones(1), tc.TensorType)
    assert tc.TensorType is not tc.DeviceObjType
