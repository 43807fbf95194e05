"""Models as ONNX files, which other runtimes run; needs the package ``onnx``."""

from __future__ import annotations

from tensorcore.onnx.export import ONNXProgram, export

__all__ = ["ONNXProgram", "export"]
