"""cuDNN without a GPU: plans for the shapes of benchmarks, and what the kernels do around the library."""

import json
from types import SimpleNamespace

import pytest

from tensorcore_cuda.kernels import Driver, over
from tensorcore_cuda.kernels.cudnn import (
    Cudnn,
    attention_gradient_graph,
    attention_graph,
    convolution_graph,
    planned,
)
from tests.cuda.kernels.case import BFLOAT16, FLOAT, HALF, values
from tests.cuda.kernels.device import NotTaken, close, fallbacks, moved, oracle, put, xp
from tests.cuda_standin.emulation.compile import compiler

# A device as cuDNN describes it: an H200, by its public data sheet.
H200 = {
    "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "multiProcessorCount": 132, "smClockRateKHz": 1980000,
    "memClockRateKHz": 3201000, "l2CacheSize": 62914560, "warpSize": 32, "deviceName": "NVIDIA H200",
    "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
    "maxRegistersPerSM": 65536, "regsPerBlock": 65536, "pciDeviceId": 0, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1, "totalGlobalMem": 150754820096,
    "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
}  # fmt: skip
# ResNet-50's: channels and sizes in, weights, stride, padding.
RESNET = (
    ((3, 224), (64, 3, 7, 7), 2, 3),
    ((64, 56), (64, 64, 1, 1), 1, 0),
    ((64, 56), (64, 64, 3, 3), 1, 1),
    ((256, 56), (512, 256, 1, 1), 2, 0),
    ((512, 7), (512, 512, 3, 3), 1, 1),
)
BATCH = 32


@pytest.fixture(scope="module")
def where():
    """cuDNN and the properties of a device that is not here; skipped without the library."""
    cudnn = pytest.importorskip(
        "cudnn", reason="cuDNN's frontend is not here; pip install nvidia-cudnn-frontend==1.28.0"
    )
    try:
        return cudnn, cudnn.create_device_properties(json.dumps(H200))
    except Exception as error:  # the frontend raises this and that without the library
        pytest.skip(f"cuDNN is not here: pip install nvidia-cudnn-cu13 ({error})")


@pytest.mark.parametrize("shape", RESNET, ids=str)
@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT], ids=str)
def test_there_is_a_plan_for_a_convolution(where, kind, dtype, shape):
    """Each of the three, for the shapes that are measured."""
    cudnn, properties = where
    (channels, size), weight, stride, padding = shape
    count = (size + 2 * padding - weight[2]) // stride + 1
    x, y = (BATCH, channels, size, size), (BATCH, weight[0], count, count)
    options = dict(stride=(stride,) * 2, padding=(padding,) * 2, dilation=(1, 1), device_property=properties)
    graph = convolution_graph(cudnn, kind, dtype, x, weight, y, **options).graph
    assert planned(cudnn, graph, deterministic=False, exact=False) >= 0
    assert graph.get_execution_plan_count() > 0


@pytest.mark.parametrize("deterministic, exact", [(True, False), (False, True)])
def test_there_are_plans_without_what_a_switch_leaves_out(where, deterministic, exact):
    """Deterministic ones, and exact ones in float32."""
    cudnn, properties = where
    options = dict(stride=(1, 1), padding=(1, 1), dilation=(1, 1), device_property=properties)
    for kind in ("fprop", "dgrad", "wgrad"):
        graph = convolution_graph(cudnn, kind, FLOAT, (8, 64, 28, 28), (64, 64, 3, 3), (8, 64, 28, 28), **options).graph
        planned(cudnn, graph, deterministic=deterministic, exact=exact)
        assert graph.get_execution_plan_count() > 0


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("make", [attention_graph, attention_gradient_graph])
def test_attention_is_a_graph_that_cudnn_knows(where, make, causal):
    """16 heads, 4096 long, both ways; plans for it need a device."""
    cudnn, properties = where
    layout = (1, 16, 4096, 64), (16 * 4096 * 64, 4096 * 64, 64, 1)
    graph = make(
        cudnn,
        BFLOAT16,
        layout,
        layout,
        layout,
        causal=causal,
        scale=0.125,
        device_property=properties,
        sm_version=900,
        sm_count=132,
    ).graph
    graph.validate()
    graph.build_operation_graph()
    outputs = graph.get_outputs()
    assert len(outputs) == (2 if make is attention_graph else 3)


# Around the library


class Library:
    """Stands for cuDNN: it plans what it is told to, and counts."""

    def __init__(self, refuses=()):
        self.refuses, self.made, self.ran, self.time = refuses, [], [], 0.0
        self.data_type = SimpleNamespace(HALF=1, BFLOAT16=2, FLOAT=3, DOUBLE=4)
        self.heur_mode = SimpleNamespace(A=1, FALLBACK=2)
        self.build_plan_policy = SimpleNamespace(ALL=1, HEURISTICS_CHOICE=2)
        self.numerical_note = SimpleNamespace(
            NONDETERMINISTIC="any order", TENSOR_CORE="rounded", DOWN_CONVERT_INPUTS="cut"
        )

    def create_handle(self):
        return "handle"

    def set_stream(self, handle, stream):
        assert handle == "handle"

    def pygraph(self, **options):
        assert options["handle"] == "handle"
        self.made.append(Graph(self))
        return self.made[-1]


class Tensor:
    def __getattr__(self, name):
        return lambda *_: self


class Graph:
    def __init__(self, library):
        self.library, self.left_out, self.tried, self.chosen = library, [], [], None

    def __getattr__(self, name):
        return lambda *args, **options: self.asked(name, options)

    def asked(self, name, options):
        if name in self.library.refuses:
            raise RuntimeError("no engine")
        if name.startswith("conv"):
            self.kind = name
        return Tensor()

    def deselect_numeric_notes(self, notes):
        self.left_out += notes

    def get_execution_plan_count(self):
        return 3

    def execute_plan_at_index(self, values, workspace, number, handle):
        self.tried.append(number)
        self.library.time += (5.0, 1.0, 3.0)[number]

    def select_plan(self, number):
        self.chosen = number

    def get_workspace_size(self):
        return 64

    def execute(self, values, workspace, handle):
        assert all(type(one) is int for one in [*values.values(), workspace])
        assert all(one % 16 == 0 for one in values.values())
        assert len(values) == 3
        self.library.ran.append(self)


def with_library(library):
    driver = Driver(xp)
    driver.cudnn = Cudnn(driver, library)
    return over(fallbacks(), driver)


OPTIONS = dict(stride=(1, 1), padding=(1, 1), dilation=(1, 1), groups=1)


def convolve(kernels, dtype=HALF, size=5):
    return kernels["conv"](
        put(values(dtype, 2, 3, size, size)), put(values(dtype, 4, 3, 3, 3)), None, counts=(size, size), **OPTIONS
    )


def test_a_shape_is_planned_once():
    """The second call runs the plan of the first; another shape or dtype has one of its own."""
    library = Library()
    kernels = with_library(library)
    convolve(kernels)
    convolve(kernels)
    assert (len(library.made), len(library.ran)) == (1, 2)
    convolve(kernels, size=6)
    convolve(kernels, dtype=FLOAT)
    assert (len(library.made), len(library.ran)) == (3, 4)


def test_arrays_begin_where_plans_expect_them():
    """A view that begins at no multiple of 16 bytes is copied for a convolution, and none of cuDNN's for attention."""
    library = Library()
    kernels = with_library(library)
    with moved(1):
        x, weight, q = put(values(HALF, 2, 3, 5, 5)), put(values(HALF, 4, 3, 3, 3)), put(values(HALF, 1, 2, 4, 8))
    kernels["conv"](x, weight, None, counts=(5, 5), **OPTIONS)
    assert len(library.ran) == 1
    packed = put(values(HALF, 1, 2, 4, 12))[..., :8]
    for one in (q, packed):
        with pytest.raises(NotTaken):
            kernels["attention"](one, one, one, None, causal=False, scale=1.0)


@pytest.mark.parametrize(
    "switch, left_out",
    [({}, []), ({"deterministic": True}, ["any order"]), ({"allow_tf32": False}, ["rounded", "cut"])],
    ids=["none", "deterministic", "exact"],
)
def test_switches_leave_plans_out(switch, left_out):
    """They are read at each call, so a plan made before a change is not run after it."""
    import tensorcore

    library = Library()
    kernels = with_library(library)
    convolve(kernels, FLOAT)
    with tensorcore.backends.cudnn.flags(**switch):
        convolve(kernels, FLOAT)
    assert library.ran[-1].left_out == left_out
    assert len(library.made) == 1 + bool(switch)


def test_a_benchmark_chooses_the_plan():
    """All plans run on the arrays at the first call, and the one that took the least time runs from then on."""
    import tensorcore

    class Event:
        def record(self):
            self.at = library.time

        def synchronize(self):
            pass

    library = Library()
    stream = SimpleNamespace(ptr=0, is_capturing=lambda: False)
    timed = {"Event": Event, "get_elapsed_time": lambda a, b: b.at - a.at, "get_current_stream": lambda: stream}
    driver = Driver(SimpleNamespace(**{**vars(xp), "cuda": SimpleNamespace(**{**vars(xp.cuda), **timed})}))
    driver.cudnn = Cudnn(driver, library)
    kernels = over(fallbacks(), driver)
    with tensorcore.backends.cudnn.flags(benchmark=True):
        for _ in range(2):
            convolve(kernels)
    (graph,) = library.made
    assert graph.chosen == 1
    assert set(graph.tried) == {0, 1, 2}
    assert library.ran == [graph, graph]


@pytest.mark.skipif(compiler() is None, reason="no C++ compiler is here")
@pytest.mark.parametrize("why", ["no plan", "switched off", "no library"])
def test_without_cudnn_windows_and_products_convolve(why):
    """The same result by the kernels of our own; a refusal is asked for once."""
    import tensorcore

    library = Library(refuses=("build_plans",) if why == "no plan" else ())
    kernels = with_library(library) if why != "no library" else over(fallbacks(), Driver(xp))
    expected = oracle["conv"](values(HALF, 2, 3, 5, 5), values(HALF, 4, 3, 3, 3), None, counts=(5, 5), **OPTIONS)
    with tensorcore.backends.cudnn.flags(enabled=why != "switched off"):
        for _ in range(2):
            close(convolve(kernels), expected, 4)
    assert not library.ran
    assert len(library.made) == (why == "no plan")


def test_attention_that_the_library_does_not_take_goes_on():
    """A mask, float32, or sizes that are no multiple of 8."""
    kernels = with_library(Library())
    for dtype, size, mask in ((FLOAT, 8, None), (HALF, 7, None), (HALF, 8, put(values(HALF, 4, 4)))):
        q = put(values(dtype, 1, 2, 4, size))
        with pytest.raises(NotTaken):
            kernels["attention"](q, q, q, mask, causal=False, scale=1.0)
