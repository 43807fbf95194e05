"""What DistributedDataParallel may do with a bucket of gradients in place of an all_reduce."""

from tensorcore.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
