"""Names that kornia, lightning, transformers, accelerate, diffusers and peft import, or take for granted."""

from __future__ import annotations

import importlib

import pytest

import tensorcore as tc
from tensorcore import nn


def test_nothing_is_traced_symbolically() -> None:
    """Values, steps and modules of traces can be asked for by ``isinstance``; none is there, and none can be made."""
    proxies = importlib.import_module("tensorcore.fx.experimental.proxy_tensor")
    fakes = importlib.import_module("tensorcore._subclasses.fake_tensor")
    x = tc.ones(1, device="meta")
    assert proxies.get_proxy_mode() is None
    assert not fakes.is_fake(x)
    assert not isinstance(x, (fakes.FakeTensor, tc.fx.Proxy, tc.fx.Node))
    assert not isinstance(nn.Linear(1, 1), tc.fx.GraphModule)
    for kind in (tc.fx.Proxy, tc.fx.GraphModule, fakes.FakeTensor):
        with pytest.raises(RuntimeError):
            kind(x)


def test_the_records_of_a_file(tmp_path, torch) -> None:
    """``PyTorchFileReader`` gives what is in a file by name, of either library, and refuses other files."""
    for library in (tc, torch):
        library.save({"a": library.arange(3, dtype=library.uint8)}, path := tmp_path / "weights.pt")
        mine, theirs = tc.PyTorchFileReader(str(path)), torch.PyTorchFileReader(str(path))
        assert mine.get_all_records() == theirs.get_all_records()
        assert mine.get_record("data.pkl") == theirs.get_record("data.pkl")
        assert (mine.get_record("data/0"), mine.get_record_size("data/0")) == (b"\0\1\2", 3)
        assert (mine.has_record("data/0"), mine.has_record("data/1")) == (True, False)
        with pytest.raises(RuntimeError):
            mine.get_record("data/1")
    path.write_bytes(b"text")
    with path.open("rb") as file, pytest.raises(RuntimeError):
        tc.PyTorchFileReader(file)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 6, 7])
def test_a_scan_of_a_function(count: int, reverse: bool) -> None:
    """``associative_scan`` combines each entry with all before it, in trees too, and has gradients."""
    scan = importlib.import_module("tensorcore._higher_order_ops.associative_scan").associative_scan
    x = tc.arange(1.0, 2 * count + 1).reshape(2, count).requires_grad_()

    def steps(left, right):  # of h = a * h + b
        return {"a": left["a"] * right["a"], "b": left["b"] * right["a"] + right["b"]}

    made = scan(steps, {"a": x, "b": x}, 1, reverse=reverse, combine_mode="generic")["b"]
    wanted, h = [], 0.0
    for one in reversed(x.unbind(1)) if reverse else x.unbind(1):
        wanted.append(h := one * h + one)
    expected = tc.stack(wanted[::-1] if reverse else wanted, 1)
    assert made.tolist() == expected.tolist()
    tc.testing.assert_close(*[tc.autograd.grad(one.sum(), x)[0] for one in (made, expected)])


def test_scans_that_are_refused() -> None:
    """No entries, entries that are no tensors, a way that does not exist, and PyTorch's way for CUDA alone."""
    scan = importlib.import_module("tensorcore._higher_order_ops").associative_scan
    for xs, mode in ((tc.ones(0), "generic"), ([1.0], "generic"), (tc.ones(2), "other"), (tc.ones(2), "pointwise")):
        with pytest.raises(ValueError, match="associative_scan"):
            scan(tc.add, xs, 0, combine_mode=mode)


def test_a_storage_over_a_file(tmp_path) -> None:
    """``UntypedStorage.from_file`` shows a file's bytes; what is written stays here, or goes to the file where it is shared."""
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(6)))
    own, shared = tc.UntypedStorage.from_file(str(path), False, 4), tc.UntypedStorage.from_file(str(path), True, 8)
    own[0], shared[7] = 9, 5
    assert own.tolist() == [9, 1, 2, 3]
    assert path.read_bytes() == bytes([0, 1, 2, 3, 4, 5, 0, 5])
    with pytest.raises(RuntimeError, match="smaller than the required mapping size"):
        tc.UntypedStorage.from_file(str(path), nbytes=9)


def test_a_parameter_made_anew_by_its_type() -> None:
    """``type(p)(data, requires_grad=..., **p.__dict__)`` is a parameter, as of the classes that libraries derive from it."""
    held = nn.Parameter(tc.ones(2))
    for notes in ({}, held.__dict__):
        made = type(held)(tc.zeros(2), requires_grad=False, **notes)
        assert isinstance(made, nn.Parameter)
        assert (made.tolist(), made.requires_grad) == ([0.0, 0.0], False)
    assert not isinstance(tc.Tensor(held), nn.Parameter)
    for more in ({"requires_grad": True, "dtype": tc.int64}, {"pin_memory": True}):
        with pytest.raises(TypeError):
            tc.Tensor(tc.ones(2), **more)


def test_an_op_in_the_body_of_a_module_is_no_method() -> None:
    """``act = torch.tanh`` in a class takes the input alone, as PyTorch's functions do, and methods stay methods."""

    class Layer(nn.Module):
        act = tc.tanh
        conv = nn.functional.conv1d
        inverse = tc.linalg.inv
        scale = tc.mul
        ways = (tc.exp,)
        whole = nn.Module.double

        def forward(self, x):
            return self.scale(self.act(x), 2.0)

    class Below(Layer):
        act = tc.exp

    layer = Layer()
    assert layer(tc.zeros(2)).tolist() == [0.0, 0.0]
    assert Below()(tc.zeros(2)).tolist() == [2.0, 2.0]
    assert layer.conv(tc.ones(1, 1, 2), tc.ones(1, 1, 2)).tolist() == [[[2.0]]]
    assert layer.inverse(tc.eye(1) * 2).tolist() == [[0.5]]
    assert layer.whole() is layer


def test_names_of_profilers() -> None:
    """A profile can be asked for and left open, marks for NVIDIA's profiler are refused, and averages go by shapes."""
    older = tc.autograd.profiler
    assert tc.profiler.kineto_available()
    assert tc.profiler.profiler._default_schedule_fn(3) is tc.profiler.ProfilerAction.RECORD
    assert not tc.autograd._profiler_enabled()
    seen = tc.profiler.profile()
    seen.start()
    assert tc.autograd._profiler_enabled()
    tc.autograd._disable_profiler()
    assert not tc.autograd._profiler_enabled()
    with older.profile(record_shapes=True) as seen:
        tc.add(tc.ones(2), 1.0)
        tc.add(tc.ones(3), 1.0)
    shapes = [
        one.input_shapes for one in seen.function_events.key_averages(group_by_input_shapes=True) if "add" in one.key
    ]
    assert len(shapes) == 2
    with older.emit_nvtx(enabled=False):
        pass
    with pytest.raises(RuntimeError), older.emit_nvtx():
        pass


def test_questions_about_sharded_models() -> None:
    """The first version of FSDP can be asked for by ``isinstance``; what is not written is refused when it is made."""
    fsdp = importlib.import_module("tensorcore.distributed.fsdp")
    older = importlib.import_module("tensorcore.distributed._composable.fsdp")
    wrap = importlib.import_module("tensorcore.distributed.fsdp.wrap")
    files = importlib.import_module("tensorcore.distributed.checkpoint.hf_storage")
    placements = importlib.import_module("tensorcore.distributed.tensor.placement_types")
    layer = nn.Linear(1, 1)
    assert older.fully_shard is fsdp.fully_shard
    assert not isinstance(layer, fsdp.FullyShardedDataParallel)
    assert (fsdp.CPUOffload().offload_params, fsdp.ShardingStrategy.NO_SHARD.value) == (False, 3)
    for make in (
        lambda: fsdp.FullyShardedDataParallel(layer),
        lambda: files.HuggingFaceStorageWriter("there"),
        lambda: files.HuggingFaceStorageReader("there"),
        lambda: placements._StridedShard(0, split_factor=2),
    ):
        with pytest.raises(RuntimeError):
            make()
    linear = {"recurse": False, "nonwrapped_numel": 0, "transformer_layer_cls": {nn.Linear}}
    assert wrap.transformer_auto_wrap_policy(layer, **linear)
    assert not wrap.transformer_auto_wrap_policy(nn.ReLU(), **linear)
    assert wrap.lambda_auto_wrap_policy(nn.ReLU(), True, 0, lambda one: False)
    small = [
        lambda module, recurse, nonwrapped_numel: nonwrapped_numel > 3,
        lambda module, recurse, nonwrapped_numel: False,
    ]
    assert [wrap._or_policy(layer, False, count, small) for count in (3, 4)] == [False, True]


def test_the_key_of_extra_state() -> None:
    """``nn.modules.module`` says under which key a module keeps what ``get_extra_state`` gives."""

    class Layer(nn.Module):
        def get_extra_state(self):
            return 3

    key = importlib.import_module("tensorcore.nn.modules.module")._EXTRA_STATE_KEY_SUFFIX
    assert Layer().state_dict() == {key: 3}


def test_drawing_without_a_size_is_refused() -> None:
    """``rand()`` is a TypeError, as ``zeros()`` is; ``rand(())`` and ``rand(size=())`` are single numbers."""
    for draw in (tc.rand, tc.randn):
        with pytest.raises(TypeError):
            draw()
        tc.manual_seed(0)
        one = draw(())
        tc.manual_seed(0)
        assert draw(size=()) == one


def test_a_gradient_by_its_other_name() -> None:
    """``_grad`` reads and writes what ``grad`` does, of leaves and of results that retain theirs."""
    x = tc.ones(2, requires_grad=True)
    (y := x * 2).retain_grad()
    (y * 3).sum().backward()
    assert (x._grad.tolist(), y._grad.tolist()) == ([6.0, 6.0], [3.0, 3.0])
    x._grad = None
    assert x.grad is None


def test_a_plateau_that_reduces_one_group() -> None:
    """A program replaces ``_reduce_lr`` of a scheduler, which gets the number of the epoch."""
    optimizer = tc.optim.SGD([{"params": [tc.ones(1)]}, {"params": [tc.ones(1)]}], lr=1.0)
    plateau, seen = tc.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5), []
    plateau._reduce_lr = seen.append
    for loss in (1.0, 2.0):
        plateau.step(loss)
    assert seen == [2]
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 1.0]
    assert (plateau._is_better(0.5, 1.0), plateau._is_better(1.0, 1.0)) == (True, False)
