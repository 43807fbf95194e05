"""Random tensors, in-place draws, and the generator behind them: PyTorch's CPU numbers for the same seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.errors import ArgumentTypeError, DtypeError, GradientError, ShapeError
from tensorcore.ops import rules
from tensorcore.ops.create import from_numpy
from tensorcore.ops.create import made as tensor_of
from tensorcore.ops.define import Op
from tensorcore.ops.inplace import attach, check_writable
from tensorcore.ops.kinds import method, operation
from tensorcore.ops.output import store, written
from tensorcore.ops.placement import as_device
from tensorcore.ops.record import record
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "Generator", "bernoulli", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "multinomial",
    "normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "seed", "set_rng_state",
]  # fmt: skip


class Generator:
    """A source of random numbers of its own, to pass as ``generator=``.

    Args:
        device: accepted for every device: numbers are drawn on the host unless a backend draws its own.
    """

    def __init__(self, device: Any = "cpu") -> None:
        self._device = device
        self._host: Any = None

    @property
    def host(self) -> Any:
        """The generator that draws, made on first use."""
        if self._host is None:
            from tensorcore.backend import random

            self._host = random.default_generator() if self is default_generator else random.Generator()
        return self._host

    @property
    def device(self) -> Any:
        """The device it was made for."""
        return as_device(self._device)

    def manual_seed(self, seed: int) -> Generator:
        """Start over from ``seed``; returns itself."""
        self.host.manual_seed(seed)
        return self

    def seed(self) -> int:
        """Start over from a seed that nobody can foretell, and return it."""
        return int(self.host.seed())

    def initial_seed(self) -> int:
        """The seed it last started from."""
        return int(self.host.initial_seed())

    def get_state(self) -> Tensor:
        """The state, as a uint8 tensor of PyTorch's bytes."""
        return from_numpy(self.host.get_state())

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from a state that ``get_state`` gave; returns itself."""
        if not isinstance(new_state, Tensor) or new_state.dtype is not dtypes.uint8:
            raise ArgumentTypeError(
                f"set_state: RNG state must be a torch.ByteTensor, got {new_state!r}; pass what get_state() gave"
            )
        self.host.set_state(new_state.detach().numpy())
        return self

    def clone_state(self) -> Generator:
        """A second one that goes on from the same state, by itself."""
        made = Generator(self._device)
        made._host = self.host.clone()
        return made

    def __reduce__(self) -> Any:
        return _restored, (str(self._device), self.host.get_state())


def _restored(device: str, state: np.ndarray) -> Generator:
    made = Generator(device)
    made.host.set_state(state)
    return made


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Start the default generator over from ``seed``, and return it."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the default generator over from a seed that nobody can foretell, and return that."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator last started from."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Let the default generator continue from a state that ``get_rng_state`` gave."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Iterable[Any] = (), enabled: bool = True, _caller: str = "", _devices_kw: str = "",
             device_type: str = "cpu") -> Iterator[None]:  # fmt: skip
    """Inside ``with``, draw as ever; afterwards the default generator is where it was before."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


def _draw(
    op: str, kind: str, shape: tuple[int, ...], dtype: dtypes.dtype, device: Any, generator: Any, **options: Any
) -> Any:
    """A native array of random numbers."""
    if generator is None:
        generator = default_generator
    elif not isinstance(generator, Generator):
        raise ArgumentTypeError(
            f"{op}: expected generator to be a torch.Generator, got {type(generator).__name__}; make one"
        )
    if shape and min(shape) < 0:
        raise ShapeError(
            f"{op}: Trying to create tensor with negative dimension {min(shape)}, got {list(shape)}; use sizes >= 0"
        )
    return device.random(kind, shape, dtype, generator.host, **options)


def _created(op: str, kind: str, size: Any, out: Any, dtype: Any, device: Any, requires_grad: bool, generator: Any,
             default: dtypes.dtype | None = None, **options: Any) -> Tensor:  # fmt: skip
    shape = rules.as_shape(op, size)
    if out is not None:
        found, device = out.dtype, out.device
    else:
        found = dtypes.as_dtype(dtype, op) if dtype is not None else default or dtypes.get_default_dtype()
        device = as_device(device)
    made = tensor_of(_draw(op, kind, shape, found, device, generator, **options), found, device, requires_grad)
    return made if out is None else store(op, made, out)


def rand(*size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False, pin_memory: bool = False, names: Any = None) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1)."""
    return _created("rand", "uniform", size, out, dtype, device, requires_grad, generator)


def randn(*size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
          requires_grad: bool = False, pin_memory: bool = False, names: Any = None) -> Tensor:  # fmt: skip
    """Normal numbers of mean 0 and standard deviation 1."""
    return _created("randn", "normal", size, out, dtype, device, requires_grad, generator)


def randint(*args: Any, low: int = 0, high: Any = None, size: Any = None, generator: Any = None, out: Any = None, dtype: Any = None,
            layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """``randint(high, size)`` or ``randint(low, high, size)``: whole numbers in [low, high), int64 unless another dtype is named."""
    given = list(args)
    if size is None and given and not hasattr(given[-1], "__index__"):
        size = given.pop()
    if len(given) == 2:
        low, high = given
    elif len(given) == 1 and high is None:
        high = given[0]
    elif given:
        low = given[0]
        given = given[1:]
    if size is None or high is None or len(given) > 2 or not all(hasattr(one, "__index__") for one in (low, high)):
        raise ArgumentTypeError(
            f"randint: received an invalid combination of arguments - got {args}; pass (low, high, size)"
        )
    return _created("randint", "integers", (size,), out, dtype, device, requires_grad, generator, dtypes.int64,
                    low=int(low), high=int(high))  # fmt: skip


def randperm(n: int, *, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """The numbers from 0 to n - 1 in random order."""
    found = out.dtype if out is not None else dtypes.int64 if dtype is None else dtypes.as_dtype(dtype, "randperm")
    device = out.device if out is not None else as_device(device)
    if generator is not None and not isinstance(generator, Generator):
        raise ArgumentTypeError(
            f"randperm: expected generator to be a torch.Generator, got {type(generator).__name__}; make one"
        )
    drawn = (generator or default_generator).host.permutation(n, found)
    made = tensor_of(device.share_host(drawn), found, device, requires_grad)
    return made if out is None else store("randperm", made, out)


def _like(
    op: str, kind: str, input: Tensor, dtype: Any, device: Any, requires_grad: bool, generator: Any, **options: Any
) -> Tensor:
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(
            f"{op}: expected argument 'input' to be a Tensor, got {type(input).__name__}; use torch.tensor(...)"
        )
    return _created(op, kind, (tuple(input.native.shape),), None, dtype or input.dtype, device or input.device, requires_grad,
                    generator, **options)  # fmt: skip


def rand_like(input: Tensor, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1) in the shape, dtype and on the device of ``input``."""
    return _like("rand_like", "uniform", input, dtype, device, requires_grad, generator)


def randn_like(input: Tensor, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Standard normal numbers in the shape, dtype and on the device of ``input``."""
    return _like("randn_like", "normal", input, dtype, device, requires_grad, generator)


def randint_like(input: Tensor, *bounds: int, low: int = 0, high: int | None = None, generator: Any = None, dtype: Any = None,
                 layout: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """``randint_like(input, high)`` or ``(input, low, high)``: whole numbers in [low, high) in the shape and dtype of ``input``."""
    if bounds:
        low, high = (low, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
    if high is None:
        raise ArgumentTypeError("randint_like: expected high, got nothing; pass (input, high) or (input, low, high)")
    return _like(
        "randint_like", "integers", input, dtype, device, requires_grad, generator, low=int(low), high=int(high)
    )


# Draws that take tensors. Their result does not change with the parameters, so the gradient is zero.

_normal_op = Op("normal", "input", "Normal numbers.", register=False, grads=dict(input=lambda g: g * 0))
_bernoulli_op = Op("bernoulli", "input", "Zeros and ones.", register=False, grads=dict(input=lambda g: g * 0))


def _recorded(op: Op, input: Tensor, made: Tensor) -> Tensor:
    if mode.enabled and input.node is not None:
        record(op, (input,), None, made)
    return made


def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, out: Any = None, dtype: Any = None,
           layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Normal numbers: of one mean and deviation and a ``size``, or of tensors of means, deviations or both."""
    if size is not None:
        return _created(
            "normal", "normal", (size,), out, dtype, device, requires_grad, generator, mean=float(mean), std=float(std)
        )
    tensors = [one for one in (mean, std) if isinstance(one, Tensor)]
    if not tensors:
        raise ArgumentTypeError(f"normal: expected a size with two numbers, got {mean!r} and {std!r}; pass size=(...)")
    if isinstance(std, Tensor) and std.numel() and float(std.device.to_host(std.native).min()) < 0.0:
        raise GradientError(
            "normal: normal expects all elements of std >= 0.0, got a negative one; pass its absolute value"
        )
    if not isinstance(std, Tensor) and not std >= 0.0:
        raise GradientError(f"normal: normal expects std >= 0.0, but found std {std}")
    first = tensors[0]
    shape = rules.broadcast("normal", *[tuple(one.native.shape) for one in tensors])
    scale = 1.0 if isinstance(std, Tensor) else float(std)
    native = _draw("normal", "normal", shape, first.dtype, first.device, generator, mean=0.0, std=scale)
    made = new_tensor(native, first.dtype, first.device)
    made = made * std.detach() if isinstance(std, Tensor) else made
    made = made + (mean.detach() if isinstance(mean, Tensor) else mean)
    if out is not None:
        return store("normal", made, out)
    return _recorded(_normal_op, next((one for one in tensors if one.node is not None), first), made)


@operation()
def bernoulli(input: Tensor, p: float | None = None, *, generator: Any = None, out: Any = None) -> Tensor:
    """Ones with the probability that ``input`` has in that place (or ``p`` everywhere), else zeros, in the input's dtype."""
    shape = tuple(input.native.shape)
    if p is None:
        if not input.dtype.is_floating_point:
            raise DtypeError(
                f'bernoulli: "bernoulli_tensor_cpu_p_" not implemented for {input.dtype.name}, got it; use .float()'
            )
        probability: Any = input.device.to_host(input.native)
    else:
        probability = float(p)
    native = _draw("bernoulli", "bernoulli", shape, input.dtype, input.device, generator, probability=probability)
    made = new_tensor(native, input.dtype, input.device)
    return store("bernoulli", made, out) if out is not None else _recorded(_bernoulli_op, input, made)


@operation()
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None, out: Any = None
) -> Tensor:
    """``num_samples`` int64 indices drawn by weight: from (categories), or from each row of (rows, categories)."""
    if generator is not None and not isinstance(generator, Generator):
        raise ArgumentTypeError(
            f"multinomial: expected generator to be a torch.Generator, got {type(generator).__name__}; make one"
        )
    source = (generator or default_generator).host
    found = source.multinomial(input.device.to_host(input.native), num_samples, replacement)
    made = new_tensor(input.device.share_host(found), dtypes.int64, input.device)
    return made if out is None else store("multinomial", made, out)


# In place


def _fill(op: str, input: Tensor, kind: str, generator: Any, **options: Any) -> Tensor:
    """Draw over a tensor's memory. What was there has no influence any more, so its gradient is zero."""
    check_writable(op, input)
    native = _draw(op, kind, tuple(input.native.shape), input.dtype, input.device, generator, **options)
    before = new_tensor(input.native, input.dtype, input.device)
    before.node = input.node
    input.device.kernels["copy"](input.native, native)
    written(input)
    if mode.enabled and input.node is not None:
        made = new_tensor(input.native, input.dtype, input.device)
        record(_normal_op, (before,), None, made)
        attach(input, made.node)
    return input


@method
def uniform_(input: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None, **renamed: Any) -> Tensor:
    """Write uniform numbers in [from, to)."""
    low = renamed.pop("from", from_)  # PyTorch's name of it is a Python keyword
    if renamed:
        raise ArgumentTypeError(
            f"uniform_: got an unexpected keyword argument '{next(iter(renamed))}'; it takes from, to, generator"
        )
    return _fill("uniform_", input, "uniform", generator, low=float(low), high=float(to))


@method
def normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Write normal numbers."""
    return _fill("normal_", input, "normal", generator, mean=float(mean), std=float(std))


@method
def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Write ones with probability ``p`` (a number, or a tensor that broadcasts), else zeros."""
    probability = p.detach().device.to_host(p.native) if isinstance(p, Tensor) else float(p)
    return _fill("bernoulli_", input, "bernoulli", generator, probability=probability)


@method
def exponential_(input: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """Write exponential numbers of rate ``lambd``."""
    return _fill("exponential_", input, "exponential", generator, rate=float(lambd))


@method
def geometric_(input: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Write how many trials of probability ``p`` it takes up to the first success."""
    return _fill("geometric_", input, "geometric", generator, probability=float(p))


@method
def log_normal_(input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Tensor:
    """Write exponentials of normal numbers."""
    return _fill("log_normal_", input, "log_normal", generator, mean=float(mean), std=float(std))


@method
def cauchy_(input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Tensor:
    """Write Cauchy numbers."""
    return _fill("cauchy_", input, "cauchy", generator, median=float(median), sigma=float(sigma))


@method
def random_(
    input: Tensor, from_: int | None = None, to: int | None = None, *, generator: Any = None, **renamed: Any
) -> Tensor:
    """``random_()``, ``random_(to)`` or ``random_(from, to)``: whole numbers in [from, to).

    Without ``to``, up to the largest that the dtype holds.
    """
    only_from = "from" in renamed
    from_ = renamed.pop("from", from_)
    if renamed:
        raise ArgumentTypeError(
            f"random_: got an unexpected keyword argument '{next(iter(renamed))}'; it takes from, to, generator"
        )
    if from_ is None and to is None:
        return _fill("random_", input, "random", generator)
    if to is None and not only_from:
        from_, to = 0, from_
    return _fill("random_", input, "integers", generator, low=int(from_ or 0), high=None if to is None else int(to))
