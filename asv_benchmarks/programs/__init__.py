"""Small programs as people write them: what a kind of work takes, whole. ``PROGRAMS`` has them by what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import learning, numbers, pictures, sequences
from .common import Step

__all__ = ["PROGRAMS", "Step"]

PROGRAMS: dict[str, Callable[[Any], Step]] = {
    "deep Q-learning": learning.q_learning,
    "one action of a policy": learning.acting,
    "proximal policy optimisation": learning.policy_gradient,
    "soft actor-critic": learning.soft_actor_critic,
    "variational autoencoder": learning.autoencoder,
    "gradient penalty of a critic": learning.gradient_penalty,
    "contrastive pairs": learning.contrastive,
    "recommender of eight features": learning.recommender,
    "moving average of weights": learning.averaged_weights,
    "characters by LSTM": sequences.characters,
    "GRU cell in a loop": sequences.cell_by_cell,
    "spiking neurons in a loop": sequences.spiking_neurons,
    "vision transformer": sequences.vision_transformer,
    "text from a transformer, word by word": sequences.generated_text,
    "beam search": sequences.beam_search,
    "DCGAN": pictures.adversarial,
    "U-Net of a diffusion model": pictures.denoiser,
    "MobileNet, one picture": pictures.mobile_inference,
    "MobileNet, training": pictures.mobile_training,
    "mixup of pictures": pictures.mixed_pictures,
    "augmented pictures": pictures.augmented_pictures,
    "convolutions along signals": pictures.heartbeats,
    "convolutions through volumes": pictures.volumes,
    "overlap of boxes": pictures.boxes,
    "Laplacian of a net": numbers.laplacian,
    "Runge-Kutta steps": numbers.differential_equation,
    "normalizing flow": numbers.flow,
    "graph convolution": numbers.graph_convolution,
    "graph attention": numbers.graph_attention,
    "neural radiance field": numbers.radiance_field,
    "k-means": numbers.clusters,
    "Gaussian process": numbers.gaussian_process,
    "rigid registration": numbers.registration,
    "rotations by quaternions": numbers.rotations,
    "spectrogram": numbers.spectrogram,
}
