"""Optimizers, by name: written by ``python -m docs.document``, not by hand."""

from __future__ import annotations


from tensorcore.optim import lr_scheduler as lr_scheduler
from tensorcore.optim import swa_utils as swa_utils
from tensorcore.optim.asgd import ASGD as ASGD
from tensorcore.optim.adadelta import Adadelta as Adadelta
from tensorcore.optim.adafactor import Adafactor as Adafactor
from tensorcore.optim.adagrad import Adagrad as Adagrad
from tensorcore.optim.adam import Adam as Adam
from tensorcore.optim.adamw import AdamW as AdamW
from tensorcore.optim.adamax import Adamax as Adamax
from tensorcore.optim.lbfgs import LBFGS as LBFGS
from tensorcore.optim.muon import Muon as Muon
from tensorcore.optim.nadam import NAdam as NAdam
from tensorcore.optim.optimizer import Optimizer as Optimizer
from tensorcore.optim.radam import RAdam as RAdam
from tensorcore.optim.rmsprop import RMSprop as RMSprop
from tensorcore.optim.rprop import Rprop as Rprop
from tensorcore.optim.sgd import SGD as SGD
from tensorcore.optim.sparse_adam import SparseAdam as SparseAdam
from tensorcore.optim.swap import swap_in_optimizer_params_and_state as swap_in_optimizer_params_and_state
