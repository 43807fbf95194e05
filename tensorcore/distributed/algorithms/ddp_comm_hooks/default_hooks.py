"""The plain all_reduce of a bucket of gradients, and ones in half the bytes."""

from __future__ import annotations

from typing import Any

import tensorcore.distributed as dist
from tensorcore import dtypes
from tensorcore.futures import Future

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def allreduce_hook(process_group: Any, bucket: Any) -> Future:
    """The mean of the bucket over the ranks, as without a hook."""
    buffer = bucket.buffer().div_(dist.get_world_size(process_group))
    return dist.all_reduce(buffer, group=process_group, async_op=True).get_future().then(lambda done: done.value()[0])


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future:
    """The mean over the ranks, sent as float16 and added up in float32."""
    return _compressed(process_group, bucket, dtypes.float16)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future:
    """The mean over the ranks, sent as bfloat16 and added up in float32."""
    return _compressed(process_group, bucket, dtypes.bfloat16)


def fp16_compress_wrapper(hook: Any) -> Any:
    """The hook on buckets of float16."""
    return _wrapped(hook, dtypes.float16)


def bf16_compress_wrapper(hook: Any) -> Any:
    """The hook on buckets of bfloat16."""
    return _wrapped(hook, dtypes.bfloat16)


def _compressed(group: Any, bucket: Any, dtype: Any) -> Future:
    buffer = bucket.buffer()
    small = buffer.to(dtype).div_(dist.get_world_size(group))
    work = dist.all_reduce(small, group=group, async_op=True)
    return work.get_future().then(lambda done: buffer.copy_(done.value()[0]))


def _wrapped(hook: Any, dtype: Any) -> Any:
    def run(state: Any, bucket: Any) -> Future:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(state, bucket).then(lambda done: buffer.copy_(done.value()))

    return run
