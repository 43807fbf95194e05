"""Names that ordinary programs touch beside tensors and layers: old types, switches, rooms that change nothing."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import tensorcore as tc
from tensorcore.errors import LoadError, UsageError

ROOT = Path(__file__).parents[1]


@pytest.fixture
def defaults():
    """The default dtype is put back."""
    yield
    tc.set_default_dtype(tc.float32)


@pytest.fixture
def switches():
    """Every switch is put back."""
    yield
    tc.use_deterministic_algorithms(False)
    tc.set_float32_matmul_precision("highest")
    tc.backends.cudnn.benchmark = False


# Old constructors and types


@pytest.mark.parametrize(
    "make, shape, dtype",
    [
        (lambda: tc.Tensor(2, 3), (2, 3), tc.float32),
        (lambda: tc.Tensor(), (0,), tc.float32),
        (lambda: tc.Tensor(tc.Size([2])), (2,), tc.float32),
        (lambda: tc.Tensor(size=(1, 2)), (1, 2), tc.float32),
        (lambda: tc.LongTensor(4), (4,), tc.int64),
        (lambda: tc.ones(1, dtype=tc.int8).new(2, 2), (2, 2), tc.int8),
        (lambda: tc.ones(1).new(), (0,), tc.float32),
    ],
)
def test_sizes_make_a_tensor(make, shape, dtype):
    """An old constructor given sizes makes a tensor of that shape and of its own dtype."""
    made = make()
    assert (tuple(made.shape), made.dtype) == (shape, dtype)


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda: tc.Tensor([1, 2]), [1.0, 2.0]),
        (lambda: tc.Tensor((2, 3)), [2.0, 3.0]),
        (lambda: tc.Tensor(range(2)), [0.0, 1.0]),
        (lambda: tc.Tensor(np.array([1.5])), [1.5]),
        (lambda: tc.Tensor(data=[1]), [1.0]),
        (lambda: tc.Tensor([tc.tensor(1), tc.tensor(2)]), [1.0, 2.0]),
        (lambda: tc.Tensor(tc.tensor([3])), [3]),
        (lambda: tc.Tensor(tc.ones(2).untyped_storage()), [1.0, 1.0]),
        (lambda: tc.LongTensor([1.7]), [1]),
        (lambda: tc.BoolTensor([0, 2]), [False, True]),
        (lambda: tc.ones(1, dtype=tc.int64).new([5.5]), [5]),
    ],
)
def test_values_make_a_tensor(make, expected):
    """An old constructor given values makes a tensor of them."""
    assert make().tolist() == expected


def test_a_tensor_of_a_tensor_shares_its_memory():
    """Tensor(x) shows the memory of x and follows its gradient."""
    x = tc.ones(2, requires_grad=True)
    y = tc.Tensor(x)
    assert y.data_ptr() == x.data_ptr()
    (y * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: tc.Tensor(2.5), TypeError),
        (lambda: tc.Tensor("a"), TypeError),
        (lambda: tc.Tensor(None), TypeError),
        (lambda: tc.Tensor(True), TypeError),
        (lambda: tc.Tensor(-1), RuntimeError),
        (lambda: tc.FloatTensor(2, [1]), TypeError),
        (lambda: tc.FloatTensor(tc.ones(2, dtype=tc.float64)), TypeError),
        (lambda: tc.LongTensor(tc.ones(2)), TypeError),
        (lambda: tc.FloatTensor(2, device="meta"), RuntimeError),
        (lambda: tc.cuda.FloatTensor(2), RuntimeError),
        (lambda: tc.ones(1).type("FloatTensor"), ValueError),
        (lambda: tc.ones(1).type(int), ValueError),
        (lambda: tc.set_default_tensor_type(tc.LongTensor), TypeError),
        (lambda: tc.set_default_tensor_type(tc.Tensor), TypeError),
        (lambda: tc.autograd.Variable([1.0]), TypeError),
    ],
)
def test_what_old_constructors_refuse(make, error):
    """What PyTorch's old constructors refuse is refused, with the same type of error."""
    with pytest.raises(error):
        make()


def test_types_by_name_and_by_class():
    """type() names a tensor's type and converts by name or class; isinstance reads dtype and device."""
    x = tc.ones(2)
    assert x.type() == "torch.FloatTensor"
    assert x.type("torch.DoubleTensor").dtype is tc.float64
    assert x.type(tc.LongTensor).type() == "torch.LongTensor"
    assert x.type(tc.Tensor) is x
    assert isinstance(x, tc.FloatTensor)
    assert not isinstance(x.long(), tc.FloatTensor)
    assert not isinstance(x, tc.cuda.FloatTensor)
    assert repr(tc.cuda.FloatTensor) == "<class 'torch.cuda.FloatTensor'>"
    assert [tc.typename(one) for one in (x.long(), [1], tc.nn.Linear(1, 1))] == [
        "torch.LongTensor", "list", "tensorcore.nn.linear.Linear",
    ]  # fmt: skip


def test_the_default_type(defaults):
    """set_default_tensor_type takes a name or a class and sets the default dtype."""
    tc.set_default_tensor_type("torch.DoubleTensor")
    assert tc.ones(1).dtype is tc.float64
    assert tc.Tensor(1).dtype is tc.float64
    tc.set_default_tensor_type(tc.FloatTensor)
    assert tc.ones(1).dtype is tc.float32


def test_a_variable_is_a_leaf_over_the_same_memory():
    """Variable(x) is a new leaf; every tensor is a Variable; volatile warns."""
    x = tc.ones(2, requires_grad=True) * 2
    leaf = tc.autograd.Variable(x, requires_grad=True)
    assert leaf.is_leaf
    assert leaf.data_ptr() == x.data_ptr()
    assert isinstance(x, tc.autograd.Variable)
    with pytest.warns(UserWarning, match="volatile was removed"):
        tc.autograd.Variable(x, volatile=True)


def test_old_names_of_init_warn():
    """nn.init.xavier_uniform fills as its new name does and says that it is old."""
    x = tc.zeros(2, 2)
    with pytest.warns(FutureWarning, match="xavier_uniform_"):
        assert tc.nn.init.xavier_uniform(x) is x
    assert x.abs().sum() > 0


# Switches


def test_determinism_and_precision(switches):
    """The switches are set and read back, by each of their names."""
    tc.use_deterministic_algorithms(True, warn_only=True)
    assert tc.are_deterministic_algorithms_enabled()
    assert tc.is_deterministic_algorithms_warn_only_enabled()
    assert tc.get_deterministic_debug_mode() == 1
    tc.set_deterministic_debug_mode("error")
    assert tc.get_deterministic_debug_mode() == 2
    tc.backends.cuda.matmul.allow_tf32 = True
    assert tc.get_float32_matmul_precision() == "high"
    tc.set_float32_matmul_precision("highest")
    assert not tc.backends.cuda.matmul.allow_tf32


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: tc.use_deterministic_algorithms(1), TypeError),
        (lambda: tc.set_deterministic_debug_mode(3), RuntimeError),
        (lambda: tc.set_deterministic_debug_mode("x"), RuntimeError),
        (lambda: tc.set_deterministic_debug_mode(2.5), TypeError),
        (lambda: tc.set_warn_always(1), TypeError),
    ],
)
def test_switches_refuse(call, error):
    """A switch refuses what it has no place for."""
    with pytest.raises(error):
        call()


def test_an_unknown_precision_has_no_effect():
    """It is warned about and changes nothing, as in PyTorch."""
    with pytest.warns(UserWarning, match="no effect"):
        tc.set_float32_matmul_precision("low")
    assert tc.get_float32_matmul_precision() == "highest"


def test_backends_is_a_room_and_a_function(switches):
    """torch.backends.cudnn.benchmark is set and read; backends() still names the devices."""
    tc.backends.cudnn.benchmark = True
    assert tc.backends.cudnn.benchmark
    with tc.backends.cudnn.flags(enabled=False, benchmark=False):
        assert not tc.backends.cudnn.enabled
        assert not tc.backends.cudnn.benchmark
    assert tc.backends.cudnn.enabled
    assert tc.backends.cudnn.benchmark
    assert "cpu" in tc.backends()
    assert tc.backends.mps.is_available() is ("mps" in tc.backends())
    with tc.backends.cuda.sdp_kernel(enable_flash=False):
        assert not tc.backends.cuda.flash_sdp_enabled()
    assert tc.backends.cuda.flash_sdp_enabled()


def test_rooms_are_imported_by_their_names():
    """The lines that programs open with work on a fresh start, and a bare import loads none of those rooms."""
    lines = [
        "import tensorcore as torch, sys",
        "rooms = ('backends', 'jit', 'compiler', 'hub', 'mps', 'xpu', 'accelerator', 'accelerators', 'random', 'types',"
        " 'version', 'switches', 'nn', 'cuda')",
        "assert not [one for one in rooms if f'tensorcore.{one}' in sys.modules]",
        "import tensorcore.backends.cudnn as cudnn; cudnn.benchmark = True; assert torch.backends.cudnn.benchmark",
        "from tensorcore.autograd import Variable, grad",
        "from tensorcore.jit import Final",
        "from tensorcore.nn.attention import SDPBackend, sdpa_kernel",
        "from tensorcore.nn.parallel import DataParallel",
        "from tensorcore.utils import model_zoo",
        "from tensorcore.types import Device, Number",
        "from tensorcore.nn.common_types import _size_2_t",
        "from tensorcore.nn.init import _calculate_correct_fan, _calculate_fan_in_and_fan_out",
        "assert _calculate_fan_in_and_fan_out(torch.ones(2, 3)) == (3, 2)",
        "from tensorcore.utils.data._utils.collate import default_collate",
        "from tensorcore.testing import assert_close",
        "from tensorcore import pi, inf, nan, newaxis, GradScaler, OutOfMemoryError",
        "torch.random.manual_seed(3); assert torch.random.initial_seed() == 3",
        "assert torch.version.cuda is None and torch.version.__version__ == torch.__version__",
        "with torch.random.fork_rng(): torch.rand(1)",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, cwd=ROOT)


# Devices that are not there


@pytest.mark.skipif(tc.cuda.is_available(), reason="there is one")
def test_asking_for_what_is_not_there():
    """Without CUDA devices programs that ask first go on, and what needs one raises a RuntimeError."""
    assert tc.cuda.device_count() == 0
    assert tc.cuda.memory_allocated() == tc.cuda.max_memory_reserved() == 0
    assert not tc.cuda.is_bf16_supported()
    assert tc.cuda.get_rng_state_all() == []
    tc.cuda.manual_seed_all(1)
    tc.cuda.empty_cache()
    with pytest.raises(RuntimeError, match="cuda"):
        tc.cuda.synchronize()
    with pytest.raises(ValueError, match="Expected a cuda device"):
        tc.cuda.synchronize("cpu")


def test_the_functions_of_a_kind_reach_its_devices():
    """What a room such as torch.cuda asks is answered by the device of that kind; here by the host's."""
    from tensorcore.accelerators import Devices

    host = Devices("cpu")
    assert host.is_available()
    assert host.current_device() == 0
    held = tc.ones(1 << 20)
    assert host.memory_allocated() >= held.nbytes
    assert host.max_memory_allocated() >= host.memory_allocated()
    assert host.is_bf16_supported()
    host.set_device("cpu")
    host.synchronize()
    with pytest.raises(UsageError):
        host.set_rng_state_all([held])


def test_the_accelerator():
    """Where every device is the host's there is no accelerator."""
    found = tc.accelerator.current_accelerator()
    assert tc.accelerator.is_available() is (found is not None)
    if found is None:
        assert tc.accelerator.device_count() == 0
        with pytest.raises(RuntimeError, match="none is available"):
            tc.accelerator.synchronize()


# Rooms that change nothing


def test_compile_stands_for_what_it_is_given():
    """compile wraps a module or a function, also as a decorator; disabled or eager, it gives back what it got."""
    model = tc.nn.Linear(2, 1)
    assert tc.compile(model, mode="max-autotune", fullgraph=True)._orig_mod is model
    assert tc.compile(model, disable=True) is model
    assert tc.compile(model, backend="eager") is model

    @tc.compile
    def double(x):
        return x * 2

    @tc.compile(dynamic=True)
    def triple(x):
        return x * 3

    assert (double(2), triple(2)) == (4, 6)
    assert not tc.compiler.is_compiling()
    assert tc.compiler.disable(double)(3) == 6


@pytest.mark.parametrize(
    "options, error",
    [({"mode": "x"}, RuntimeError), ({"mode": "default", "options": {}}, RuntimeError)],
)
def test_compile_checks_its_keywords(options, error):
    """An unknown mode, or a mode and options, are refused as PyTorch refuses them."""
    with pytest.raises(error):
        tc.compile(tc.nn.Linear(1, 1), **options)
    with pytest.raises(AssertionError, match="callable"):
        tc.compile(1)


def test_scripts_are_python():
    """jit.script and its decorators give the function itself; fork runs it; files of code are refused."""

    @tc.jit.script
    def double(x):
        return x * 2

    @tc.jit.ignore(drop=True)
    def other(x):
        return x

    class Net(tc.jit.ScriptModule):
        @tc.jit.script_method
        def forward(self, x):
            return double(x) if not tc.jit.is_scripting() else x

    assert tc.jit.script(Net())(3) == 6
    assert tc.jit.trace(Net(), (1,))(other(2)) == 4
    assert tc.jit.wait(tc.jit.fork(double, 4)) == 8
    # A program that tells scripted modules apart takes an ordinary one for what it is.
    assert isinstance(Net(), tc.jit.RecursiveScriptModule)
    assert not isinstance(tc.nn.Linear(1, 1), tc.jit.ScriptModule)
    assert tc.jit.isinstance([1], list)
    with pytest.raises(UsageError, match="state_dict"):
        tc.jit.save(Net(), "a.pt")
    with pytest.raises(UsageError, match="state_dict"):
        tc.jit.load("a.pt")
    with pytest.raises(UsageError, match="eval"):
        tc.jit.freeze(Net())


def test_data_parallel_is_the_module_under_pytorchs_names():
    """It gives what the module gives, and its state dict has the prefix that files written with it have."""
    model = tc.nn.Linear(2, 1)
    parallel = tc.nn.DataParallel(model)
    x = tc.ones(3, 2)
    assert parallel(x).tolist() == model(x).tolist()
    assert list(parallel.state_dict()) == ["module.weight", "module.bias"]
    assert tc.nn.parallel.data_parallel(model, x).tolist() == model(x).tolist()


def test_ways_of_attention_are_checked():
    """sdpa_kernel takes what PyTorch's takes and changes no result."""
    from tensorcore.nn.attention import SDPBackend, sdpa_kernel

    q = tc.rand(1, 2, 3)
    expected = tc.nn.functional.scaled_dot_product_attention(q, q, q)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        assert tc.nn.functional.scaled_dot_product_attention(q, q, q).tolist() == expected.tolist()
    with pytest.raises(TypeError, match="SDPBackend"), sdpa_kernel("math"):
        pass


# Weights and models of this machine


def test_hub_downloads_nothing(tmp_path, monkeypatch):
    """Weights that are in the cache are loaded; others, and repositories elsewhere, are refused with what to do."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(tc.hub, "_places", {})
    assert tc.hub.get_dir() == str(tmp_path / "hub")
    url = "https://example.org/net-0000.pt"
    with pytest.raises(LoadError, match=r"nothing is downloaded; fetch https://example\.org/net-0000\.pt"):
        tc.hub.load_state_dict_from_url(url)
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    tc.save({"a": tc.ones(2)}, tmp_path / "hub" / "checkpoints" / "net-0000.pt")
    assert tc.utils.model_zoo.load_url(url)["a"].tolist() == [1.0, 1.0]
    with pytest.raises(LoadError, match="invalid hash value"):
        tc.hub.load_state_dict_from_url(url, check_hash=True)
    with pytest.raises(UsageError, match="would be downloaded"):
        tc.hub.load("owner/repository", "net")
    with pytest.raises(UsageError):
        tc.hub.download_url_to_file(url, "net.pt")


def test_hub_loads_from_a_folder(tmp_path):
    """A folder with a hubconf.py offers its functions; missing packages and names are said."""
    conf = tmp_path / "hubconf.py"
    conf.write_text("dependencies = ['numpy']\ndef net(size=1):\n    'A net.'\n    return [size]\n")
    folder = str(tmp_path)
    assert tc.hub.load(folder, "net", source="local", size=3) == [3]
    assert tc.hub.list(folder, source="local") == ["net"]
    assert tc.hub.help(folder, "net", source="local") == "A net."
    with pytest.raises(UsageError, match="Cannot find callable"):
        tc.hub.load(folder, "other", source="local")
    conf.write_text("dependencies = ['no_such_package']\n")
    with pytest.raises(UsageError, match="no_such_package"):
        tc.hub.list(folder, source="local")
    with pytest.raises(LoadError, match="hubconf"):
        tc.hub.list(str(tmp_path / "elsewhere"), source="local")


def test_the_rest_is_accepted():
    """Calls that ask for what Python or the host decides are taken without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tc.set_flush_denormal(True) is False
        tc.set_warn_always(False)
        assert not tc.is_warn_always_enabled()
        assert tc.inf > tc.pi > tc.e
        assert tc.ones(2)[:, tc.newaxis].shape == (2, 1)


def test_submodules_by_their_names() -> None:
    """What programs import from cpu, cuda and return_types is there, and does what a host does: nothing."""
    torch = pytest.importorskip("torch")
    for room in ("memory", "random"):
        ours, theirs = importlib.import_module(f"tensorcore.cuda.{room}"), importlib.import_module(f"torch.cuda.{room}")
        assert set(ours.__all__) <= set(theirs.__all__)
        assert all(getattr(ours, name) is getattr(tc.cuda, name) for name in ours.__all__)
    mine = tc.cpu.Stream()
    with tc.cpu.stream(mine):
        assert tc.cpu.current_stream() is mine
        with tc.cpu.stream(None):
            assert tc.cpu.current_stream() is mine
    assert tc.cpu.current_stream() is not mine
    assert (tc.cpu.current_device(), tc.cpu.device_count(), tc.cpu.synchronize()) == ("cpu", 1, None)
    assert set(torch.cpu.__all__) - set(tc.cpu.__all__) == {"get_capabilities"}
    assert isinstance(tc.ones(2, 2).max(0), tc.return_types.max)
    assert isinstance(tc.linalg.qr(tc.ones(2, 2)), tc.return_types.linalg_qr)
    assert not hasattr(tc.return_types, "nothing")
    assert issubclass(tc.testing.DeviceLost, tc.AcceleratorError)
