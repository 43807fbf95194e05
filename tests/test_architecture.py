"""The rules of the house, proved on the sources: who imports whom, what a file carries, what an import loads."""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import (
    DEVICE_NAMES,
    FLOORS,
    FRONTEND,
    LINES,
    LONG_FILES,
    UPWARD_IMPORTS,
    WAYS_BACK,
    Module,
    c_circles,
    device_names,
    floor_of,
    import_cycles,
    imports_of,
    imports_that_point_up,
    missing_all,
    missing_opening,
    printing,
    private_imports_of_plugins,
    read_modules,
    too_long,
)

ROOT = Path(__file__).parent.parent

# What a bare `import tensorcore` must not load: each costs time, and some are not installed.
HEAVY = ("cupy", "matplotlib", "mpi4py", "numba", "pluggy", "scipy", "torch")
# Modules that `import tensorcore` may load beyond NumPy's own.
MODULE_BUDGET = 113


@functools.cache
def library() -> dict[str, Module]:
    """The modules of tensorcore by name; read by the process that runs these tests, not by each that collects them."""
    return read_modules(ROOT, "tensorcore")


@functools.cache
def plugins() -> dict[str, Module]:
    """Those of packages alone: plugins/template is a distribution, and no part of this one."""
    folder = ROOT / "plugins"
    return read_modules(folder, *(path.parent.name for path in sorted(folder.glob("*/__init__.py"))))


# The rules hold


def test_imports_only_point_down() -> None:
    """No module imports from a floor above its own."""
    assert imports_that_point_up(library()) == []


def test_plugins_enter_through_one_door() -> None:
    """A plugin imports nothing from tensorcore but tensorcore.plugin."""
    assert private_imports_of_plugins(plugins()) == []


def test_no_imports_in_a_circle() -> None:
    """No module imports itself by way of others, at once or inside a function; the few ways back are named."""
    assert import_cycles({**library(), **plugins()}) == []


def test_no_calls_of_c_files_in_a_circle() -> None:
    """No C file of the CPU plugin uses itself by way of others: what several use lies below all of them."""
    native = ROOT / "plugins/tensorcore_cpu/native"
    sources = {str(path.relative_to(native)): path.read_text("utf-8") for path in native.rglob("*.c")}
    assert "arrays.c" in sources
    assert c_circles(sources) == []


def test_no_device_names_in_the_frontend() -> None:
    """Below floor 7 a device's name stands at most as a default argument."""
    below = [module for module in library().values() if (floor_of(module.name) or 0) < FRONTEND]
    assert [fault for module in below for fault in device_names(module)] == []


@pytest.mark.parametrize("check", [missing_all, missing_opening, printing])
def test_every_module_keeps_the_house_style(check) -> None:
    """Each module says what is public and what is inside, and prints nothing."""
    assert [fault for module in [*library().values(), *plugins().values()] for fault in check(module)] == []


def test_no_file_outgrows_its_room() -> None:
    """No Python file is longer than LINES lines."""
    folders = ("tensorcore", "plugins", "tests", "asv_benchmarks", "examples")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert [fault for path in files for fault in too_long(str(path.relative_to(ROOT)), path.read_text("utf-8"))] == []


def test_every_exception_is_still_needed() -> None:
    """An exception that nothing uses any more is struck from its list."""
    used_imports = {(m.name, i.target) for m in library().values() for i in imports_of(m, library())}
    used_names = {
        (m.name, node.value) for m in library().values() for node in ast.walk(m.tree) if isinstance(node, ast.Constant)
    }
    lengths = {path for path in LONG_FILES if len((ROOT / path).read_text("utf-8").splitlines()) > LINES}
    assert [key for key in (*UPWARD_IMPORTS, *WAYS_BACK) if key not in used_imports] == []
    assert [key for key in DEVICE_NAMES if key not in used_names] == []
    assert set(LONG_FILES) == lengths


@pytest.fixture(scope="module")
def loaded() -> list[str]:
    """The modules that a bare ``import tensorcore`` loads beyond those that NumPy loads."""
    code = (
        "import json, sys, numpy; before = set(sys.modules); import tensorcore; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)


def test_import_loads_nothing_heavy(loaded) -> None:
    """After ``import tensorcore`` no other array library, no plugin machinery and no plotting is loaded."""
    assert [name for name in loaded if name.split(".")[0] in HEAVY] == []


def test_import_loads_no_plugin(loaded) -> None:
    """A plugin is imported when its device is first used, not with tensorcore."""
    assert [name for name in loaded if name.split(".")[0] in {m.split(".")[0] for m in plugins()}] == []


def test_import_stays_small(loaded) -> None:
    """``import tensorcore`` loads few modules beyond NumPy's own."""
    assert len(loaded) <= MODULE_BUDGET


# Each checker can fail


def module(text: str, name: str = "tensorcore.backend.base", is_package: bool = False) -> Module:
    return Module(name, ast.parse(text), is_package)


def several(**texts: str) -> dict[str, Module]:
    return {name: module(text, name) for name, text in ((n.replace("__", "."), t) for n, t in texts.items())}


@pytest.mark.parametrize(
    "line",
    [
        "from tensorcore.tensor import Tensor",
        "import tensorcore",
        "from tensorcore import ops",
        "from ..ops.define import elementwise",
        "def f():\n    from tensorcore.nn import Linear",
        "if True:\n    import tensorcore.autograd.node",
        "import importlib\ndef f():\n    importlib.import_module('tensorcore.ops')",
    ],
)
def test_an_import_that_points_up_is_found(line) -> None:
    """A backend module that imports from above is reported, however the import is written."""
    assert len(imports_that_point_up({"tensorcore.backend.base": module(line)})) == 1


@pytest.mark.parametrize(
    "line",
    [
        "from tensorcore.errors import ShapeError",
        "from . import registry",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tensorcore.tensor import Tensor",
        "import numpy",
    ],
)
def test_an_import_that_points_down_is_free(line) -> None:
    """Imports from below, from the same floor, for types alone, and from outside are no fault."""
    assert imports_that_point_up({"tensorcore.backend.base": module(line)}) == []


def test_a_module_without_a_floor_is_found() -> None:
    """A new module at the top must be given its floor."""
    assert imports_that_point_up({"tensorcore.attic": module("", "tensorcore.attic")}) == [
        "tensorcore.attic: has no floor; name it in FLOORS"
    ]


@pytest.mark.parametrize(
    "line, faults",
    [
        ("from tensorcore.plugin import Backend", 0),
        ("from tensorcore import plugin", 0),
        ("import tensorcore", 1),
        ("from tensorcore.backend.base import Backend", 1),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tensorcore.dtypes import dtype", 1),
    ],
)
def test_a_private_import_of_a_plugin_is_found(line, faults) -> None:
    """Only tensorcore.plugin is open to a plugin."""
    assert len(private_imports_of_plugins({"p": module(line, "p")})) == faults


def test_a_circle_is_found() -> None:
    """Two modules that import one another are reported; one inside a function counts, one for types alone does not."""
    assert import_cycles(several(p__a="import p.b", p__b="from p import a")) == ["p.a -> p.b -> p.a"]
    assert import_cycles(several(p__a="import p.b", p__b="def f():\n    from p import a")) == ["p.a -> p.b -> p.a"]
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import a"
    assert import_cycles(several(p__a="import p.b", p__b=typed)) == []


@pytest.mark.parametrize(
    "defined, used",
    [
        ("int f(int x) {\n    return x;\n}", "return f(1);"),
        ("static int f(int x) {\n    return x;\n}", ""),
        ("const f_loops *f;", "f->run();"),
        ("const f_loops ISA(f) = {run};", "DECLARE_LOOPS(f_loops, f);"),
        ("int f(int x);", ""),
        ("/* int f(int x) { */", ""),
        ("int f(void) {\n}", '/* f */ "f";'),
    ],
)
def test_a_circle_of_c_files_is_found(defined, used) -> None:
    """Two C files that use what the other one defines are reported; what is static, declared or a remark does not count."""
    other = f"int g(void) {{\n    {used}\n}}\n"
    found = c_circles({"a.c": f"{defined}\nstatic int h(void) {{\n    return g();\n}}\n", "b.c": other})
    assert found == (["a.c -> b.c -> a.c"] if used[:2] not in ("", "/*") else [])


@pytest.mark.parametrize(
    "text, faults",
    [
        ("def f(device='cpu', *, other='cuda:1'): ...", 0),
        ('"""Copies to the cpu."""', 0),
        ("if device == 'cuda': ...", 1),
        ("f('cuda:1')", 1),
    ],
)
def test_a_device_name_is_found(text, faults) -> None:
    """A device's name in the code is reported, in a default argument or in prose it is not."""
    assert len(device_names(module(text))) == faults


@pytest.mark.parametrize(
    "check, good, bad",
    [
        (missing_all, "__all__ = ['f']", "def f(): ..."),
        (missing_opening, '"""The tape."""', '"""tape"""'),
        (missing_opening, '"""The tape: nodes.\n\nMore."""', "x = 1"),
        (printing, "'print(1)'", "def f():\n    print(1)"),
    ],
)
def test_a_breach_of_style_is_found(check, good, bad) -> None:
    """Each check of one module passes a good one and reports a bad one."""
    assert check(module(good)) == []
    assert len(check(module(bad))) == 1


def test_a_long_file_is_found() -> None:
    """One line over the limit is reported."""
    assert too_long("a.py", "\n" * LINES) == []
    assert too_long("a.py", "\n" * (LINES + 1)) == [f"a.py: {LINES + 1} lines of {LINES}"]


def test_the_drawn_floors_are_the_real_ones() -> None:
    """Each room that docs/how-it-works.md names stands on the floor that it says."""
    text = (ROOT / "docs" / "how-it-works.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d) \| (.*) \|$", text, re.MULTILINE)
    drawn = [(int(floor), name) for floor, rooms in rows for name in re.findall(r"`(\w+)`", rooms)]
    rooms = {name.removeprefix("tensorcore."): floor for name, floor in FLOORS.items()}
    assert {floor for floor, _ in drawn} == set(FLOORS.values())
    wrong = [(floor, name) for floor, name in drawn if rooms.get(name, floor) != floor]
    assert wrong == []
