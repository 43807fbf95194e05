"""The namespace of the array API standard beside its reference, array-api-strict: names, signatures, dtypes, shapes, values."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorcore as tc
from tensorcore import array_api as xp
from tests.array_api.calls import CALLS, Draw

strict = pytest.importorskip("array_api_strict")

FACTORIZATIONS = ("linalg.eigh", "linalg.qr", "linalg.svd")  # unique up to signs: a test of their own
UNDEFINED = ("empty", "empty_like", "from_dlpack")
NEWER = ("broadcast_shapes", "isin")  # of the next version of the standard
PLAIN = (bool, int, float, str, type(None))  # what defaults are compared of; the reference has a mark of its own


def functions(module: Any, prefix: str = "") -> Iterator[str]:
    """The names of the standard's functions, those of its two rooms after a dot."""
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            yield from functions(value, f"{name}.")
        elif inspect.isfunction(value):
            yield prefix + name


NAMES = [one for one in functions(strict) if "array_api_strict" not in one and not one.startswith("__")]


def found(module: Any, name: str) -> Any:
    """The function of that name, with a dot where it is in a room."""
    for part in name.split("."):
        module = getattr(module, part)
    return module


@pytest.fixture(autouse=True)
def version() -> Iterator[None]:
    """The reference as of 2024.12; what it says of newer versions is no matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        strict.set_array_api_strict_flags(api_version="2024.12")
        yield
    strict.reset_array_api_strict_flags()


@pytest.mark.parametrize("name", [one for one in NAMES if one != "expand_dims"])  # its axis lost the default in 2025.12
def test_signatures(name: str) -> None:
    """Each function of the standard is there, with its parameters in their order, of their kinds and defaults."""
    theirs, ours = (list(inspect.signature(found(m, name)).parameters.values()) for m in (strict, xp))
    wanted = [(one.name, one.kind, one.default) for one in theirs]
    have = [(one.name, one.kind, one.default) for one in ours]
    assert [one[0] for one in have] == [one[0] for one in wanted]
    assert [one[1] for one in have] == [one[1] for one in wanted]
    assert [one[2] for one in have if isinstance(one[2], PLAIN)] == [
        None if one[2] is not inspect.Parameter.empty and not isinstance(one[2], PLAIN) else one[2]
        for one in wanted
        if one[2] is not inspect.Parameter.empty
    ]


def test_every_function_is_called() -> None:
    """There are calls for each function of the standard that has values."""
    known = {one.split(" ")[0] for one in CALLS}
    apart = {"can_cast", "finfo", "iinfo", "isdtype", "result_type", *UNDEFINED, *FACTORIZATIONS}
    rooms = {f"linalg.{one}" for one in ("matrix_transpose", "tensordot", "vecdot", "eig", "eigvals")}
    assert sorted(set(NAMES) - known - apart - rooms) == []


def built(module: Any, value: Any) -> Any:
    """Arrays and names of dtypes as those of a library."""
    if isinstance(value, np.ndarray):
        return module.asarray(value)
    if isinstance(value, list) and any(isinstance(one, np.ndarray) for one in value):
        return [built(module, one) for one in value]
    if isinstance(value, str) and hasattr(module, value) and value not in ("all",):
        return getattr(module, value)
    return value


def results(value: Any) -> list[Any]:
    """The arrays of a result."""
    if isinstance(value, (tuple, list)) and not all(isinstance(one, int) for one in value):
        return [one for part in value for one in results(part)]
    return [value]


@pytest.mark.parametrize("case", CALLS)
@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_functions_agree_with_the_reference(case: str, data: st.DataObject) -> None:
    """Dtype, shape and values are the reference's, for all dtypes, 0-d and empty arrays included."""
    name = case.split(" ")[0]
    args, kwargs = CALLS[case](Draw(data))
    strict.set_array_api_strict_flags(api_version="2025.12" if name in NEWER else "2024.12")
    both = []
    for module in (strict, xp):
        options = {key: built(module, one) for key, one in kwargs.items()}
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            both.append(results(found(module, name)(*[built(module, one) for one in args], **options)))
    for theirs, ours in zip(*both, strict=True):
        if not isinstance(ours, tc.Tensor):
            assert ours == theirs
            continue
        expected = np.asarray(theirs._array)
        kind = str(expected.dtype)
        if name in DEFAULTS and not kwargs.get("dtype"):
            kind = {"float64": "float32", "complex128": "complex64"}.get(kind, kind)
        assert (str(ours.dtype), tuple(ours.shape)) == (f"torch.{kind}", expected.shape)
        single = ours.dtype in (tc.float32, tc.complex64)
        bound = 2e-4 if name.startswith(("linalg", "fft")) and single else 2e-5 if single else 1e-9
        np.testing.assert_allclose(ours.resolve_conj().numpy(), expected, rtol=bound, atol=bound)


# Where a default dtype shows, which is double precision in the reference.
DEFAULTS = ("arange", "asarray", "eye", "full", "linspace", "ones", "zeros", "fft.fftfreq", "fft.rfftfreq")


class TestFactorizations:
    """Factorisations, which are unique up to signs: their products."""

    @pytest.mark.parametrize("full", [True, False])
    def test_svd(self, full: bool) -> None:
        """The factors multiply to the matrix."""
        x = xp.asarray(np.random.default_rng(0).normal(size=(2, 4, 3)))
        made = xp.linalg.svd(x, full_matrices=full)
        assert tuple(made.U.shape) == ((2, 4, 4) if full else (2, 4, 3))
        np.testing.assert_allclose(((made.U[..., :3] * made.S[:, None]) @ made.Vh).numpy(), x.numpy(), atol=1e-12)

    @pytest.mark.parametrize("mode", ["reduced", "complete"])
    def test_qr(self, mode: str) -> None:
        """The factors multiply to the matrix."""
        x = xp.asarray(np.random.default_rng(0).normal(size=(4, 3)))
        made = xp.linalg.qr(x, mode=mode)
        assert tuple(made.Q.shape) == ((4, 4) if mode == "complete" else (4, 3))
        np.testing.assert_allclose((made.Q @ made.R).numpy(), x.numpy(), atol=1e-12)

    def test_eigh(self) -> None:
        """The vectors are those of the values."""
        x = xp.asarray([[2.0, 1.0], [1.0, 3.0]])
        made = xp.linalg.eigh(x)
        np.testing.assert_allclose(
            (x @ made.eigenvectors).numpy(), (made.eigenvectors * made.eigenvalues).numpy(), atol=1e-6
        )


class TestDtypes:
    """What dtypes are and become."""

    def test_promotion(self) -> None:
        """Every pair becomes what it does in the reference, and what has nothing in common raises."""
        names = list(strict.__array_namespace_info__().dtypes())
        for a in names:
            for b in names:
                try:
                    expected = str(strict.result_type(getattr(strict, a), getattr(strict, b))._np_dtype)
                except TypeError:
                    continue  # kinds that the standard does not mix, and PyTorch does
                assert str(xp.result_type(getattr(xp, a), getattr(xp, b))) == f"torch.{expected}", (a, b)
        with pytest.raises(RuntimeError, match="uint64"):
            xp.result_type(xp.uint64, xp.int8)

    def test_arrays_of_no_dims_count(self) -> None:
        """A 0-d array takes part in promotion, as PyTorch's does not."""
        assert xp.add(xp.ones(2, dtype=xp.float32), xp.asarray(1.0, dtype=xp.float64)).dtype is xp.float64
        assert (xp.ones(2, dtype=xp.float32) + xp.asarray(1.0, dtype=xp.float64)).dtype is xp.float32

    def test_kinds(self) -> None:
        """Each dtype is of the kinds of the reference."""
        kinds = (
            "bool",
            "signed integer",
            "unsigned integer",
            "integral",
            "real floating",
            "complex floating",
            "numeric",
        )
        for name, theirs in strict.__array_namespace_info__().dtypes().items():
            for kind in kinds:
                assert xp.isdtype(getattr(xp, name), kind) == strict.isdtype(theirs, kind), (name, kind)
        assert xp.isdtype(xp.float32, (xp.float64, "real floating"))
        with pytest.raises(ValueError, match="expected a kind among"):
            xp.isdtype(xp.float32, "floating")

    def test_limits(self) -> None:
        """Limits are the reference's, the dtype among them."""
        for name in ("float32", "float64", "complex64"):
            for field in ("bits", "eps", "max", "min", "smallest_normal"):
                assert getattr(xp.finfo(getattr(xp, name)), field) == getattr(
                    strict.finfo(getattr(strict, name)), field
                )
        assert xp.finfo(xp.complex128).dtype is xp.float64
        assert xp.iinfo(xp.asarray([1], dtype=xp.uint64)).max == 2**64 - 1

    def test_casts(self) -> None:
        """Casting follows promotion."""
        assert xp.can_cast(xp.uint8, xp.int16)
        assert not xp.can_cast(xp.int16, xp.uint8)
        assert not xp.can_cast(xp.uint64, xp.int64)


class TestNamespace:
    """What the namespace tells of itself."""

    def test_inspection(self) -> None:
        """Default dtypes, devices and capabilities are named."""
        info = xp.__array_namespace_info__()
        assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
        assert info.default_dtypes()["integral"] is xp.int64
        assert info.default_device() in info.devices()
        assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
        assert set(info.dtypes(kind=("bool", "unsigned integer"))) == {"bool", "uint8", "uint16", "uint32", "uint64"}

    def test_arrays_move(self) -> None:
        """``to_device`` is ``to``, and takes no stream."""
        x = xp.ones(2)
        assert x.to_device(x.device).tolist() == [1.0, 1.0]
        with pytest.raises(ValueError, match="stream"):
            x.to_device("cpu", stream=1)

    def test_imports_are_late(self) -> None:
        """A program that does not ask does not import it."""
        import subprocess
        import sys

        code = "import sys, tensorcore; assert 'tensorcore.array_api' not in sys.modules"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

    @pytest.mark.parametrize("call", [
        lambda: xp.add([1], 2), lambda: xp.sum([1.0]), lambda: xp.squeeze(xp.ones(2), 0), lambda: xp.take(xp.ones((2, 2)), xp.asarray([0])),
        lambda: xp.reshape(xp.ones((2, 3)).T, (6,), copy=False), lambda: xp.nonzero(xp.asarray(1)),
        lambda: xp.cumulative_sum(xp.ones((2, 2))),
        lambda: xp.meshgrid(xp.ones(2), indexing="no"),
    ])  # fmt: skip
    def test_bad_arguments(self, call: Any) -> None:
        """What the standard refuses raises TypeError or ValueError with a sentence."""
        with pytest.raises((TypeError, ValueError), match="expected"):
            call()
