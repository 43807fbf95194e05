"""The conformance suite: what it passes, what it catches, what it excuses, and what it writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tensorcore.errors import ArgumentError
from tensorcore.testing.declaration import read_declaration

ROOT = Path(__file__).parent.parent.parent
PLUGIN = """
import numpy
from tensorcore.plugin import Capabilities, KernelMissing, XPBackend, hookimpl

INTERFACE = (1, 1)

class Flawed(XPBackend):
    capabilities = Capabilities(("float32", "int64", "bool"), host=True)

    def __init__(self, index):
        super().__init__(numpy, "flawed", index)

{body}

@hookimpl
def register_backends(register):
    register("flawed", Flawed)
"""


@pytest.fixture
def suite(tmp_path: Path) -> Any:
    """Run the suite on a device whose class has the given lines; the certificate, the exit status and the output."""

    def run(body: str, *arguments: str, declaration: str | None = None) -> Any:
        (tmp_path / "flawed.py").write_text(PLUGIN.format(body=body), "utf-8")
        if declaration is not None:
            (tmp_path / "conformance.toml").write_text(declaration, "utf-8")
        environment = {
            **os.environ,
            "TENSORCORE_PLUGINS": "tensorcore_cpu,flawed",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins"), str(tmp_path)]),
        }
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "tensorcore_pytest"]
        command += ["--pyargs", "tensorcore.testing", "--backend", "flawed", "--certificate", "certificate.json"]
        command += ["--coverage-page", "coverage.html", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
        path = tmp_path / "certificate.json"
        return (
            (json.loads(path.read_text("utf-8")) if path.exists() else None),
            done.returncode,
            done.stdout + done.stderr,
        )

    return run


def test_a_sound_backend_holds_bronze(suite, tmp_path) -> None:
    """The certificate says so, and names the device, its dtypes and the versions."""
    found, status, output = suite("    pass", "--level", "bronze")
    assert status == 0, output
    assert found["levels"]["bronze"]["verdict"] == "held"
    assert found["levels"]["silver"]["verdict"] == "not run"
    assert found["backend"]["dtypes"] == ["bool", "float32", "int64"]
    assert (found["interface"], found["reference"], found["failures"]) == ([1, 1], "cpu", {})
    assert "<h1>Conformance of flawed</h1>" in (tmp_path / "coverage.html").read_text("utf-8")


@pytest.mark.parametrize(
    "body, select, key",
    [
        ("    def kernel_add(self, x, y, out=None): return numpy.subtract(x, y, out=out)", "test_op and add", "op/add/float32"),
        ("    def kernel_abs(self, x, out=None): return numpy.array(x)", "test_op and abs", "op/abs/float32"),
        ("    def kernel_neg(self, x, out=None): return -x", "test_in_place and neg", "silver/in_place/neg"),
        ("    def kernel_exp(self, x, out=None): return numpy.exp(x).T.copy().T", "test_layout and exp", "silver/layout/exp"),
        ("    def from_host(self, array): return array", "test_store", "bronze/store/5/float32"),
        ("    def kernel_mul(self, x, y, out=None): return (x * y).astype('int64')", "test_primitive and mul", "bronze/primitive/mul"),
        ("    def kernel_soft_max(self, x, *, dim): return x", "test_names", "bronze/names"),
        ("    def storage_key(self, native): return 0", "test_storage", "bronze/storage"),
        ("    def kernel_softmax(self, x, *, dim): return numpy.ones_like(x)", "test_fused and softmax", "gold/fused/softmax"),
    ],
)  # fmt: skip
def test_a_flaw_is_found(suite, body: str, select: str, key: str) -> None:
    """A wrong value, an ignored ``out``, shared memory, another layout or dtype, a name that no op asks for, and a fused
    kernel that is off fail their cases.
    """
    level = "bronze" if key.startswith("bronze/") else "gold"  # the cases of others take a second to make
    found, status, output = suite(body, "-k", select, "--level", level)
    assert status == 1, output
    assert key in found["failures"]


@pytest.mark.parametrize("wait", ["time.sleep(60)", "ctypes.PyDLL(None).sleep(60)"])
def test_a_device_that_hangs_ends_the_run(suite, wait: str) -> None:
    """The case and the line that waits are named, also where foreign code keeps the interpreter's lock."""
    body = f"    def kernel_exp(self, x, out=None):\n        import ctypes, time\n        {wait}"
    _, status, output = suite(
        body, "-k", "test_op and exp and float32 and not exp2 and not expm1", "--case-limit", "0.5"
    )
    assert status == 1, output
    assert "in kernel_exp" in output
    if wait.startswith("time"):
        assert (
            "check: expected every case on 'flawed' to end within 0.5 seconds, got no end of op/exp/float32; " in output
        )


def test_cells_say_what_ran(suite) -> None:
    """An op of a kernel of the device is native, one that is made of others decomposed, one that ran elsewhere fallback."""
    body = "    def find_kernel(self, name): return None if name in ('sort', 'sigmoid') else super().find_kernel(name)"
    found, status, output = suite(body, "-k", "test_op and (exp or sigmoid or msort)", "--fallback-device", "cpu")
    assert status == 0, output
    ran = {op: next(kind for kind, dtypes in found["ops"][op].items() if "float32" in dtypes.split())
           for op in ("exp", "sigmoid", "msort")}  # fmt: skip
    assert ran == {"exp": "native", "sigmoid": "decomposed", "msort": "fallback"}
    assert [one["kernel"] for one in found["fallback"]] == ["sort"]


REFUSE = "    def kernel_hypot(self, x, y): raise KernelMissing('hypot: not on this device')"
WRONG = "    def kernel_hypot(self, x, y): return numpy.zeros_like(x)"
FINE = "    pass"


@pytest.mark.parametrize(
    "body, kind, status, verdict, result",
    [
        (REFUSE, "unsupported", 0, "held", "unsupported"),
        (WRONG, "unsupported", 1, "failed", "failed"),
        (FINE, "unsupported", 1, "failed", "failed"),
        (WRONG, "xfail", 0, "provisional", "xfail"),
        (REFUSE, "xfail", 0, "provisional", "xfail"),
        (FINE, "xfail", 1, "failed", "failed"),
    ],
)
def test_declared_cases(suite, body: str, kind: str, status: int, verdict: str, result: str) -> None:
    """What is unsupported must be refused, what is xfail may be wrong, and neither may pass: then it is stale."""
    text = f'[{kind}]\n"op/hypot/*" = "no roots"\n'
    found, code, output = suite(body, "-k", "test_op and float32 and (hypot or expm1)", declaration=text)
    assert code == status, output
    assert found["ops"]["hypot"] == {result: "float32"}
    assert found["levels"]["silver"]["cases"]["failed"] == (verdict == "failed")


def test_no_backend_no_tests(tmp_path) -> None:
    """Without --backend, the suite's files are left alone."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "tensorcore_pytest"]
    command += ["--pyargs", "tensorcore.testing"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout


def test_an_unknown_backend_is_one_line(tmp_path) -> None:
    """The plugin's reason and remedy, and no traceback."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "tensorcore_pytest"]
    command += ["--pyargs", "tensorcore.testing", "--backend", "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "got 'nowhere'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "text, words",
    [
        ("[unsupported]\nx = ''", "expected a reason for each entry"),
        ("[skip]\nx = 'y'", "got \\['skip'\\]"),
        ("[unsupported", "to be TOML"),
    ],
)
def test_a_wrong_declaration_is_refused(tmp_path, text: str, words: str) -> None:
    """A pattern without a reason, an unknown table, and no TOML raise with what to do."""
    path = tmp_path / "conformance.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(ArgumentError, match=words):
        read_declaration(path)


def test_patterns_that_match_nothing_are_stale(tmp_path) -> None:
    """Each pattern must be used by some case."""
    path = tmp_path / "conformance.toml"
    path.write_text('[unsupported]\n"op/sort/*" = "a"\n[xfail]\n"op/gone/*" = "b"\n', "utf-8")
    declaration = read_declaration(path)
    assert declaration.excuse("op/sort/int8") == ("unsupported", "a")
    assert declaration.excuse("op/add/int8") is None
    assert declaration.stale() == ["op/gone/*"]
