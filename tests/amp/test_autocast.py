"""Autocast regions: what they cast, where they begin and end, and that nothing is left of them after."""

import threading

import numpy as np
import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.amp import custom_bwd, custom_fwd
from tensorcore.nn.functional import linear
from tensorcore.utils.checkpoint import checkpoint

held = tc.matmul  # as a program may keep it, from before any region


def eye(dtype=tc.float32):
    return tc.ones(2, 2, dtype=dtype)


def test_a_region_casts_products():
    """Under whatever name a product is called, it runs in the narrow dtype within, and as ever after."""
    x = eye()
    ways = {
        "@": lambda: x @ x,
        "method": lambda: x.matmul(x),
        "held": lambda: held(x, x),
        "facade": lambda: tc.mm(x, x),
        "imported": lambda: linear(x, x),
        "module": lambda: nn.Linear(2, 2)(x),
        "inside": lambda: tc.einsum("ij,jk->ik", x, x),
        "keywords": lambda: tc.matmul(input=x, other=x),
    }
    with tc.autocast("cpu"):
        assert {name: way().dtype for name, way in ways.items()} == dict.fromkeys(ways, tc.bfloat16)
    assert {name: way().dtype for name, way in ways.items()} == dict.fromkeys(ways, tc.float32)


def test_nothing_is_left_of_a_region():
    """After the last region the ops' functions run the very code that they ran before."""
    before = tc.matmul.__code__
    with tc.autocast("cpu"):
        assert tc.matmul.__code__ is not before
        with tc.autocast("cpu", enabled=False):
            pass
        assert tc.matmul.__code__ is not before
    assert tc.matmul.__code__ is before
    with tc.autocast("cpu", enabled=False):
        assert tc.matmul.__code__ is before


def test_a_region_ends_with_an_error():
    """An exception leaves the region."""
    with pytest.raises(ZeroDivisionError), tc.autocast("cpu"):
        raise ZeroDivisionError
    assert not tc.is_autocast_enabled("cpu")
    assert (eye() @ eye()).dtype is tc.float32


@pytest.mark.parametrize("dtype", [tc.bfloat16, tc.float16])
def test_losses_run_in_float32(dtype):
    """A loss of narrow results is computed in float32."""
    with tc.autocast("cpu", dtype=dtype):
        out = nn.Linear(2, 1)(eye())
        assert out.dtype is dtype
        assert nn.functional.mse_loss(out, tc.zeros(2, 1)).dtype is tc.float32


def test_several_inputs_are_promoted():
    """Tensors are joined in the widest of their dtypes, those of a list too."""
    with tc.autocast("cpu"):
        assert tc.cat([eye(), eye(tc.bfloat16)]).dtype is tc.float32
        assert tc.stack([eye(tc.bfloat16), eye(tc.bfloat16)]).dtype is tc.bfloat16
        assert tc.cat([eye(tc.float64), eye(tc.bfloat16)]).dtype is tc.float64
        with pytest.raises(RuntimeError, match="Unexpected floating"):
            tc.cat([eye(tc.float16), eye(tc.float16)])


def test_what_is_not_cast():
    """float64, integers, writes in place and into ``out=``, and other devices stay as they are."""
    x, out = eye(), eye()
    with tc.autocast("cpu"):
        assert (eye(tc.float64) @ eye(tc.float64)).dtype is tc.float64
        assert (eye(tc.int64) @ eye(tc.int64)).dtype is tc.int64
        assert tc.mm(x, x, out=out).dtype is tc.float32
        assert x.addmm_(eye(), eye()).dtype is tc.float32
        assert (tc.ones(2, 2, device="meta") @ tc.ones(2, 2, device="meta")).dtype is tc.float32
        assert (x + eye(tc.bfloat16)).dtype is tc.float32
    with tc.autocast("cuda", enabled=False):
        assert (x @ x).dtype is tc.float32


def test_regions_nest():
    """An inner region may switch casting off, on again, and to another dtype; the outer one comes back."""
    x = eye()
    with tc.autocast("cpu"):
        with tc.autocast("cpu", enabled=False):
            assert (x @ x).dtype is tc.float32
            with tc.autocast("cpu", dtype=tc.float16):
                assert (x @ x).dtype is tc.float16
            assert not tc.is_autocast_enabled("cpu")
        assert (x @ x).dtype is tc.bfloat16
        assert tc.get_autocast_dtype("cpu") is tc.bfloat16


def test_one_region_may_be_entered_again_inside_itself():
    """A region object that is entered twice remembers both times what was before."""
    region = tc.autocast("cpu")
    with region:
        with region:
            pass
        assert tc.is_autocast_enabled("cpu")
    assert not tc.is_autocast_enabled("cpu")


def test_a_decorated_function_runs_inside():
    """As a decorator a region is around each call."""

    @tc.autocast("cpu", dtype=tc.float16)
    def product(x):
        """x times x"""
        return x @ x

    assert product(eye()).dtype is tc.float16
    assert product.__doc__ == "x times x"
    assert (eye() @ eye()).dtype is tc.float32


def test_a_region_belongs_to_its_thread():
    """Other threads compute as ever while one is inside; the bodies stay exchanged until the last has left."""
    inside, leave, seen = threading.Event(), threading.Event(), {}

    def other():
        with tc.autocast("cpu", dtype=tc.float16):
            inside.set()
            leave.wait(10)
            seen["other"] = (eye() @ eye()).dtype

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    seen["outside"] = (eye() @ eye()).dtype
    with tc.autocast("cpu"):
        seen["mine"] = (eye() @ eye()).dtype
    leave.set()
    thread.join()
    seen["after"] = (eye() @ eye()).dtype
    assert seen == {"outside": tc.float32, "mine": tc.bfloat16, "other": tc.float16, "after": tc.float32}


def test_many_threads_in_and_out():
    """Threads that enter and leave at random each see their own state, and the ops end as they began."""
    before, wrong = tc.matmul.__code__, []

    def work(seed):
        x, rng = eye(), np.random.default_rng(seed)
        for _ in range(200):
            if rng.random() < 0.5:
                with tc.autocast("cpu"):
                    if (x @ x).dtype is not tc.bfloat16:
                        wrong.append("inside")
            elif (x @ x).dtype is not tc.float32:
                wrong.append("outside")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert tc.matmul.__code__ is before


def test_a_weight_is_cast_once():
    """Two uses of a leaf in a region share one cast, whose gradients come back summed, in float32."""
    weight = nn.Parameter(eye())
    with tc.autocast("cpu"):
        one, two = weight @ eye(), eye() @ weight
        casts = {id(one.grad_fn.next_functions[0][0]), id(two.grad_fn.next_functions[1][0])}
        assert len(casts) == 1
    with tc.autocast("cpu"):
        assert id((weight @ eye()).grad_fn.next_functions[0][0]) not in casts
    (one + two).float().sum().backward()
    assert weight.grad.dtype is tc.float32
    assert weight.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_casts_that_are_not_kept():
    """Without the cache, and of a weight that was written or cast off the tape, each use has a cast of its own."""
    weight = nn.Parameter(eye())

    def cast():
        return (weight @ eye()).grad_fn.next_functions[0][0]

    with tc.autocast("cpu", cache_enabled=False):
        assert cast() is not cast()
    with tc.autocast("cpu"):
        with tc.no_grad():
            assert not (weight @ eye()).requires_grad
        first = cast()
        assert first is cast()
        with tc.no_grad():
            weight.mul_(2)
        assert first is not cast()
        assert (weight @ eye()).tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_custom_functions_take_part():
    """``custom_fwd`` casts and leaves the region; ``custom_bwd`` runs backward as forward ran."""
    seen = []

    class Product(tc.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=tc.float32)
        def forward(ctx, x):
            seen.append((x.dtype, (x @ x).dtype))
            return x * 2

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, g):
            seen.append(tc.is_autocast_enabled("cpu"))
            return g * 2

    class Inside(Product):
        @staticmethod
        @custom_fwd(device_type="cpu")
        def forward(ctx, x):
            seen.append((x.dtype, (x @ x).dtype))
            return x * 2

    for function in (Product, Inside):
        x = eye(tc.bfloat16).requires_grad_()
        with tc.autocast("cpu"):
            function.apply(x).sum().backward()
    assert seen == [(tc.float32, tc.float32), False, (tc.bfloat16, tc.bfloat16), True]


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint_computes_again_inside(use_reentrant):
    """What is computed again for the backward runs in the region of the first time."""
    weight, seen = nn.Parameter(eye()), []

    def function(x):
        out = x @ weight
        seen.append(out.dtype)
        return out.float().exp()

    x = eye().requires_grad_()
    with tc.autocast("cpu"):
        out = checkpoint(function, x, use_reentrant=use_reentrant)
    out.sum().backward()
    assert seen == [tc.bfloat16, tc.bfloat16]
    assert weight.grad.dtype is tc.float32


def test_the_switches_of_a_thread():
    """The functions that a region stands on may be called by themselves."""
    assert tc.get_autocast_dtype("cpu") is tc.bfloat16
    assert tc.get_autocast_dtype("cuda") is tc.float16
    assert tc.is_autocast_cache_enabled()
    tc.set_autocast_dtype("cpu", tc.float16)
    tc.set_autocast_enabled("cpu", True)
    try:
        assert (eye() @ eye()).dtype is tc.float16
    finally:
        tc.set_autocast_enabled("cpu", False)
        tc.set_autocast_dtype("cpu", tc.bfloat16)
    assert (eye() @ eye()).dtype is tc.float32
    assert tc.autocast_increment_nesting() == 1
    assert tc.autocast_decrement_nesting() == 0
    with pytest.warns(DeprecationWarning, match="is_autocast_enabled"):
        assert not tc.is_autocast_cpu_enabled()


def test_cuda_that_is_not_there():
    """A region for a device that cannot be used warns and casts nothing; the older names warn that they are old."""
    if tc.cuda.is_available():
        pytest.skip("it is there")
    with pytest.warns(UserWarning, match="CUDA is not available"):
        region = tc.autocast("cuda")
    with region:
        assert not tc.is_autocast_enabled("cuda")
        assert (eye() @ eye()).dtype is tc.float32
    with pytest.warns(FutureWarning, match="deprecated"), pytest.warns(UserWarning, match="CUDA is not available"):
        tc.cuda.amp.autocast()
    with pytest.warns(FutureWarning, match="deprecated"), tc.cpu.amp.autocast():
        assert (eye() @ eye()).dtype is tc.bfloat16


def test_bad_arguments_are_refused():
    """Unknown devices and things that are no functions are refused; an unsupported dtype switches the region off."""
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        tc.autocast(3)
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'nowhere'"):
        tc.autocast("nowhere")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        tc.autocast("meta")
    with pytest.raises(TypeError, match="requires a callable"):
        tc.autocast("cpu")(3)
    with pytest.warns(UserWarning, match="target dtype is not supported"), tc.autocast("cpu", dtype=tc.float32):
        assert not tc.is_autocast_enabled("cpu")
    with pytest.raises(RuntimeError, match="device type"):
        tc.is_autocast_enabled("nowhere")


def test_accelerators_have_a_list_of_their_own(monkeypatch):
    """With it powers, softmax and interpolation run in float32, the last but where it is pooling."""
    monkeypatch.setattr(tc.amp.state, "CPU", tc.amp.lists.ACCELERATOR)
    x = tc.ones(1, 1, 2, 2, dtype=tc.float16)
    with tc.autocast("cpu", dtype=tc.float16):
        assert nn.functional.interpolate(x, 4).dtype is tc.float32
        assert nn.functional.softmax(x, 1).dtype is tc.float32
        assert nn.functional.softmax(input=x, dim=1).dtype is tc.float32
        assert tc.sum(x).dtype is x.sum(1, True).dtype is tc.float32
        assert nn.functional.softmax(x, 1, dtype=tc.float16).dtype is tc.float16
        assert (x**2).dtype is tc.float32
        assert (2**x).dtype is tc.float32
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            nn.functional.binary_cross_entropy(x, x)
    assert tc.amp.lists.category("interpolate", "cuda", x, 4, mode="area") == "as_is"


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_training_equals_pytorchs(dtype, torch):
    """Thirty steps of a small network with autocast and scaled gradients lose what PyTorch's lose, to 2 %."""
    rng = np.random.default_rng(8)
    x, y = rng.standard_normal((32, 8)), rng.standard_normal((32, 2))
    start = None
    found = []
    for library in (tc, torch):
        layers = library.nn
        model = layers.Sequential(
            layers.Linear(8, 16), layers.LayerNorm(16), layers.GELU(), layers.Linear(16, 16), layers.ReLU(),
            layers.Linear(16, 2),
        )  # fmt: skip
        start = start or [one.detach().numpy().copy() for one in model.parameters()]
        with library.no_grad():
            for one, value in zip(model.parameters(), start, strict=True):
                one.copy_(library.tensor(value))
        optimizer = library.optim.Adam(model.parameters(), lr=0.01)
        scaler = library.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=100)
        inputs, targets = library.tensor(x, dtype=library.float32), library.tensor(y, dtype=library.float32)
        losses, scales = [], []
        for _ in range(30):
            optimizer.zero_grad()
            with library.autocast("cpu", dtype=getattr(library, dtype)):
                loss = library.nn.functional.mse_loss(model(inputs), targets)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            library.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
            scales.append(scaler.get_scale())
        found.append((losses, scales))
    assert found[0][1] == found[1][1]
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=0.02)
    assert found[0][0][-1] < 0.7 * found[0][0][0]


@pytest.mark.parametrize("given", ["float32", "bfloat16", None])
@pytest.mark.parametrize("name", ["RNN", "GRU", "RNNCell", "GRUCell", "LSTMCell"])
def test_states_keep_their_dtype(name, given):
    """Of gated networks states stay what they are inside a region, whatever the products in it are; of Elman's they do not."""
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    found = []
    for library in (tc, torch):
        library.manual_seed(0)
        net = getattr(library.nn, name)(3, 4)
        x = library.arange(30.0).reshape(5, 2, 3) / 30
        state = None if given is None else library.full((1, 2, 4), 0.3, dtype=getattr(library, given))
        if name.endswith("Cell"):
            x, state = x[0], None if state is None else state[0]
        with library.autocast("cpu"):
            made = net(x, (state, state) if name.startswith("LSTM") and state is not None else state)
        first = made if isinstance(made, library.Tensor) else made[0]
        first.float().sum().backward()
        grads = [one.grad for one in net.parameters()]
        found.append([str(first.dtype).split(".")[-1], *[one.detach().float().numpy() for one in (first, *grads)]])
    assert found[0][0] == found[1][0]
    for ours, theirs in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.03, atol=0.02)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_take_what_other_layers_gave(name):
    """Behind a layer of the region, and with the states of the call before, recurrent layers and cells run as PyTorch's."""
    torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
    found = []
    for library in (tc, torch):
        library.manual_seed(0)
        layer, cell = getattr(library.nn, name)(3, 4), getattr(library.nn, f"{name}Cell")(3, 4)
        first, state, step = library.nn.Linear(3, 3), None, None
        x = library.arange(30.0).reshape(5, 2, 3) / 30
        with library.autocast("cpu"):
            for _ in range(2):
                out, state = layer(first(x), state)
                step = cell(first(x[0]), step)
        out.sum().backward()
        assert out.dtype is library.bfloat16
        assert layer.weight_ih_l0.grad.dtype is library.float32
        last = step[0] if name == "LSTM" else step
        found.append([one.detach().float().numpy() for one in (out, last, layer.weight_ih_l0.grad)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.05, atol=0.02)
    with pytest.raises(ValueError, match="must have the type"):
        getattr(nn, name)(3, 4)(tc.ones(1, 1, 3, dtype=tc.bfloat16))


def test_regions_know_a_device_that_wraps_one() -> None:
    """``autocast(x.device.type)`` of a lazy tensor is the region of the device underneath, and switches it off too."""
    x = tc.ones(2, 2, device="lazy")
    with tc.autocast(x.device.type, dtype=tc.bfloat16):
        assert (x @ x).dtype is tc.bfloat16
        assert tc.is_autocast_enabled("lazy")
        assert tc.is_autocast_enabled("cpu")
        with tc.autocast("lazy", enabled=False):
            assert (x @ x).dtype is tc.float32
    assert tc.amp.autocast_mode.is_autocast_available("lazy")


def test_devices_that_programs_go_through() -> None:
    """Whether a region is on may be asked for each of PyTorch's kinds of device: of one that is not here it is not."""
    assert not any(tc.is_autocast_enabled(one) for one in ("cuda", "hpu", "ipu", "mps", "mtia", "xla", "xpu"))
    with pytest.raises(RuntimeError):
        tc.is_autocast_enabled("nothing_of_the_kind")


def test_a_region_looks_for_no_device(monkeypatch) -> None:
    """A region for the host or for CUDA is begun without a search for the device, which may be absent."""

    def search(name):
        raise AssertionError(f"searched for {name}")

    monkeypatch.setattr(tc.amp.state, "find_device", search)
    for name in ("cpu", "cuda"):
        with tc.autocast(name, dtype=tc.bfloat16, enabled=False):
            assert not tc.is_autocast_enabled(name)
