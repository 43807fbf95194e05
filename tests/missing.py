"""PyTorch's public names that are not here, and why: ``python -m tests.missing`` writes ``docs/missing.md``."""

from __future__ import annotations

import importlib
import re
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorcore

__all__ = ["PAGE", "ROOMS", "WHOLE", "missing_names", "page", "reason_of"]

PAGE = Path(__file__).parent.parent / "docs" / "missing.md"
# Where programs look for names; ``Tensor`` stands for the class.
ROOMS = (
    "torch", "Tensor", "nn", "nn.functional", "nn.init", "nn.utils", "linalg", "fft", "special", "signal.windows", "optim",
    "optim.lr_scheduler", "autograd", "autograd.functional", "autograd.forward_ad", "autograd.graph", "func", "amp", "utils.data",
    "utils.checkpoint", "distributions", "distributed", "distributed.algorithms", "distributed.optim", "distributed.fsdp",
    "distributed.tensor", "distributed.tensor.parallel", "distributed.pipelining", "distributed.checkpoint",
    "distributed.device_mesh", "distributed.nn.functional", "nn.parallel", "multiprocessing", "random", "serialization", "cuda", "library",
    "nn.grad", "nn.attention", "nn.attention.bias", "testing", "cpu", "sparse", "cuda.memory", "cuda.random", "masked", "nested",
)  # fmt: skip
WHOLE = "(the whole module)"
# Why names are missing: the first expression that the whole name matches decides, then the room.
REASONS = {
    r"eig|lstsq|matrix_rank|solve|symeig": "removed from PyTorch, where they raise; `linalg` has them",
    r"resize|resize_as|reinforce|to_dlpack|storage_type": "deprecated in PyTorch",
    r".*quant.*|q_.*|qscheme|int_repr|fbgemm_.*|choose_qparams.*|fused_moving_avg_.*": "quantised tensors",
    r".*sparse.*|.*_indices(_copy)?|indices(_copy)?|values(_copy)?|.*coalesce.*|dense_dim|.*smm|spmm|hspmm|saddmm|sspaddmm|"
    r"SparseAdam": "sparse tensors",
    r".*(cudnn|miopen|mkldnn|mtia|vulkan|ipu|xla|xpu|hpu).*": "one vendor's kernels or devices",
    r"native_.*|batch_norm_.*|embedding_renorm_|affine_grid_generator|norm_except_dim|slice_inverse|unsafe_split_with_sizes|"
    r"convolution|embedding_bag": "kernels behind PyTorch's public functions",
    r"sym_constrain_.*|sym_fresh_size|.*_ir.*|parse_.*|.*type_comment|classproperty|fork|wait|unify_type_list|boolean_dispatch|"
    r"compiled_with.*|functionalize|debug_unwrap|thread_safe_generator|profiler_allow.*|get_file_path|index|init_num_threads|"
    r"prepare_multiprocessing_environment|assert_int_or_pair|factory_kwargs|NestedIOFunction|enforce_grad_layout_policy":
        "PyTorch's own compilers and internals",
    r".*handle_torch_function|has_torch_function.*|module_load": "behind PyTorch's protocol for subclasses, which is in `overrides`",
    r"scaled_.*mm|grouped_mm": "experimental in PyTorch",
    r"chalf": "there is no complex32, which NumPy lacks",
    r"to_padded_tensor": "nested tensors",
}  # fmt: skip
ROOM_REASONS = {
    "torch": "no such setting, file or device handle here",
    "Tensor": "no such setting, file or device handle here",
    "autograd": "walks have no threads to set",
    "autograd.graph": "no such setting here",
    "cuda": "what only one device has is its plugin's to offer",
    "distributed": "settings of PyTorch's own transports, or experimental: `new_group` and `new_subgroups` split groups",
    "distributed.checkpoint": "deprecated in PyTorch",
    "distributed.fsdp": "the first version of FSDP, whose class is there to be asked for by `isinstance`, and its settings: "
    "`fully_shard` takes its place",
    "distributed.optim": "optimizers over remote calls, and averages now and then, which are not written",
    "distributed.pipelining": "schedules of several stages a rank, and splitting a traced model, which are not written",
    "distributed.tensor.parallel": "not written: there are `PrepareModuleInput` and `PrepareModuleOutput`, and losses of whole "
    "logits",
    "cpu": "what one kind of processor can do is its plugin's to say",
    "cuda.memory": "the allocator's own settings and counts",
    "masked": "a prototype in PyTorch; `masked_fill` and `where` with a mask do the same",
    "nested": "a prototype in PyTorch: batches of tensors of several lengths; `nn.utils.rnn` pads and packs them",
    "nn.attention": "choosing among one vendor's kernels",
    "sparse": "kernels for one vendor's GPUs",
    "library": "PyTorch's dispatcher: `custom_op` and its registrations are here",
    "fft": "no function of Fourier transforms",
    "func": "helpers for what this library has no need of",
    "serialization": "helpers inside PyTorch's own module",
    "utils.checkpoint": "selective checkpoints, and helpers inside PyTorch's own module",
    "utils.data": "data pipes, which PyTorch froze",
}


def missing_names(torch: Any) -> dict[str, list[str]]:
    """PyTorch's public functions, methods and classes that are missing here, by room; of a missing room, the room."""
    found: dict[str, list[str]] = {}
    for room in ROOMS:
        with warnings.catch_warnings(action="ignore"):  # what is deprecated says so as soon as it is touched
            theirs, ours = _found(torch, room), _found(tensorcore, room)
            names = [] if theirs is None else sorted(_public(theirs, room))
        if theirs is not None and ours is None:
            found[room] = [WHOLE]
        elif theirs is not None:
            found[room] = [name for name in names if not hasattr(ours, name)]
    return {room: names for room, names in found.items() if names}


def _found(library: Any, room: str) -> Any:
    if room in ("torch", "Tensor"):
        return library if room == "torch" else library.Tensor
    try:
        return importlib.import_module(f"{library.__name__}.{room}")
    except ImportError:
        found: Any = library
        for part in room.split("."):
            found = getattr(found, part, None)
        return found


def _public(module: Any, room: str) -> Iterator[str]:
    listed = getattr(module, "__all__", None) if room not in ("torch", "Tensor", "nn.functional") else None
    for name in listed or dir(module):
        value = getattr(module, name, None)
        if name.startswith("_") or isinstance(value, types.ModuleType) or not callable(value):
            continue
        origin = getattr(value, "__module__", None) or "torch"
        if origin.startswith("torch") and (listed or not isinstance(value, type)):
            yield name


def reason_of(room: str, name: str) -> str | None:
    """Why a name is missing, None where nobody said."""
    return next((why for pattern, why in REASONS.items() if re.fullmatch(pattern, name)), ROOM_REASONS.get(room))


def page(torch: Any) -> str:
    """The page as Markdown."""
    found = missing_names(torch)
    lines = [
        "# What PyTorch has and tensorcore has not",
        "",
        f"The public functions, methods and classes of PyTorch {torch.__version__.partition('+')[0]} that are missing here, as",
        "`python -m tests.missing` finds them, and why. It looks into "
        + ", ".join(f"`{room}`" for room in ROOMS)
        + ". What no heading names is all there.",
    ]
    for room, names in found.items():
        lines += ["", f"## {room}", ""]
        reasons: dict[str, list[str]] = {}
        for name in names:
            reasons.setdefault(reason_of(room, name) or "not written yet", []).append(name)
        lines += [f"- {why}: {', '.join(f'`{name}`' for name in chosen)}" for why, chosen in sorted(reasons.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    import torch

    PAGE.write_text(page(torch), encoding="utf-8")
