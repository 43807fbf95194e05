"""Tools for the parameters of a model: gradient clipping, one vector of all of them."""

from __future__ import annotations

from tensorcore.nn.utils.gradients import clip_grad_norm_, clip_grad_value_, get_total_norm
from tensorcore.nn.utils.vectors import parameters_to_vector, vector_to_parameters

__all__ = ["clip_grad_norm_", "clip_grad_value_", "get_total_norm", "parameters_to_vector", "vector_to_parameters"]
