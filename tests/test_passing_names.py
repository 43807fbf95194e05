"""Names that programs touch in passing: devices that are not there, marks for compilers, threads, parts of DataParallel."""

from __future__ import annotations

import copy
import importlib
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import tensorcore as tc
from tensorcore.backend import registry

ROOT = Path(__file__).parents[1]

# Not cuda, which other tests of this process may bring.
ABSENT = [one for one in ("mps", "xpu") if registry.why_not(one) is not None]


@pytest.mark.skipif(not ABSENT, reason="every kind of device is there")
def test_a_device_that_is_not_there_may_be_named():
    """torch.device names it, as in a default argument, and prints it as PyTorch does; only what works on it raises."""
    name = ABSENT[0]
    place = tc.device(f"{name}:1")
    assert repr(place) == f"device(type='{name}', index=1)"
    assert (str(place), place.type, place.index, tc.device(name).index) == (f"{name}:1", name, 1, None)
    assert isinstance(place, tc.device)
    assert place == tc.device(name, 1) != tc.device("cpu")
    assert repr(copy.deepcopy(place)) == repr(place)
    for use in (lambda: tc.ones(2, device=place), lambda: tc.nn.Linear(2, 2).to(place), place.__enter__):
        with pytest.raises(RuntimeError, match=name):
            use()
    for unknown in ("nowhere", f"{name}:x", f"{name}:01"):
        with pytest.raises(RuntimeError):
            tc.device(unknown)


def test_marks_and_settings_that_change_nothing(capsys):
    """Decorators, settings and enums of PyTorch's compilers are taken; what they would have traced is not there."""
    assert tc.fx.wrap("len") == "len"
    assert tc.fx.wrap(len) is tc.jit._overload(len) is tc.jit._overload_method(len) is len
    with pytest.raises(AttributeError, match="forward hooks"):
        tc.fx.Graph
    tc._inductor.config.triton.unique_kernel_names = True
    with tc._dynamo.config.patch({"cache_size_limit": 3, "later": 1}, suppress_errors=True):
        assert (tc._dynamo.config.cache_size_limit, tc._dynamo.config.later) == (3, 1)
        assert tc._dynamo.config.suppress_errors
    assert (tc._dynamo.config.cache_size_limit, tc._dynamo.config.suppress_errors) == (8, False)
    assert not hasattr(tc._dynamo.config, "later")
    with tc._inductor.config.patch("triton.cudagraphs", True):
        assert tc._inductor.config.triton.cudagraphs
    assert not tc._inductor.config.triton.cudagraphs
    from tensorcore._dynamo.eval_frame import OptimizedModule

    assert isinstance(tc.compile(tc.nn.Linear(2, 2)), OptimizedModule)
    assert issubclass(tc.jit.TracerWarning, Warning)
    assert importlib.import_module("tensorcore.jit.annotations").Optional is typing.Optional
    tc._assert(True, "fine")
    with pytest.raises(AssertionError, match="not so"):
        tc._assert(False, "not so")
    assert not tc.backends.opt_einsum.enabled


def test_what_the_library_was_built_with():
    """__config__ tells the version and the threads; a kind of device has its room; iterators have PyTorch's names."""
    from tensorcore.utils.data.dataloader import DataLoader, _BaseDataLoaderIter, _MultiProcessingDataLoaderIter

    assert tc.__version__ in tc.__config__.show()
    assert str(tc.get_num_threads()) in tc.__config__.parallel_info()
    assert tc.get_device_module("cuda:1") is tc.cuda
    assert tc.get_device_module(tc.device("cpu")) is tc.cpu
    with pytest.raises(RuntimeError, match="a room in torch"):
        tc.get_device_module("nowhere")
    batches = iter(DataLoader([1, 2]))
    assert isinstance(batches, _BaseDataLoaderIter)
    assert not isinstance(batches, _MultiProcessingDataLoaderIter)


def test_threads_between_ops_are_set_once():
    """set_num_interop_threads takes one number, and refuses a second one and what is no number, as PyTorch does."""
    lines = [
        "import tensorcore as torch",
        "for bad in (0, 'a'):",
        "    try: torch.set_num_interop_threads(bad)",
        "    except RuntimeError as e: print(e)",
        "torch.set_num_interop_threads(2); assert torch.get_num_interop_threads() == 2",
        "try: torch.set_num_interop_threads(3)",
        "except RuntimeError as e: print(e)",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], check=True, cwd=ROOT, capture_output=True, text=True
    )
    for part, line in zip(("positive", "expects an int", "call it once"), done.stdout.splitlines(), strict=True):
        assert part in line


def test_parts_of_data_parallel():
    """Batches are cut, models copied, run beside one another and their results joined; gradients reach the model."""
    from tensorcore.nn.parallel import gather, parallel_apply, replicate, scatter

    torch = tc
    model = torch.nn.Linear(2, 3)
    parts = scatter((torch.arange(8.0).reshape(4, 2), "word"), ["cpu", "cpu"])
    assert [(one.tolist(), word) for one, word in parts] == [([[0, 1], [2, 3]], "word"), ([[4, 5], [6, 7]], "word")]
    copies = replicate(model, ["cpu", "cpu"])
    made = gather(parallel_apply(copies, [one for one, _ in parts]), "cpu")
    torch.testing.assert_allclose(made, model(torch.arange(8.0).reshape(4, 2)))
    made.sum().backward()
    assert model.bias.grad.tolist() == [4, 4, 4]
    assert not replicate(model, ["cpu"], detach=True)[0](torch.ones(1, 2)).requires_grad
    with pytest.raises(AssertionError, match="number of modules"):
        parallel_apply(copies, [1])


def test_modules_of_autograd_that_programs_import_from():
    """``autograd.grad_mode`` and ``autograd.anomaly_mode`` hold the very classes that ``autograd`` has."""
    from tensorcore.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
    from tensorcore.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

    found = (detect_anomaly, set_detect_anomaly, enable_grad, inference_mode, no_grad, set_grad_enabled)
    assert all(getattr(tc.autograd, one.__name__) is one for one in found)
    assert tc.autograd.grad_mode.no_grad is tc.no_grad
