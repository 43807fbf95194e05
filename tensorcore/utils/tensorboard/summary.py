"""Parts of an event file under the name that PyTorch's loggers import them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorcore.utils.tensorboard import summaries

__all__ = ["hparams"]


def hparams(
    hparam_dict: Mapping[str, Any],
    metric_dict: Mapping[str, Any],
    hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Any, Any, Any]:
    """What ``FileWriter.add_summary`` takes to show hyperparameters: which there are, the values of this run, and its end."""
    return (
        summaries.experiment(hparam_dict, list(metric_dict), hparam_domain_discrete or {}),
        summaries.session_start(hparam_dict),
        summaries.session_end(),
    )
