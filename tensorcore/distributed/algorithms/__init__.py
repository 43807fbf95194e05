"""Ways of training over the collectives."""

from tensorcore.distributed.algorithms import ddp_comm_hooks
from tensorcore.distributed.algorithms.join import Join, Joinable, JoinHook
