"""``__torch_function__``: programs of subclasses say the same here and in PyTorch, and others pay nothing for it."""

import json
import subprocess
import sys

import pytest

from tests.subclass_programs import PROGRAMS


@pytest.fixture(scope="module")
def said():
    """What the programs said, by library: processes of their own, since a subclass changes the functions of its process."""
    return {
        library: json.loads(
            subprocess.run(
                [sys.executable, "-m", "tests.subclass_programs", library], capture_output=True, text=True, check=True
            ).stdout
        )
        for library in ("tensorcore", "torch")
    }


@pytest.mark.parametrize("name", [program.__name__ for program in PROGRAMS])
def test_programs_of_subclasses_say_what_they_say_in_pytorch(said, name):
    """Results, their classes, the calls that were heard, and refusals are the same."""
    assert not isinstance(said["torch"][name], str)
    assert said["tensorcore"][name] == said["torch"][name]


def test_a_function_is_what_it_was_before_anyone_listens():
    """Subclasses change what functions do, not which they are, what they are called, or what they take."""
    script = """
import inspect, tensorcore as tc
from tensorcore import softmax
names = [name for name in ("add", "exp", "sum", "cat", "softmax", "einsum") if inspect.isfunction(getattr(tc, name))]
before = [(getattr(tc, name), str(inspect.signature(getattr(tc, name))), getattr(tc, name).__name__) for name in names]
class Sub(tc.Tensor): pass
assert before == [(getattr(tc, name), str(inspect.signature(getattr(tc, name))), getattr(tc, name).__name__) for name in names]
(tc.ones(2, device="lazy") + 1).tolist()
assert [one.cause for one in tc.lazy.realisations()] == ["tolist"]
assert type(softmax(Sub([1.0, 2.0]), 0)) is Sub and type(softmax(tc.ones(2), dim=0)) is tc.Tensor
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_a_subclass_no_function_looks_at_its_arguments():
    """The code of an ordinary call is the hot path's own, and the protocol is not even imported; the first subclass changes it."""
    script = """
import sys, tensorcore as tc
assert tc.add(tc.ones(1), 1).item() == 2
assert "tensorcore.overrides" not in sys.modules
code = tc.add.__code__
from tensorcore import overrides
assert overrides.is_tensor_like(tc.ones(1)) and tc.add.__code__ is code
class Sub(tc.Tensor): pass
assert tc.add.__code__ is not code
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_subclass_where_tests_are_collected_is_an_error(tmp_path):
    """One made when a test file is imported stops the collection with a sentence that names the class and the file."""
    (tmp_path / "test_one.py").write_text("import tensorcore as tc\n\nclass Sub(tc.nn.Parameter): ...\n")
    (tmp_path / "test_other.py").write_text("import tensorcore as tc\n\ndef test(): assert tc.ones(1).item() == 1\n")
    words = ["-q", "-p", "tests.conftest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", tmp_path, tmp_path]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert (
        f"got Sub in {tmp_path / 'test_one.py'}; define it in a test that runs in a process of its own" in done.stdout
    )
    assert "1 error in" in done.stdout


def test_parts_of_memory_compile_where_functions_listen():
    """A compiled function takes parts by their place in memory, by name or in order, whether or not there is a subclass."""
    script = """
import tensorcore as tc
class Sub(tc.Tensor): pass
for part in ({"storage_offset": 1}, {}):
    for take in (lambda x: x.as_strided((2,), (2,), **part), lambda x: x.as_strided((2,), (2,), *part.values())):
        compiled = tc.compile(lambda x: take(x) * 2)
        for begin in (0, 1, 2):
            x = tc.arange(16.0)[begin : begin + 8]
            assert tc.equal(compiled(x), take(x) * 2)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_autocast_goes_on_around_and_inside_of_listening_functions():
    """A subclass defined before, in the midst of or after a region changes neither the region nor what comes after it."""
    script = """
import tensorcore as tc
a = tc.ones(2, 2)
with tc.autocast("cpu", dtype=tc.bfloat16):
    assert (a @ a).dtype is tc.bfloat16
    class Sub(tc.Tensor): pass
    assert (a @ a).dtype is tc.bfloat16 and type(a.as_subclass(Sub) @ a) is Sub
assert (a @ a).dtype is tc.float32 and type(a.as_subclass(Sub) @ a) is Sub and type(tc.matmul(a, a)) is tc.Tensor
with tc.autocast("cpu", dtype=tc.bfloat16):
    assert (a @ a).dtype is tc.bfloat16 and (a.as_subclass(Sub) @ a).dtype is tc.bfloat16
with tc.profiler.profile():
    tc.matmul(a, a)
assert (a @ a).dtype is tc.float32 and type(a.as_subclass(Sub) @ a) is Sub
"""
    subprocess.run([sys.executable, "-c", script], check=True)
