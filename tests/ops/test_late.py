"""The table of late families says what is in them, and nothing of them is imported before it is asked for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tensorcore.ops import late

# Prints, for each family, its public names and what importing it added to Tensor; each in a fork that imported no other.
_LOOK = """
import json, os
import tensorcore
from importlib import import_module
from tensorcore.ops import late
from tensorcore.tensor import Tensor
before = dict(vars(Tensor))
for family in late.LATE:
    if os.fork():
        assert os.wait()[1] == 0, family
        continue
    names = import_module(f"tensorcore.ops.{family}").__all__
    methods = [key for key, value in vars(Tensor).items() if before.get(key) is not value]
    print(json.dumps([family, list(names), methods]), flush=True)
    os._exit(0)
"""


@pytest.fixture(scope="module")
def looks() -> dict[str, tuple[list[str], list[str]]]:
    """Of each family the names that it defines, and the methods that Tensor has from then on."""
    shown = subprocess.run([sys.executable, "-c", _LOOK], capture_output=True, text=True, check=True)
    return {family: (names, methods) for family, names, methods in map(json.loads, shown.stdout.splitlines())}


@pytest.mark.parametrize("family", sorted(late.LATE))
def test_the_table_lists_what_a_family_gives(family: str, looks: dict[str, tuple[list[str], list[str]]]) -> None:
    """Functions, methods and names of nn.functional are those that the family's file defines, no more and no less."""
    names, methods = looks[family]
    listed = {kind: value.split() for kind, value in late.LATE[family].items()}
    functions = listed.get("both", []) + listed.get("functions", []) + listed.get("layers", [])
    functions += listed.get("rooms", [])
    assert sorted(functions) == sorted(names)
    promised = {name for name, owner in late.METHODS.items() if owner == family}
    # Importing a family may import others, which install theirs.
    assert {name for name in methods if late.METHODS.get(name, family) == family} == promised


def test_nothing_late_is_imported_with_the_package() -> None:
    """``import tensorcore`` and arithmetic leave every late family where it is."""
    program = (
        "import sys, tensorcore as torch; x = torch.ones(3, requires_grad=True); (x * 2).sum().backward();"
        "from tensorcore.ops import late; print([f for f in late.LATE if f'tensorcore.ops.{f}' in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_late_name_is_found_as_function_and_as_method() -> None:
    """A program that names a late op first as a method, then as a function, gets the op itself both times."""
    program = (
        "import tensorcore as torch; x = torch.tensor([3.0, 1.0, 2.0]); print(x.cumsum(0).tolist(), torch.Tensor.argsort(x).tolist(),"
        "torch.topk(x, 1).values.tolist(), 'topk' in dir(torch), torch.relu is torch.Tensor.relu, hasattr(torch, 'mse_loss'))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[3.0, 4.0, 6.0] [1, 2, 0] [3.0] True True False"
