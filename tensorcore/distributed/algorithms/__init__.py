"""Ways of training over the collectives."""

from tensorcore.distributed.algorithms import ddp_comm_hooks
