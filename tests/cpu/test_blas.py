"""Which library multiplies matrices: the switch, when it is looked for and loaded, what is said of it."""

import os
import subprocess
import sys

import pytest

import tensorcore
from tensorcore_cpu import blas, native

from .native import needs_native

needs_mkl = pytest.mark.skipif(
    blas.find_mkl() is None or not native.available(), reason="needs oneMKL: pip install tensorcore[mkl]"
)
LOADED = "print(any('libmkl' in line for line in open('/proc/self/maps')))"
needs_maps = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs a Linux system")


def run(program, **environment):
    """What a program prints in a new interpreter with these environment variables."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def installed(monkeypatch):
    """A oneMKL that is found."""
    monkeypatch.setattr(blas, "find_mkl", lambda: "libmkl_rt.so.3")


@pytest.mark.parametrize(("switch", "intel", "expected"), [
    ("", True, "libmkl_rt.so.3"), ("", False, None), ("mkl", False, "libmkl_rt.so.3"), ("own", True, None),
])  # fmt: skip
@pytest.mark.usefixtures("installed")
def test_the_processor_chooses_unless_the_switch_does(monkeypatch, switch, intel, expected):
    """oneMKL is taken on Intel's processors; TENSORCORE_BLAS takes it on others, or leaves it out."""
    monkeypatch.setenv("TENSORCORE_BLAS", switch)
    assert blas.wanted(intel) == expected


@pytest.mark.usefixtures("installed")
def test_a_library_that_there_never_is(monkeypatch):
    """The error names the switch and what it takes."""
    monkeypatch.setenv("TENSORCORE_BLAS", "atlas")
    with pytest.raises(RuntimeError, match=r"^TENSORCORE_BLAS: expected own or mkl, got 'atlas'; leave it out"):
        blas.wanted(True)


def test_a_library_that_is_not_installed(monkeypatch):
    """Not asked for, it is not missed; asked for, the error says what to install."""
    monkeypatch.setattr(blas, "find_mkl", lambda: None)
    monkeypatch.setenv("TENSORCORE_BLAS", "")
    assert blas.wanted(True) is None
    monkeypatch.setenv("TENSORCORE_BLAS", "mkl")
    with pytest.raises(RuntimeError, match=r"got none; install it with `pip install tensorcore\[mkl\]`"):
        blas.wanted(True)


def test_where_it_is_looked_for(monkeypatch, tmp_path):
    """The newest library of this Python's own folder is the one."""
    (tmp_path / "lib").mkdir()
    for version in (2, 3):
        (tmp_path / "lib" / f"libmkl_rt.so.{version}").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert blas.find_mkl.__wrapped__() == str(tmp_path / "lib" / "libmkl_rt.so.3")


@needs_native
def test_a_library_that_cannot_be_loaded(tmp_path):
    """Not asked for, it is left out; asked for, each product says why it cannot be loaded."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libmkl_rt.so.3").write_text("no library")
    program = f"""
import sys; sys.prefix = {str(tmp_path)!r}
import tensorcore as tc
for turn in range(2):
    try: print((tc.ones(64, 64) @ tc.ones(64, 64)).sum().item())
    except RuntimeError as error: print(str(error).split(',')[0].replace(' ', '_'))
"""
    assert run(program, TENSORCORE_BLAS="") == ["262144.0"] * 2
    assert run(program, TENSORCORE_BLAS="mkl") == ["TENSORCORE_BLAS:_expected_a_oneMKL_that_can_be_loaded"] * 2


@needs_mkl
@needs_maps
def test_it_is_loaded_at_the_first_large_product():
    """Neither the import nor a small product loads it."""
    program = f"""
import tensorcore as tc
x = tc.ones(64, 64)
(x[:8, :8] @ x[:8, :8])
{LOADED}
(x @ x)
{LOADED}
"""
    assert run(program, TENSORCORE_BLAS="mkl") == ["False", "True"]
    assert run(program, TENSORCORE_BLAS="own") == ["False", "False"]


@needs_mkl
def test_the_child_of_a_fork_multiplies():
    """Products of parent and child are right after a fork, on several threads."""
    program = """
import os, tensorcore as tc
tc.set_num_threads(3)
x = tc.ones(400, 400)
(x @ x)
child = os.fork()
good = all(bool(((x @ x) == 400).all()) for _ in range(20))
if not child: os._exit(0 if good else 1)
print(good, os.waitpid(child, 0)[1])
"""
    assert run(program, TENSORCORE_BLAS="mkl") == ["True", "0"]


@needs_mkl
def test_products_in_parts():
    """Rows in several calls and columns on several threads, with a bias or a summand, either side turned over, give NumPy's sums."""
    program = """
import numpy as np, tensorcore as tc
rng = np.random.default_rng(8)
worst = 0.0
for dtype in ("float32", "float64"):
    for rows, inner, columns in ((300, 256, 256), (129, 70, 500), (64, 784, 256), (40, 300, 700), (700, 130, 95), (1025, 37, 400),
                                  (1001, 600, 900)):
        x, y = (rng.normal(size=size).astype(dtype) for size in ((rows, inner), (inner, columns)))
        more, bias = (rng.normal(size=size).astype(dtype) for size in ((rows, columns), (columns,)))
        wanted, size = x.astype("float64") @ y.astype("float64"), np.abs(x) @ np.abs(y)
        for count in (1, 3):
            tc.set_num_threads(count)
            for left in (tc.tensor(x), tc.tensor(np.ascontiguousarray(x.T)).T):
                for right in (tc.tensor(y), tc.tensor(np.ascontiguousarray(y.T)).T):
                    for added, made in ((0, left @ right), (more, tc.addmm(tc.tensor(more), left, right)),
                                        (bias, tc.nn.functional.linear(left, right.T, tc.tensor(bias)))):
                        error = np.abs(made.numpy() - wanted - added) / (size + np.abs(added))
                        worst = max(worst, float(error.max() / np.finfo(dtype).eps))
print(worst < 4, worst)
"""
    assert run(program, TENSORCORE_BLAS="mkl")[0] == "True"


@needs_mkl
def test_complex_products_in_parts():
    """Rows and columns on several threads, sides that are turned over, every second row, and a batch give NumPy's sums."""
    program = """
import numpy as np, tensorcore as tc
rng = np.random.default_rng(8)
worst = 0.0
for dtype in ("complex64", "complex128"):
    for rows, inner, columns in ((300, 256, 256), (129, 70, 500), (1, 300, 200), (200, 300, 1), (33, 7, 900), (701, 130, 95)):
        x, y = (rng.normal(size=(2, *size)).astype(dtype) for size in ((rows, inner), (inner, columns)))
        x, y = x + np.array(1j, dtype) * x[::-1], y - np.array(2j, dtype) * y[::-1]
        wanted, size = x.astype("complex128") @ y.astype("complex128"), np.abs(x) @ np.abs(y)
        apart = np.zeros((2 * rows, inner), dtype)
        apart[::2] = x[0]
        for count in (1, 3):
            tc.set_num_threads(count)
            left, right = tc.tensor(x), tc.tensor(y)
            turned = tc.tensor(np.ascontiguousarray(y[0].T)).T
            for made in ((left @ right).numpy(), np.stack([(one @ other).numpy() for one, other in zip(left, right)])):
                worst = max(worst, float((np.abs(made - wanted) / size).max() / np.finfo(dtype).eps))
            for made in (left[0] @ turned, tc.tensor(apart)[::2] @ right[0], left[0].conj().T.conj().T @ right[0]):
                worst = max(worst, float((np.abs(made.numpy() - wanted[0]) / size[0]).max() / np.finfo(dtype).eps))
print(worst < 4, worst)
"""
    found = run(program, TENSORCORE_BLAS="mkl")
    assert found[0] == "True", found


@needs_mkl
@pytest.mark.oracle
def test_it_lives_beside_pytorch():
    """PyTorch has a oneMKL of its own inside; both multiply in one process, whichever comes first."""
    program = """
import {}, {}
import tensorcore as tc, torch
for turn in range(3):
    for each in (tc, torch):
        each.set_num_threads(2)
        x = each.ones(300, 300)
        print((x @ x).sum().item())
"""
    for order in (("tensorcore", "torch"), ("torch", "tensorcore")):
        assert run(program.format(*order), TENSORCORE_BLAS="mkl") == [f"{300.0**3}"] * 6


@needs_native
def test_the_report_says_what_multiplies():
    """The device's report, which `tensorcore doctor` and `__config__.show()` print, names the library in use."""
    before = native.products()
    try:
        native.products("own")
        assert tensorcore.device("cpu").report()["blas"].startswith("own kernels, and NumPy's ")
        assert "own kernels" in tensorcore.__config__.show()
        if blas.find_mkl():
            native.products("mkl")
            assert tensorcore.device("cpu").report()["blas"].startswith("oneMKL ")
    finally:
        native.products(before)


@needs_native
def test_products_of_what_is_not_there():
    """The name of no library is refused, and nothing changes."""
    before = native.products()
    with pytest.raises(
        ValueError, match=r"native\.products: expected own, or mkl or tiles where they are there, got 'atlas'"
    ):
        native.products("atlas")
    assert native.products() == before


@needs_native
@pytest.mark.parametrize("first", ["tc.set_num_threads(1)", "tc.linalg.svd(tc.rand(40, 40)); tc.set_num_threads(1)"])
def test_factorisations_use_as_many_threads_as_asked(first):
    """LAPACK, which is loaded at the first factorisation, takes the count that was set before, and one that is set later."""
    program = f"""
import os, tensorcore as tc
from tensorcore_cpu import blas
{first}
tc.linalg.svd(tc.rand(40, 40))
from scipy.linalg import cython_lapack
get = blas._function("get", cython_lapack.__file__)
print(1 if get is None else get())
tc.set_num_threads(999)
print(1 < get() < 999 if get and tc.get_num_threads() > 1 and len(os.sched_getaffinity(0)) > 1 else True)
"""
    assert run(program) == ["1", "True"]
