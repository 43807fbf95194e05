"""The settings of PyTorch's code generator: programs set ``torch._inductor.config``, which changes nothing here."""

from __future__ import annotations

from tensorcore.settings import Settings

__all__ = ["config"]

config = Settings(
    conv_1x1_as_mm=False, coordinate_descent_check_all_directions=False, coordinate_descent_tuning=False, cpp=Settings(),
    cpp_wrapper=False, epilogue_fusion=True, fallback_random=False, force_fuse_int_mm_with_mul=False,
    freezing=False, fx_graph_cache=True, max_autotune=False, reorder_for_compute_comm_overlap=False, trace=Settings(),
    triton=Settings(cudagraphs=False, unique_kernel_names=True), use_mixed_mm=True,
)  # fmt: skip
