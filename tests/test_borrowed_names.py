"""Names without a place in PyTorch's documentation that public programs and libraries call all the same."""

from __future__ import annotations

import collections
import importlib

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
