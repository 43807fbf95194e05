"""PyTorch's own table of operators as a question paper: ``python -m tests.opdb [--only linalg] [--write docs/opdb.md]``.

Each operator's sample inputs run in both libraries from one seed, in single precision and, with gradients, in double.
The report counts the operators of which every sample agrees, and gives for each of the others the first difference.
"""

from __future__ import annotations

import argparse
import collections
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tensorcore
from tests.ops.registry_calls import flat, numbers

__all__ = ["EXCLUDED", "REASONS", "Verdict", "examine", "main", "operators"]

# Operators that are not asked, by name or (with a star) by the beginning of it.
EXCLUDED = {
    "jiterator_*": "compiles CUDA code",
    "masked.*": "torch.masked is a prototype",
    "sparse.*": "sparse tensors",
    "to_sparse": "sparse tensors",
    "_*": "private",
    "native_*": "private, the public function is asked",
    "torch.*": "private, of torch.ops or with an underscore",
    "slice": "private, of torch.ops",
    "max_pool2d_with_indices_backward": "private, of torch.ops",
    "nn.functional.scaled_grouped_mm": "experimental",
    "nn.functional.grouped_mm": "experimental",
}
PUBLIC_UNDERSCORES = ("__",)  # operators of Python, as __radd__
# Operators whose answers PyTorch leaves open.
UNDEFINED = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_",
}  # fmt: skip
SEED = 42  # which PyTorch's own wrapper of random operators sets too, in PyTorch alone
SAMPLES = 40  # of an operator at most
WIDER = {"float32": "float64", "complex64": "complex128"}
TOLERANCE = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-8, "complex128": 1e-8}
# Why an operator differs on purpose; a reason for one that agrees fails the test.
REASONS = {
    "as_strided_scatter": "PyTorch gives the elements that were replaced a gradient where the window has no dims",
    "chalf": "there is no complex32 here: NumPy has none",
    "cholesky_inverse": "PyTorch gives the triangle that is not read a gradient",
    "cholesky_solve": "PyTorch gives the triangle that is not read a gradient",
    "istft": "PyTorch gives a window that is shorter than n_fft no gradient",
}


class Verdict(NamedTuple):
    """What became of one operator: None where all agreed, else the first difference."""

    name: str
    forward: str | None
    gradient: str | None  # "-" where PyTorch has none

    @property
    def agrees(self) -> bool:
        """Whether nothing differed."""
        return self.forward is None and self.gradient in (None, "-")


def operators(only: str = "") -> list[Any]:
    """PyTorch's operators that are asked, those whose name contains ``only``."""
    from torch.testing._internal.common_methods_invocations import op_db

    asked = []
    for op in op_db:
        excluded = any(fnmatchcase(op.name, pattern) for pattern in EXCLUDED)
        if (not excluded or op.name.startswith(PUBLIC_UNDERSCORES)) and op.dtypes and only in title(op):
            asked.append(op)
    return asked


def title(op: Any) -> str:
    """The operator's name, with that of its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def examine(op: Any) -> Verdict:
    """Run the operator's samples in both libraries."""
    import torch

    try:
        ours = function_of(op)
    except AttributeError as missing:
        return Verdict(title(op), f"missing: {missing}", "missing" if op.supports_autograd else "-")
    dtype = next((one for one in (torch.float32, torch.int64, torch.bool, torch.complex64) if one in op.dtypes), None)
    forward = "no dtype in common" if dtype is None else _first_difference(op, ours, dtype, False)
    gradient: str | None = "-"
    if op.supports_autograd:
        double = next((one for one in (torch.float64, torch.complex128) if one in op.dtypes), None)
        gradient = "-" if double is None else _first_difference(op, ours, double, True)
    return Verdict(title(op), forward, gradient)


def function_of(op: Any) -> Callable[..., Any]:
    """Our function for an operator; AttributeError where there is none.

    PyTorch writes some as lambdas in its own test code: they run with ``torch`` bound to this library.
    """
    function = op.op
    if (
        isinstance(function, types.FunctionType)
        and "torch" in function.__globals__
        and "testing" in function.__module__
    ):
        names = {**function.__globals__, "torch": tensorcore}
        return types.FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
    for path in dict.fromkeys([op.name, op.aten_name, f"Tensor.{op.name}"]):
        found: Any = tensorcore
        for part in path.split("."):
            found = getattr(found, part, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    raise AttributeError(op.name)


def _first_difference(op: Any, ours: Callable[..., Any], dtype: Any, grad: bool) -> str | None:
    import torch

    torch.default_generator.manual_seed(0)  # manual_seed formats the stack for each kind of device that is not there
    samples = op.sample_inputs("cpu", dtype, requires_grad=grad)
    for number, sample in enumerate(samples):
        if number >= SAMPLES:
            break
        found = _difference(op, ours, sample, grad, str(dtype).rpartition(".")[2])
        if found:
            return f"sample {number}: {found}"
    return None


def _difference(op: Any, ours: Callable[..., Any], sample: Any, grad: bool, dtype: str) -> str | None:
    import torch

    # Before PyTorch runs: some operators write to their input.
    mine = [_ours(one) for one in (sample.input, sample.args, sample.kwargs)]
    process = sample.output_process_fn_grad
    try:
        torch.default_generator.manual_seed(SEED)
        expected = process(op.op(sample.input, *sample.args, **sample.kwargs))
    except Exception:
        return None  # what PyTorch itself cannot do on its sample is no question
    try:
        tensorcore.manual_seed(SEED)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = _processed(process, ours(mine[0], *mine[1], **mine[2]))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:110]}"
    theirs, own = _results(expected), _results(got)
    if len(theirs) != len(own):
        return f"{len(own)} results instead of {len(theirs)}"
    if op.name not in UNDEFINED:
        for a, b in zip(own, theirs, strict=True):
            unlike = _unlike(a, b, dtype)
            if unlike and not (dtype in WIDER and _nearer(op, sample, own, theirs, WIDER[dtype])):
                return unlike
    return _gradients(sample, mine, own, theirs, dtype) if grad else None


def _nearer(op: Any, sample: Any, own: list[Any], theirs: list[Any], wider: str) -> bool:
    """Whether our rounding errors, beside what PyTorch finds in double precision, are of the size of PyTorch's own."""
    import torch

    def widened(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(getattr(torch, wider)) if str(value.dtype).rpartition(".")[2] in WIDER else value
        if isinstance(value, (list, tuple)):
            return type(value)(map(widened, value))
        return {key: widened(one) for key, one in value.items()} if isinstance(value, dict) else value

    torch.default_generator.manual_seed(SEED)
    try:
        result = op.op(widened(sample.input), *widened(sample.args), **widened(sample.kwargs))
        exact = [numbers(one) for one in _results(sample.output_process_fn_grad(result))]
        away = [[np.abs(numbers(a) - b).max() for a, b in zip(found, exact, strict=True)] for found in (own, theirs)]
    except Exception:
        return False  # the operator has no other precision, or no numbers
    return all(a <= 4 * b for a, b in zip(*away, strict=True))


def _gradients(sample: Any, mine: list[Any], own: list[Any], theirs: list[Any], dtype: str) -> str | None:
    import torch

    inputs = [one for one in _tensors((sample.input, sample.args, sample.kwargs), torch.Tensor) if one.requires_grad]
    leaves = [one for one in _tensors(mine, tensorcore.Tensor) if one.requires_grad]
    pairs = [(a, b) for a, b in zip(own, theirs, strict=True) if getattr(b, "requires_grad", False)]
    if not pairs or not inputs:
        return None
    if any(not a.requires_grad for a, _ in pairs):
        return "a result that should require grad does not"
    rng = np.random.default_rng(3)
    weights = [rng.uniform(0.5, 1.5, tuple(b.shape)) for _, b in pairs]
    try:
        expected = torch.autograd.grad(
            [b for _, b in pairs], inputs, [torch.tensor(w).to(b.dtype) for w, (_, b) in zip(weights, pairs, strict=True)],
            allow_unused=True)  # fmt: skip
    except Exception:
        return None
    try:
        got = tensorcore.autograd.grad(
            [a for a, _ in pairs], leaves, [tensorcore.tensor(w).to(a.dtype) for w, (a, _) in zip(weights, pairs, strict=True)],
            allow_unused=True)  # fmt: skip
    except Exception as error:
        return f"gradient: {type(error).__name__}: {str(error)[:110]}"
    for a, b in zip(got, expected, strict=True):
        if b is None or a is None:
            if (a is None) != (b is None) and (a if b is None else b).count_nonzero() != 0:
                return "a gradient is None in one library"
            continue
        unlike = _unlike(a, b, dtype)
        if unlike:
            return f"gradient: {unlike}"
    return None


def _unlike(ours: Any, theirs: Any, dtype: str) -> str | None:
    if not hasattr(theirs, "dtype") or not hasattr(theirs, "shape"):
        return None if str(ours) == str(theirs) or ours == theirs else f"{ours!r} instead of {theirs!r}"[:120]
    if not hasattr(ours, "dtype"):
        return f"{type(ours).__name__} instead of a tensor"
    if str(ours.dtype) != str(theirs.dtype):
        return f"{ours.dtype} instead of {theirs.dtype}"
    if tuple(ours.shape) != tuple(theirs.shape):
        return f"shape {list(ours.shape)} instead of {list(theirs.shape)}"
    a, b = numbers(ours.resolve_conj().resolve_neg()), numbers(theirs.resolve_conj().resolve_neg())
    tolerance = TOLERANCE.get(dtype, 1e-6)
    if np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
        return None
    with np.errstate(all="ignore"):
        return f"values differ by up to {np.nanmax(np.abs(np.asarray(a, dtype=complex) - b)):.2g}"


def _ours(value: Any) -> Any:
    """An argument of PyTorch's as one of this library: tensors keep their strides."""
    import torch

    if isinstance(value, torch.Tensor):
        if (
            value.untyped_storage().nbytes() > value.nbytes and value.numel()
        ):  # a part, from which as_strided sees the rest
            whole = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())
            made = _ours(whole).as_strided(value.shape, value.stride(), value.storage_offset())
        else:
            made = tensorcore.from_numpy(numbers_of(value)).to(getattr(tensorcore, str(value.dtype).rpartition(".")[2]))
        if value.requires_grad:
            made.requires_grad_()
        return made
    if isinstance(value, torch.nn.Module):
        return getattr(tensorcore.nn, type(value).__name__)()
    if callable(value) and getattr(torch, getattr(value, "__name__", ""), None) is value:
        return getattr(tensorcore, value.__name__)
    if isinstance(value, torch.dtype):
        return getattr(tensorcore, str(value).rpartition(".")[2])
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, torch.Generator):
        return tensorcore.Generator().manual_seed(value.initial_seed())
    if isinstance(value, (torch.memory_format, torch.layout)):
        return getattr(tensorcore, str(value).rpartition(".")[2])
    if isinstance(value, torch.Size):
        return tensorcore.Size(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_ours, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(_ours, value))
    if isinstance(value, dict):
        return {key: _ours(one) for key, one in value.items()}
    return value


def numbers_of(tensor: Any) -> np.ndarray:
    """A copy of the values in the tensor's own memory order."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    if str(plain.dtype) in ("torch.bfloat16", "torch.float16"):
        plain = plain.float()
    return np.array(plain.numpy(), order="K", copy=True)


def _processed(process: Callable[..., Any], result: Any) -> Any:
    """PyTorch's own choice among results that are unique up to a sign; its code calls methods that we have too."""
    if isinstance(process, types.FunctionType) and "torch" in process.__globals__:
        names = {**process.__globals__, "torch": tensorcore}
        process = types.FunctionType(
            process.__code__, names, process.__name__, process.__defaults__, process.__closure__
        )
    return process(result)


def _results(result: Any) -> list[Any]:
    return flat(list(result.values()) if isinstance(result, dict) else result)


def _tensors(value: Any, kind: type) -> Iterator[Any]:
    if isinstance(value, kind):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one, kind)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _tensors(one, kind)


def report(verdicts: list[Verdict]) -> str:
    """The report as Markdown."""
    import torch

    differentiable = [one for one in verdicts if one.gradient != "-"]
    agree = sum(one.forward is None for one in verdicts)
    both = sum(one.forward is None and one.gradient is None for one in differentiable)
    lines = [
        "# PyTorch's operator table",
        "",
        f"`make opdb` runs the samples of PyTorch {torch.__version__}'s own table of operators (at most {SAMPLES} each) in both",
        "libraries. Not asked: " + ", ".join(f"`{key}` ({why})" for key, why in EXCLUDED.items()) + ".",
        "",
        f"- forward: **{agree} of {len(verdicts)}** agree ({agree / len(verdicts):.1%})",
        f"- with gradients: **{both} of {len(differentiable)}** agree ({both / max(1, len(differentiable)):.1%})",
        "",
        "| operator | forward | with gradients | reason |",
        "| --- | --- | --- | --- |",
    ]
    for one in verdicts:
        if not one.agrees:
            cells = [f"`{one.name}`", one.forward or "agrees", one.gradient or "agrees", REASONS.get(one.name, "")]
            lines.append("| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Ask, print the report or write it, and answer with the exit status: 1 where a difference has no reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.opdb", description=__doc__)
    parser.add_argument("--only", default="", help="operators whose name contains this text")
    parser.add_argument("--write", type=Path, help="write the report to this file")
    options = parser.parse_args(arguments)
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    verdicts = [examine(op) for op in operators(options.only)]
    text = report(verdicts)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    print(text)
    causes = collections.Counter(one.forward.split(":")[0] for one in verdicts if one.forward)
    print(causes.most_common(5), file=sys.stderr)
    return 1 if any(one.agrees == (one.name in REASONS) for one in verdicts) else 0


if __name__ == "__main__":
    raise SystemExit(main())
