"""Programs whose groups of ops are C, compiled: the same bits as their steps, kept on disk, and no harm where there is no compiler."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tensorcore as tc
from tensorcore.plugin import Value
from tensorcore_cpu import fused, library
from tensorcore_cpu.backend import CPUBackend

from .native import awkward, needs_native
from .programs import BINARY, COMPARED, CPU, UNARY, build, drawn, drawn_rows, same_bits

pytestmark = [needs_native, pytest.mark.skipif(library.compiler() is None, reason="no C compiler here")]

FLOATS = ["float32", "float64"]
HALVES = ["bfloat16", "float16"]


@pytest.fixture(scope="module")
def kept(request, tmp_path_factory):
    """Where libraries lie that several runs of the tests may share."""
    cache = getattr(request.config, "cache", None)
    return cache.mkdir("codegen") if cache else tmp_path_factory.mktemp("codegen")


@pytest.fixture(autouse=True)
def codegen(monkeypatch, kept):
    """Programs are written down, and the warning that one could not be is an error; what is asked for is counted."""
    monkeypatch.setattr(CPUBackend, "writes", True)
    monkeypatch.setenv("TENSORCORE_CODEGEN_CACHE", str(kept))
    library._folder.cache_clear()
    monkeypatch.setattr(library, "_failed", [])
    asked = []
    addresses = library.addresses

    def counted(text, count):
        asked.append((text, count))
        return addresses(text, count)

    monkeypatch.setattr(library, "addresses", counted)
    return asked


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of the test's own, which nothing is loaded from yet."""
    monkeypatch.setenv("TENSORCORE_CODEGEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "_loaded", {})
    remembered = library._folder, library.compiler, library._surroundings
    for one in remembered:
        one.cache_clear()
    yield tmp_path / "cache"
    for one in remembered:
        one.cache_clear()


def alike(made, *ends, out=None):
    """The program's results have the bits that its steps made."""
    kernel = CPU.compile(made.program(*ends))
    for got, end in zip(kernel(*made.arrays, out=out), ends, strict=True):
        same(got, made.values[end.number])


def same(got, expected):
    """The bits, but for which NaN it is, of halves too."""
    assert got.dtype == expected.dtype
    if got.dtype == tc.bfloat16.numpy:
        got, expected = got.astype(np.float32), expected.astype(np.float32)
    same_bits(got, expected)


def polynomial(*arrays):
    """A program with one group, and its last value."""
    made = build(*arrays)
    product = made.call("mul", Value(0), Value(0))
    return made, made.call("sub", made.call("add", product, 1.5), made.call("exp", product))


@pytest.mark.usefixtures("isa")
class TestBits:
    """With each instruction set."""

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_every_op(self, dtype, codegen):
        """Over NaN, infinities, denormals and tails each op has the bits of its kernel, whatever reads its result."""
        values = awkward(dtype, 203)
        made = build(values, values[::-1].copy())
        x, y = Value(0), Value(1)
        results = [made.call(name, x) for name in UNARY]
        results += [made.call(name, *pair) for name in BINARY for pair in [(x, y), (x, 0.5)]]
        masks = [made.call(name, *pair) for name in [*COMPARED, "logical_or"] for pair in [(x, y), (y, results[0])]]
        masks += [made.call(name, x) for name in ("isnan", "isinf", "isfinite", "logical_not")]
        masks += [
            made.call(name, *masks[:2])
            for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "logical_xor", "eq", "ne")
        ]
        masks += [made.call("bitwise_not", masks[0]), made.call("where", masks[0], masks[1], masks[2])]
        results += [made.call("where", mask, x, y) for mask in masks]
        results += [made.call("cast", masks[0], dtype=getattr(tc, dtype)), made.call("cast", x, dtype=tc.bool)]
        results += [made.call("clamp", x, -1.0, 2.0), made.call("leaky_relu", x, negative_slope=0.1)]
        alike(made, *results)
        assert sum(count for _, count in codegen) > 3

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_no_two_roundings_become_one(self, dtype):
        """A product that is added to, or taken from, something is rounded first, also behind a function."""
        x, y, z = np.random.default_rng(0).standard_normal((3, 1000)).astype(dtype)
        made = build(x, y, z)
        x, y, z = map(Value, range(3))
        ends = []
        for name in ("sigmoid", "silu", "gelu", "square", "reciprocal", "tanh"):
            product = made.call("mul", made.call(name, x), y)
            ends += [
                made.call("add", product, z),
                made.call("sub", z, product),
                made.call("add", made.call(name, product), x),
            ]
        for end in range(0, len(ends), 9):
            alike(made, *ends[end : end + 9])

    @pytest.mark.parametrize("dtype", HALVES)
    def test_halves(self, dtype, codegen):
        """They round after each step, as the kernels do."""
        values = awkward("float32", 203).astype(getattr(tc, dtype).numpy)
        made = build(values, values[::-1].copy(), np.array(1.5, values.dtype))
        x, y, one = map(Value, range(3))
        x, y = made.call("mul", x, y), made.call("add", y, one)
        z = made.call("div", made.call("sub", x, y), made.call("exp", y))
        chosen = made.call("where", made.call("lt", x, z), y, z)
        alike(made, z, chosen, made.call("cast", chosen, dtype=tc.float32))
        assert codegen

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_every_length(self, dtype):
        """Tiles, single vectors and what is left of one, in places that begin within a vector too."""
        for size in [*range(70), 127, 2047, 2049, 5000]:
            values = awkward(dtype, max(size, 20))[:size]
            made, end = polynomial(values)
            place = np.empty(size + 1, dtype)[1:]
            alike(made, end)
            alike(made, end, out=(place,))
            same_bits(place, made.values[end.number])

    def test_operands_of_every_kind(self):
        """Rows, columns, numbers, strided ones, bools and one element for all."""
        values = awkward("float32", 120).reshape(10, 12)
        mask = np.random.default_rng(0).random((10, 12)) < 0.5
        made = build(values, values[:, ::-1], values[:1], values[:, :1], np.float32(2).reshape(()), mask, mask[:, :1])
        x, flipped, row, column, one, mask, masks = map(Value, range(7))
        sums = [made.call("add", made.call("mul", x, other), other) for other in (flipped, row, column, one)]
        sums.append(made.call("where", masks, made.call("where", mask, sums[0], row), sums[2]))
        alike(made, *sums)

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_past_the_caches(self, dtype, monkeypatch):
        """What is too large for the caches is stored past them, whether it begins with a vector or not."""
        monkeypatch.setattr(fused, "_LAST_CACHE", 0)
        made, end = polynomial(awkward(dtype, 3001))
        other = made.call("mul", end, Value(0))
        alike(made, end, other)
        alike(made, end, other, out=tuple(np.empty(3002, dtype)[1:] for _ in range(2)))

    def test_over_an_operand(self):
        """A result may take the place of an operand that it is made of."""
        values = awkward("float32", 5000)
        made, end = polynomial(values.copy())
        place = made.arrays[0]
        (got,) = CPU.compile(made.program(end))(place, out=(place,))
        assert got is place
        same_bits(place, made.values[end.number])

    @given(drawn())
    @settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_any_program(self, program):
        """Of broadcast and strided arrays, masks and several results."""
        made, program = program
        kernel = CPU.compile(program)
        if kernel is not None:
            for got, end in zip(kernel(*made.arrays), program.outputs, strict=True):
                same_bits(got, made.values[end.number])

    @given(drawn_rows())
    @settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_rows(self, program):
        """Around reductions of short and long rows, to a few roundings."""
        made, program = program
        kernel = CPU.compile(program)
        if kernel is not None:
            for got, end in zip(kernel(*made.arrays), program.outputs, strict=True):
                np.testing.assert_allclose(got, made.values[end.number], rtol=1e-12)


def test_many_results():
    """More of them than a function has places for."""
    made = build(awkward("float32", 100))
    ends, x = [], Value(0)
    for i in range(40):
        x = made.call("add", made.call("mul", x, 0.5), float(i))
        ends.append(x)
    alike(made, *ends)


def test_switch():
    """``backends.cpu.codegen`` turns it on for what is compiled from then on, and a function compiled before keeps its kernels."""

    def f(x):
        return (x * x + 1).exp() - x

    x = tc.linspace(-1, 1, 1000)
    assert tc.backends.cpu.codegen
    written = tc.compile(f)
    results = [written(x), written(x)]
    tc.backends.cpu.codegen = False
    plain = tc.compile(lambda x: f(x))
    results += [plain(x), plain(x)]
    assert not tc.backends.cpu.codegen
    assert all(bool((one == results[0]).all()) for one in results)


def test_training_step(codegen):
    """A step with an optimizer has the losses that it has without."""

    def losses(compiled):
        tc.manual_seed(0)
        model = tc.nn.Sequential(tc.nn.Linear(8, 16), tc.nn.Tanh(), tc.nn.Linear(16, 1))
        optimizer = tc.optim.Adam(model.parameters(), lr=0.01)
        x = tc.randn(32, 8)

        def step():
            optimizer.zero_grad()
            y = model(x)
            loss = ((y - x.sum(1, keepdim=True)) * y.sigmoid() + y.square()).mean()
            loss.backward()
            optimizer.step()
            return loss

        run = tc.compile(step) if compiled else step
        return [run().item() for _ in range(4)]

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-5)
    assert codegen


class TestOnDisk:
    """Where libraries lie."""

    def test_compiled_once(self, folder, monkeypatch):
        """Another process finds the library, and compiles nothing."""
        code = """
import sys
from tensorcore_cpu import library
run = library._run
def counted(command):
    print(command[1] if command[1:] == ["--version"] else "compiled")
    return run(command)
library._run = counted
import tensorcore as tc
f = tc.compile(lambda x: (x * x + 1.5) - (x * x).exp())
f(tc.ones(100)), f(tc.ones(100))
print(len(library._loaded))
"""
        environment = os.environ | {"TENSORCORE_CODEGEN": "1"}
        runs = [
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
            for _ in range(2)
        ]
        assert [one.stdout.split() for one in runs] == [["--version", "compiled", "1"], ["--version", "1"]], runs
        assert [one.suffix for one in folder.iterdir()] == [".so"]  # nothing else is left

    def test_half_a_file(self, folder, monkeypatch):
        """A library that is none is made again."""
        monkeypatch.setattr(library, "_key", lambda text: "half")
        folder.mkdir(mode=0o700)
        path = folder / "half.so"
        path.write_bytes(b"half")
        made, end = polynomial(awkward("float32", 100))
        alike(made, end)
        assert path.stat().st_size > 1000

    def test_folder_of_others(self, folder):
        """Where others may write nothing is loaded from."""
        folder.mkdir()
        folder.chmod(0o777)
        made, end = polynomial(awkward("float32", 100))
        alike(made, end)
        assert list(folder.iterdir()) == []

    def test_what_was_not_used_goes(self, folder, monkeypatch):
        """As many libraries are kept as there is room for, the ones that were used last."""
        monkeypatch.setattr(library, "_MOST", 2)
        for factor in range(4):
            made, x = build(awkward("float32", 20)), Value(0)
            for _ in range(factor + 2):
                x = made.call("mul", made.call("add", x, 1.0), x)
            alike(made, x)
        assert len(list(folder.glob("*.so"))) == 2


def test_what_is_installed():
    """The wheel has every file that a generated one includes."""
    root = Path(library.__file__).parent
    named = tomllib.loads((root.parents[1] / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"][
        "tensorcore_cpu"
    ]
    assert {str(path.relative_to(root)) for path in library.parts()} | {"conformance.toml"} == set(named)


class TestWithout:
    """Where it cannot be."""

    def test_no_compiler(self, folder, monkeypatch):
        """One warning says what is missing, and programs run as ever."""
        monkeypatch.setattr(library, "compiler", lambda: None)
        library._surroundings.cache_clear()
        made, end = polynomial(awkward("float32", 100))
        with pytest.warns(
            RuntimeWarning, match="codegen: expected a C compiler to make a library.*no C compiler is on the path"
        ):
            alike(made, end)
        alike(made, end)

    @pytest.mark.parametrize("version", ["exit 0", "exit 1"])
    def test_compiler_that_fails(self, folder, monkeypatch, version):
        """The warning has what the compiler said."""
        (folder.parent / "cc").write_text(
            f"#!/bin/sh\necho nothing to see >&2\n[ $1 = --version ] && {version}\nexit 1\n"
        )
        (folder.parent / "cc").chmod(0o755)
        monkeypatch.setenv("CC", str(folder.parent / "cc"))
        made, end = polynomial(awkward("float32", 100))
        with pytest.warns(RuntimeWarning, match="nothing to see"):
            alike(made, end)
        assert not list(folder.glob("*"))
