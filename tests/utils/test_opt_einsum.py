"""opt_einsum contracts tensors, whichever of the two is imported first."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np

import tensorcore as tc
from tensorcore.guests import tell_contractions


def test_opt_einsum_calls_functions_in_numpys_way() -> None:
    """opt_einsum finds ``tensordot`` with ``axes`` and ``transpose`` of several axes for tensors, whichever comes first."""
    dispatch = SimpleNamespace(_cached_funcs={})
    tell_contractions(dispatch)
    tensordot, transpose = (dispatch._cached_funcs[name, "tensorcore"] for name in ("tensordot", "transpose"))
    x, y = np.arange(24.0).reshape(2, 3, 4), np.arange(12.0).reshape(3, 4)
    for axes in (1, ((1, 2), (0, 1))):
        other = y.T if axes == 1 else y
        assert (
            tensordot(tc.tensor(x), tc.tensor(other), axes=axes).tolist() == np.tensordot(x, other, axes=axes).tolist()
        )
    assert transpose(tc.tensor(x), (2, 0, 1)).tolist() == np.transpose(x, (2, 0, 1)).tolist()


def test_opt_einsum_is_told_when_it_is_imported(tmp_path) -> None:
    """The package is told by its import after tensorcore's, and by tensorcore's where it is there before."""
    package = tmp_path / "opt_einsum" / "backends"
    package.mkdir(parents=True)
    for room in (package.parent, package):
        (room / "__init__.py").write_text("")
    (package / "dispatch.py").write_text("_cached_funcs = {}\n")
    ours, theirs = "import tensorcore", "from opt_einsum.backends import dispatch"
    for order in ((ours, theirs), (theirs, ours)):
        program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {'; '.join(order)}\n"
        program += "assert ('tensordot', 'tensorcore') in dispatch._cached_funcs\n"
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
