"""Ten broken plugins, built as wheels and installed by pip: neither the import of tensorcore nor the CPU notices them."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.backend.sabotage import GOOD
from tests.test_writing_a_backend import install

BROKEN = {
    "exits": "raise SystemExit(3)",
    "lacks": "import no_such_library",
    "divides": "1 / 0",
    "misspelt": "def broken(:",
    "odd": "class Odd(BaseException): pass\nraise Odd",
    "silent": "",
    "newer": "INTERFACE = (9, 0)\n" + GOOD.format(name="newer"),
    "asleep": "import time\ntime.sleep(60)\n" + GOOD.format(name="asleep"),
    "circular": "import tensorcore as tc\ntc.device('circular')\n" + GOOD.format(name="circular"),
    "halfway": GOOD.format(name="halfway") + "    raise RuntimeError('half')\n",
}

PROGRAM = """
import sys
before = set(sys.modules)
import tensorcore as tc
imported = set(sys.modules) - before
x = tc.ones(2, 3, requires_grad=True)
(x @ x.T).sum().backward()
import json
print(json.dumps({
    "imported": sorted(imported), "used": sorted(set(sys.modules) - before), "grad": x.grad.tolist(),
}))
"""


def wheel(folder: Path, name: str, source: str) -> Path:
    """A wheel of a distribution with one module, which its entry point names."""
    path, metadata = folder / f"tensorcore_{name}-1.0-py3-none-any.whl", f"tensorcore_{name}-1.0.dist-info"
    files = {
        f"{name}_device.py": source,
        f"{metadata}/METADATA": f"Metadata-Version: 2.1\nName: tensorcore-{name}\nVersion: 1.0\n",
        f"{metadata}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{metadata}/entry_points.txt": f"[tensorcore]\n{name} = {name}_device\n",
    }
    record = "".join([f"{place},,\n" for place in [*files, f"{metadata}/RECORD"]])
    with zipfile.ZipFile(path, "w") as archive:
        for place, text in {**files, f"{metadata}/RECORD": record}.items():
            archive.writestr(place, text)
    return path


@pytest.fixture(scope="module")
def places(tmp_path_factory: Any) -> dict[str, dict[str, str]]:
    """The environments of a clean installation and of one with the ten plugins."""
    clean, sabotaged = tmp_path_factory.mktemp("clean"), tmp_path_factory.mktemp("sabotaged")
    found = {"clean": install(clean), "sabotaged": install(sabotaged)}
    wheels = [str(wheel(sabotaged, name, source)) for name, source in BROKEN.items()]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    subprocess.run([*command, "--target", str(sabotaged / "site"), *wheels], check=True, env=found["sabotaged"])
    return found


def run(environment: dict[str, str], *arguments: str) -> Any:
    """A finished process of Python in an environment."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
def test_the_import_and_the_cpu_work_untouched(places) -> None:
    """The same modules are imported, the same numbers come out, and nothing is printed."""
    found = {}
    for name, environment in places.items():
        done = run(environment, "-c", PROGRAM)
        assert (done.returncode, done.stderr) == (0, "")
        found[name] = json.loads(done.stdout)
    assert found["sabotaged"] == found["clean"]
    assert found["clean"]["grad"] == [[4.0] * 3] * 2
    assert not [name for name in found["sabotaged"]["used"] if name.endswith("_device")]


@pytest.mark.slow
def test_each_of_them_says_why_when_it_is_asked_for(places) -> None:
    """A device of a broken plugin raises with the package's name, and the process goes on to the next."""
    program = """
import tensorcore as tc
for name in {names}:
    try:
        tc.ones(1, device=name)
    except tc.errors.TensorcoreError as error:
        print(name, "tensorcore-" + name in str(error))
print((tc.ones(2) + 1).tolist())
"""
    names = [name for name in BROKEN if name != "asleep"]
    done = run(places["sabotaged"], "-c", program.format(names=names))
    assert done.stderr == ""
    assert done.stdout.splitlines() == [*[f"{name} True" for name in names], "[2.0, 2.0]"]


@pytest.mark.slow
def test_the_doctor_names_all_of_them(places) -> None:
    """With the one that sleeps blocked, the others stand there as broken, each with its package, and the status is 1."""
    done = run(places["sabotaged"] | {"TENSORCORE_BLOCK": "asleep"}, "-m", "tensorcore", "doctor", "--json")
    assert done.returncode == 1, done.stderr
    found = {one["name"]: one for one in json.loads(done.stdout)["plugins"]}
    assert found["asleep"]["state"] == "blocked"
    broken = {name for name, one in found.items() if one["state"] == "broken"}
    assert broken == BROKEN.keys() - {"asleep"}
    assert all(found[name]["distribution"] == f"tensorcore-{name}" for name in broken)
    assert next(one for one in json.loads(done.stdout)["devices"] if one["name"] == "cpu")["usable"]
