"""Models as ONNX files, which other runtimes run; needs the package ``onnx``."""

from __future__ import annotations

from enum import Enum

from tensorcore.onnx.export import ONNXProgram, export, is_in_onnx_export

__all__ = ["ONNXProgram", "OperatorExportTypes", "TrainingMode", "export", "is_in_onnx_export"]


class TrainingMode(Enum):
    """What older programs hand to ``export``, which writes the model as it is in eval mode."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(Enum):
    """What older programs hand to ``export``, which writes ONNX's own operators."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3
