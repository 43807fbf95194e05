"""Missing memory: the second try, and an error that says who holds what there is; the counts of an allocator."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import weakref

import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.backend.watch import unwatch, watch
from tensorcore.errors import OutOfMemoryError


class Failing:
    """Around kernels: the first so many calls of one raise that there is no memory."""

    def __init__(self, name: str, times: int) -> None:
        self.name, self.left, self.calls = name, times, 0

    def around(self, device, name, kernel):
        def call(*natives, **options):
            if name == self.name:
                self.calls += 1
                if self.left > 0:
                    self.left -= 1
                    raise MemoryError("no room")
            return kernel(*natives, **options)

        return call

    def __enter__(self) -> Failing:
        watch(self.around)
        return self

    def __exit__(self, *error: object) -> None:
        unwatch(self.around)


CALLS = {
    "exp": lambda x: x.exp(),
    "add": lambda x: x + x,
    "mul": lambda x: x * 2.5,
    "sum": lambda x: x.sum(),
    "amax": lambda x: x.amax(1),
    "softmax": lambda x: x.softmax(-1),
    "sub": lambda x: x - tc.ones(2, 2, dtype=tc.float64),
    "full": lambda x: tc.zeros(2, 2),
    "standardize": lambda x: nn.functional.layer_norm(x, (2,)),
    "matmul": lambda x: x @ x,
    "sort": lambda x: x.sort()[0],
    "max_dim": lambda x: x.max(0)[0],
    "eye": lambda x: tc.eye(2),
    "linspace": lambda x: tc.linspace(0, 1, 3),
    "triangle_indices": lambda x: tc.tril_indices(2, 2),
}
MADE = ("full", "eye", "linspace", "triangle_indices")  # from no tensor


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("grad", [False, True])
def test_a_kernel_gets_a_second_try(name, grad) -> None:
    """Where the first call finds no memory, the caches are freed and the result is that of a second one."""
    x = tc.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=grad)
    expected = CALLS[name](x).tolist()
    with Failing(name, 1) as failing:
        made = CALLS[name](x)
    assert (made.tolist(), made.requires_grad) == (expected, grad and name not in MADE)
    assert failing.calls == 2


@pytest.mark.parametrize("name", CALLS)
def test_a_second_failure_names_the_holders(name) -> None:
    """The error is a RuntimeError and a MemoryError with the paths of parameters and the lines of variables."""
    model = nn.Sequential(nn.Linear(400, 400))
    large = tc.ones(300, 300)  # noqa: F841
    x = tc.ones(2, 2)
    with Failing(name, 99) as failing, pytest.raises(OutOfMemoryError) as caught:
        CALLS[name](x)
    text = str(caught.value)
    assert text.startswith(f"{name}: expected room for its result on device 'cpu'")
    assert "0.61 MiB: Sequential.0.weight (torch.float32 of shape [400, 400])" in text
    assert f"'large' at {__file__}:" in text
    assert "in test_a_second_failure_names_the_holders" in text
    assert failing.calls == 2
    assert isinstance(caught.value.__cause__, MemoryError)
    assert len(model) == 1


@pytest.mark.parametrize("name", ["rand", "randn"])
def test_draws_that_fit_nowhere_end_in_the_error(name) -> None:
    """More numbers than a process can address are missing memory, and the generator's next numbers are the same."""
    tc.manual_seed(3)
    expected = tc.rand(3).tolist()
    tc.manual_seed(3)
    with pytest.raises(OutOfMemoryError, match=f"^{name}: expected room"):
        getattr(tc, name)(2**46)
    assert tc.rand(3).tolist() == expected


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("mul", "kron"),
        ("matmul_nt", "inner"),
        ("matmul", "mm"),
        ("addmm", "addbmm"),
        ("addr", "addr"),
        ("cdist", "cdist"),
        ("clone", "select_scatter"),
    ],
)
def test_a_call_that_asks_its_kernel_by_itself_gets_a_second_try(kernel, name) -> None:
    """One failure is mended by freed caches; the result is as ever."""
    x, batch = tc.arange(4.0).reshape(2, 2), tc.arange(8.0).reshape(2, 2, 2)
    given = {"addbmm": (x, batch, batch), "addr": (x, x[0], x[1]), "select_scatter": (x, x[0], 0, 1)}.get(name, (x, x))
    expected = getattr(tc, name)(*given).tolist()
    with Failing(kernel, 1) as failing:
        assert getattr(tc, name)(*given).tolist() == expected
    assert failing.calls == 2


def test_a_backward_kernel_gets_a_second_try() -> None:
    """The gradient is that of a walk that found memory at once."""
    x = tc.ones(2, 3, requires_grad=True)
    with Failing("cross_entropy_backward", 1) as failing:
        nn.functional.cross_entropy(x, tc.tensor([0, 1])).backward()
    assert failing.calls == 2
    assert x.grad[0].tolist() == pytest.approx([-1 / 3, 1 / 6, 1 / 6])


def test_a_real_shortage_ends_in_the_error() -> None:
    """In a process that may map 200 MB more, the error names what takes them; smaller tensors can be made after it."""
    pytest.importorskip("resource")
    code = """
        import resource
        import tensorcore as tc
        from tensorcore import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Linear(3000, 3000))

        def train():
            net = Net()
            optimizer = tc.optim.Adam(net.parameters())
            net.body(tc.ones(3, 3000)).sum().backward()
            optimizer.step()
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
            x = tc.ones(1000, 5000, requires_grad=True)
            kept = []
            while True:
                kept.append(x.exp())

        try:
            train()
        except tc.OutOfMemoryError as error:
            print(error)
        print(tc.ones(1000, 1000).sum().item())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert "Net.body.0.weight" in done.stdout
    assert "gradient of Net.body.0.weight" in done.stdout
    assert "Adam exp_avg_sq of Net.body.0.weight" in done.stdout
    assert "MiB: 'kept'[" in done.stdout
    assert "in train, kept for ExpBackward0 (torch.float32 of shape [1000, 5000])" in done.stdout
    assert done.stdout.endswith("1000000.0\n")


def test_history_knows_lines_and_modules() -> None:
    """After ``record_history`` a holder says which line and module made it; before and after it says nothing."""
    layer = nn.Sequential(nn.Linear(8, 20_000))
    tc.memory.record_history()
    kept = layer(tc.ones(10, 8))
    found = next(one for one in tc.memory.holders(limit=None) if "'kept'" in str(one.names))
    tc.memory.record_history(False)
    assert found.line.startswith(f"{__file__}:")
    assert found.line.endswith("in test_history_knows_lines_and_modules, by Sequential.0")
    assert (found.nbytes, found.shape, found.dtype) == (800_000, (10, 20_000), "torch.float32")
    assert not next(one for one in tc.memory.holders(limit=None) if "'kept'" in str(one.names)).line
    assert kept.shape == (10, 20_000)


def test_what_a_module_keeps_is_named() -> None:
    """A tensor in a list that is an attribute of a module has the module's path and its place in the list."""

    class Remembering(tc.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.past = [tc.zeros(300, 1000)]

    layers = tc.nn.Sequential(Remembering())
    names = [one.names for one in tc.memory.holders(limit=None)]
    assert ("Sequential.0.past[0]",) in names
    assert len(layers) == 1


def test_a_storage_is_listed_once() -> None:
    """Views share a holder, with all their names."""
    base = tc.ones(500, 500)
    view = base[1:]
    found = [one for one in tc.memory.holders(limit=None) if any("'base'" in name for name in one.names)]
    assert len(found) == 1
    assert any("'view'" in name for name in found[0].names)
    assert found[0].nbytes == base.nbytes > view.nbytes


def test_counts_follow_a_tensor() -> None:
    """Allocated bytes rise and fall with it, the peak stays until it is reset."""
    tc.memory.reset_peak_memory_stats()
    before = tc.memory.memory_allocated()
    x = tc.empty(1 << 20)
    assert tc.memory.memory_allocated() - before == 4 << 20
    del x
    assert tc.memory.memory_allocated() == before
    assert tc.memory.max_memory_allocated() - before >= 4 << 20
    tc.memory.reset_peak_memory_stats()
    assert tc.memory.max_memory_allocated() == before
    assert tc.memory.memory_reserved() <= tc.memory.max_memory_reserved()


def test_the_host_has_the_counts_of_a_device() -> None:
    """``cpu`` tells of its allocator in the words of ``cuda``."""
    names = [one for one in tc.cpu.__all__ if "memory" in one]
    assert set(names) <= set(tc.cuda.__all__)
    held = tc.empty(1 << 20)
    assert tc.cpu.memory_allocated() == tc.memory.memory_allocated() >= held.nbytes
    assert tc.cpu.memory_stats()["allocated_bytes.current"] == tc.cpu.memory_allocated()
    assert tc.cpu.max_memory_allocated() >= tc.cpu.memory_allocated()
    assert tc.cpu.memory_snapshot()[0]["nbytes"] >= held.nbytes
    del held
    tc.cpu.empty_cache()
    assert tc.cpu.memory_stats()["cached_bytes.current"] == 0


def test_summary_lists_counts_and_holders() -> None:
    """Every count in a readable unit, and the largest holders."""
    held = tc.ones(1 << 20)
    text = tc.memory.memory_summary()
    assert text.startswith("Memory of cpu")
    assert "4.00 MiB: 'held' at" in text
    assert "'held'" not in tc.memory.memory_summary(abbreviated=True)
    assert held.sum().item() == 1 << 20


@pytest.mark.parametrize("call", [tc.memory.memory_allocated, tc.memory.reset_peak_memory_stats])
def test_devices_without_counts_say_so(call) -> None:
    """NotImplementedError, as the device keeps none."""
    with pytest.raises(NotImplementedError):
        call("meta")


def test_what_a_failed_step_held_goes_with_its_error() -> None:
    """Once the error is caught nothing of the step is left, and no collection is needed for it."""

    def step() -> None:
        x = tc.ones(8)
        seen.append(weakref.ref(x))
        (x + x).exp()

    seen: list[weakref.ref] = []
    gc.collect()
    gc.disable()
    try:
        with Failing("exp", 2), pytest.raises(OutOfMemoryError, match="largest holders"):
            step()
        held = seen[0]()
    finally:
        gc.enable()
    assert held is None
