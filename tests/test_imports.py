"""What programs import, and where from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tensorcore as tc

ROOT = Path(__file__).parents[1]


def test_the_import_line_of_the_documentation():
    """What the page for PyTorch's users shows first works in a fresh process."""
    page = (ROOT / "docs" / "coming-from-pytorch.md").read_text(encoding="utf-8")
    lines = page.split("```python")[1].split("```")[0]
    assert "import tensorcore as torch" in lines
    checks = "assert torch.nn is nn and torch.optim is optim and F.relu is nn.functional.relu and DataLoader"
    subprocess.run([sys.executable, "-c", f"{lines}\n{checks}"], check=True)


@pytest.mark.parametrize(
    "place, name",
    [
        ("cuda.amp.autocast_mode", "autocast"),
        ("cuda.amp.grad_scaler", "GradScaler"),
        ("nn.modules.pooling", "_MaxPoolNd"),
        ("nn.modules.transformer", "_get_clones"),
        ("nn.parallel.data_parallel", "DataParallel"),
        ("utils.dlpack", "from_dlpack"),
        ("utils.hooks", "RemovableHandle"),
    ],
)
def test_names_are_where_programs_import_them_from(place, name):
    """A name stands where PyTorch keeps it, and is the one that the short way leads to."""
    found = getattr(__import__(f"tensorcore.{place}", fromlist=[name]), name)
    assert found.__name__.strip("_") in (name.strip("_"), "MaxPool")


def test_settings_of_pytorchs_compiler_are_taken():
    """Programs set them beside the call of compile; they change nothing."""
    code = """
import tensorcore as torch
import tensorcore._dynamo
torch._dynamo.config.suppress_errors = True
torch._dynamo.config.some_later_setting = 3
torch._inductor.config.coordinate_descent_tuning = True
torch._dynamo.reset()
assert torch.compile(lambda x: x + 1)(torch.ones(1)).item() == 2
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_future_by_its_short_name():
    """``torch.Future`` is the one of ``torch.futures``."""
    assert tc.Future is tc.futures.Future


def test_the_layers_of_a_module_can_be_listed():
    """Libraries that choose an activation by name look through all classes of the module that PyTorch keeps them in."""
    room = tc.nn.modules.activation
    assert vars(room)["Tanh"] is tc.nn.Tanh
    assert {"ReLU", "Softmax"} <= set(dir(room))
    found = [
        one for one in vars(tc.nn.modules.loss).values() if isinstance(one, type) and issubclass(one, tc.nn.Module)
    ]
    assert tc.nn.CrossEntropyLoss in found
