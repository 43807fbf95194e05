"""A release: sdist and wheel are built, checked, installed in a fresh environment and used there.

``python -m tests.release dist`` is what ``make wheel`` runs; the tests do the same without compiling the C kernels.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tensorcore

__all__ = ["Environment", "build", "main"]

ROOT = Path(__file__).parent.parent

# Runs in an empty folder, so that what is imported is what was installed.
SMOKE = """
import sys
import tensorcore as tc
import tensorcore_cpu.native as native
from importlib.metadata import version

assert tc.__version__ == version("tensorcore"), (tc.__version__, version("tensorcore"))
assert "site-packages" in tc.__file__, tc.__file__
if "--native" in sys.argv:
    assert native.available(), native.reason
tc.manual_seed(0)
net = tc.nn.Sequential(tc.nn.Linear(2, 8), tc.nn.Tanh(), tc.nn.Linear(8, 1))
x = tc.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
y = tc.tensor([[0.0], [1.0], [1.0], [0.0]])
steps = tc.optim.Adam(net.parameters(), lr=0.05)
for _ in range(200):
    steps.zero_grad()
    loss = tc.nn.functional.mse_loss(net(x), y)
    loss.backward()
    steps.step()
assert loss.item() < 0.01, loss
print("tensorcore", tc.__version__, "learned the exclusive or;", "NumPy" if native.reason else "C", "kernels")
"""


class Environment:
    """A fresh virtual environment in a folder, and an empty folder beside it in which its programs run."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.work = folder / "venv" / "bin", folder / "work"
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        self.work.mkdir()

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A finished process in the environment; nothing of this process's own settings is left."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("TENSORCORE_", "PYTHON"))}
        path = {"PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        known = self.bin / command[0]
        program = str(known) if known.exists() else command[0]
        return subprocess.run([program, *command[1:]], cwd=self.work, env=kept | path | variables,
                              capture_output=True, text=True, check=False)  # fmt: skip

    def install(self, *what: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Install packages, from the index or from files."""
        return self.run("python", "-m", "pip", "install", "--quiet", *what, **variables)

    def smoke(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Train a network; with ``--native`` on the C kernels."""
        return self.run("python", "-c", SMOKE, *options)


def build(source: Path, folder: Path) -> list[Path]:
    """The sdist of a source tree, and the wheel built from it."""
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(source)], check=True, cwd=folder)
    return sorted(folder.glob(f"tensorcore-{tensorcore.__version__}*"))


def main(arguments: list[str]) -> int:
    """Build into a folder, check what was built, install the wheel into an environment beside it, and use it."""
    from tempfile import TemporaryDirectory

    folder = Path(arguments[0]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    files = build(ROOT, folder)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)], check=True)
    with TemporaryDirectory() as place:
        fresh = Environment(Path(place))
        wheel = next(str(one) for one in files if one.suffix == ".whl")
        for done in (
            fresh.install(f"{wheel}[testing]"),
            fresh.smoke("--native"),
            fresh.run("tensorcore", "doctor", "--device", "cpu"),
            fresh.run("tensorcore", "check", "cpu", "--level", "bronze"),
        ):
            print(done.stdout[-1500:], done.stderr[-3000:])
            if done.returncode:
                return done.returncode
    print(*files, sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:] or ["dist"]))
