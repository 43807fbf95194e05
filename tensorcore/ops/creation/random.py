"""Random tensors and the generator behind them: PyTorch's CPU numbers for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from tensorcore import dtypes
from tensorcore.backend.base import Backend
from tensorcore.backend.registry import made_devices
from tensorcore.backend.sources import sources
from tensorcore.errors import ArgumentTypeError, DtypeError, ShapeError, UsageError
from tensorcore.formats import only_strided
from tensorcore.ops import rules, samples
from tensorcore.ops.creation.create import _sizes, from_numpy
from tensorcore.ops.creation.create import made as tensor_of
from tensorcore.ops.define import Op
from tensorcore.ops.kinds import operation
from tensorcore.ops.operands import check_tensors
from tensorcore.ops.output import store
from tensorcore.ops.placement import Default, as_device, check_stored, not_stored
from tensorcore.ops.record import record
from tensorcore.ops.shortage import again
from tensorcore.shortcuts import before
from tensorcore.tape.aside import aside
from tensorcore.tape.mode import mode
from tensorcore.tensor import Tensor, new_tensor

__all__ = [
    "Generator", "bernoulli", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "multinomial",
    "normal", "rand", "randint", "randn", "randperm", "seed", "set_rng_state",
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
        """The generator that draws, made on first use; that of the default one may be each thread's own."""
        if self is default_generator:
            return _of_thread()()
        if self._host is None:
            _asked_for("a new generator")
            self._host = self.device.new_generator()
        return self._host

    @property
    def device(self) -> Any:
        """The device it was made for."""
        return as_device(self._device)

    @aside()
    def manual_seed(self, seed: int) -> Generator:
        """Start over from ``seed``; returns itself."""
        self.host.manual_seed(seed)
        return self

    def seed(self) -> int:
        """Start over from a seed that nobody can foretell, and return it."""
        return int(self.host.seed())

    def initial_seed(self) -> int:
        """The seed it last started from."""
        _asked_for("the seed of a generator")
        return int(self.host.initial_seed())

    def get_state(self) -> Tensor:
        """The state, as a uint8 tensor of PyTorch's bytes."""
        _asked_for("the state of a generator")
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
        _asked_for("the state of a generator")
        made = Generator(self._device)
        made._host = self.host.clone()
        return made

    def __reduce__(self) -> Any:
        return _restored, (str(self._device), self.host.get_state())


@cache
def _of_thread() -> Callable[[], Any]:
    """What finds the generator of the calling thread; imported on first use, as it is with it that NumPy's are."""
    from tensorcore.backend.default_generator import default_generator

    return default_generator


def _asked_for(what: str) -> None:
    """Tell a trace of something that each call finds anew."""
    if mode.tracer is not None:
        mode.tracer.fail_unless_paused(f"asks for {what}")


def _restored(device: str, state: np.ndarray) -> Generator:
    made = Generator(device)
    made.host.set_state(state)
    return made


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Start the default generator over from ``seed``, and those that devices have of their own; returns the first."""
    _seed_devices(default_generator.manual_seed(seed).host.initial_seed())
    return default_generator


def seed() -> int:
    """Start the default generator over from a seed that nobody can foretell, and those of devices; returns that seed."""
    return _seed_devices(default_generator.seed())


def _seed_devices(seed: int) -> int:
    """Start the generator of each device in use over, where it has one of its own; returns the seed."""
    for device in made_devices():
        if device.own_generator is not None:
            device.own_generator.manual_seed(seed)
    return seed


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
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)


# What the short ways ask, see making.c.
DRAWS: Any = (_of_thread, Default, vars(dtypes), dtypes.dtype, Backend, sources)


@before("draw", *DRAWS)
def draw(
    op: str, kind: str, shape: tuple[int, ...], dtype: dtypes.dtype, device: Any, generator: Any, **options: Any
) -> Any:
    """A native array of random numbers."""
    if generator is None or generator is default_generator:
        source = device.own_generator or _of_thread()()
    elif isinstance(generator, Generator):
        source = generator.host
    else:
        raise ArgumentTypeError(
            f"{op}: expected generator to be a torch.Generator, got {type(generator).__name__}; make one"
        )
    if shape and min(shape) < 0:
        raise ShapeError(
            f"{op}: Trying to create tensor with negative dimension {min(shape)}, got {list(shape)}; use sizes >= 0"
        )
    for level in mode.levels:
        level.written(op, device)
    try:
        return device.random(kind, shape, dtype, source, **options)
    except MemoryError as error:
        return again(device, op, (kind, shape, dtype, source), options, error, device.random)


def _drawn_on(op: str, device: Any) -> Any:
    """The device that a new random tensor is made on: inside vmap each example may get numbers of its own."""
    for level in mode.levels:
        device = level.drawn(op, device)
    return device


@before("created", *DRAWS)
def created(op: str, kind: str, size: Any, out: Any, dtype: Any, device: Any, requires_grad: bool, generator: Any,
             default: dtypes.dtype | None = None, **options: Any) -> Tensor:  # fmt: skip
    shape = rules.as_shape(op, size)
    if out is not None:
        found, device = dtypes.as_dtype(dtype, op) if dtype is not None else out.dtype, out.device
    else:
        found = dtypes.as_dtype(dtype, op) if dtype is not None else default or dtypes.get_default_dtype()
        device = _drawn_on(op, as_device(device))
        if found.name not in device.capabilities.dtypes:
            raise not_stored(op, found, device)
    made = tensor_of(draw(op, kind, shape, found, device, generator, **options), found, device, requires_grad)
    return made if out is None else store(op, made, out)


def rand(*sizes: Any, size: Any = None, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
         device: Any = None, requires_grad: bool = False, pin_memory: bool = False, names: Any = None) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1)."""
    if layout is not None:
        only_strided("rand", layout)
    if size is not None or not sizes:
        sizes = _sizes("rand", sizes, size)
    return created("rand", "uniform", sizes, out, dtype, device, requires_grad, generator)


def randn(*sizes: Any, size: Any = None, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
          device: Any = None, requires_grad: bool = False, pin_memory: bool = False, names: Any = None) -> Tensor:  # fmt: skip
    """Normal numbers of mean 0 and standard deviation 1."""
    if layout is not None:
        only_strided("randn", layout)
    if size is not None or not sizes:
        sizes = _sizes("randn", sizes, size)
    return created("randn", "normal", sizes, out, dtype, device, requires_grad, generator)


def randint(*args: Any, low: int = 0, high: Any = None, size: Any = None, generator: Any = None, out: Any = None, dtype: Any = None,
            layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """``randint(high, size)`` or ``randint(low, high, size)``: whole numbers in [low, high), int64 unless another dtype is named."""
    if layout is not None:
        only_strided("randint", layout)
    if len(args) == 3 and size is None and type(args[0]) is int is type(args[1]):  # the usual call
        return created("randint", "integers", (args[2],), out, dtype, device, requires_grad, generator, dtypes.int64,
                       low=args[0], high=args[1])  # fmt: skip
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
    return created("randint", "integers", (size,), out, dtype, device, requires_grad, generator, dtypes.int64,
                    low=int(low), high=int(high))  # fmt: skip


def randperm(n: int, *, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """The numbers from 0 to n - 1 in random order."""
    if layout is not None:
        only_strided("randperm", layout)
    found = dtypes.as_dtype(dtype, "randperm") if dtype is not None else dtypes.int64 if out is None else out.dtype
    device = out.device if out is not None else _drawn_on("randperm", as_device(device))
    if generator is not None and not isinstance(generator, Generator):
        raise ArgumentTypeError(
            f"randperm: expected generator to be a torch.Generator, got {type(generator).__name__}; make one"
        )
    check_stored("randperm", found, device)
    source = (generator or default_generator).host
    if device.array is np.ndarray:  # it may draw faster what the generator draws
        native = device.random("permutation", (n,), found, source)
    else:
        native = device.draw("randperm", lambda: source.permutation(n, found))
    made = tensor_of(native, found, device, requires_grad)
    return made if out is None else store("randperm", made, out)


# Draws that take tensors. Their result does not change with the parameters, so the gradient is zero.

normal_op = Op("normal", "input", "Normal numbers.", register=False, grads=dict(input=lambda g: g * 0))
_bernoulli_op = Op("bernoulli", "input", "Zeros and ones.", register=False, grads=dict(input=lambda g: g * 0))


def _recorded(op: Op, input: Tensor, made: Tensor) -> Tensor:
    if mode.enabled and input.node is not None:
        record(op, (input,), None, made)
    return made


def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, out: Any = None, dtype: Any = None,
           layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Normal numbers: of one mean and deviation and a ``size``, or of tensors of means, deviations or both."""
    if layout is not None:
        only_strided("normal", layout)
    if size is not None:
        return created(
            "normal", "normal", (size,), out, dtype, device, requires_grad, generator, mean=float(mean), std=float(std)
        )
    tensors = [one for one in (mean, std) if isinstance(one, Tensor)]
    if not tensors:
        raise ArgumentTypeError(f"normal: expected a size with two numbers, got {mean!r} and {std!r}; pass size=(...)")
    if (
        isinstance(std, Tensor)
        and std.numel()
        and not std.device.many
        and float(std.device.to_host(std.native).min()) < 0.0
    ):
        raise UsageError(
            "normal: normal expects all elements of std >= 0.0, got a negative one; pass its absolute value"
        )
    if not isinstance(std, Tensor) and not std >= 0.0:
        raise UsageError(f"normal: normal expects std >= 0.0, but found std {std}")
    first = tensors[0]
    shape = rules.broadcast("normal", *[tuple(one.native.shape) for one in tensors])
    scale = 1.0 if isinstance(std, Tensor) else float(std)
    native = draw("normal", "normal", shape, first.dtype, first.device, generator, mean=0.0, std=scale)
    made = new_tensor(native, first.dtype, first.device)
    made = made * std.detach() if isinstance(std, Tensor) else made
    made = made + (mean.detach() if isinstance(mean, Tensor) else mean)
    if out is not None:
        return store("normal", made, out)
    return _recorded(normal_op, next((one for one in tensors if one.node is not None), first), made)


@operation(samples=samples.chances)
def bernoulli(input: Tensor, p: float | None = None, *, generator: Any = None, out: Any = None) -> Tensor:
    """Ones with the probability that ``input`` has in that place (or ``p`` everywhere), else zeros, in the input's dtype."""
    if type(input) is not Tensor:
        check_tensors("bernoulli", input=input)
    shape = tuple(input.native.shape)
    if p is None:
        if not input.dtype.is_floating_point:
            raise DtypeError(
                f'bernoulli: "bernoulli_tensor_cpu_p_" not implemented for {input.dtype.name}, got it; use .float()'
            )
        if mode.levels:
            # Each example has probabilities of its own.
            return _recorded(_bernoulli_op, input, _flipped(input, generator or default_generator))
        probability: Any = input.native if input.device.own_generator else input.device.to_host(input.native)
    else:
        probability = float(p)
    native = draw("bernoulli", "bernoulli", shape, input.dtype, input.device, generator, probability=probability)
    made = new_tensor(native, input.dtype, input.device)
    if out is not None:
        return store("bernoulli", made, out)
    return made if input.node is None else _recorded(_bernoulli_op, input, made)


def _flipped(input: Tensor, generator: Any) -> Tensor:
    """Ones and zeros by the probabilities of each example of a vmap."""
    device, dtype = _drawn_on("bernoulli", input.device), input.dtype

    def flip(host: np.ndarray) -> np.ndarray:
        return generator.host.bernoulli(shape=host.shape, dtype=dtype, probability=host)  # type: ignore[no-any-return]

    return new_tensor(device.draw("bernoulli", flip, input.native), dtype, device)  # type: ignore[no-any-return]


@operation(samples=samples.weights)
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None, out: Any = None
) -> Tensor:
    """``num_samples`` int64 indices drawn by weight: from (categories), or from each row of (rows, categories)."""
    if type(input) is not Tensor:
        check_tensors("multinomial", input=input)
    if generator is not None and not isinstance(generator, Generator):
        raise ArgumentTypeError(
            f"multinomial: expected generator to be a torch.Generator, got {type(generator).__name__}; make one"
        )
    source = (generator or default_generator).host
    device = _drawn_on("multinomial", input.device)
    if device.array is np.ndarray and device is input.device and out is None and mode.tracer is None:
        options = {"weights": device.to_host(input.native), "replacement": replacement}
        native = device.random("multinomial", (num_samples,), dtypes.int64, source, **options)
        return new_tensor(native, dtypes.int64, device)  # type: ignore[no-any-return]

    def choose(host: np.ndarray) -> Any:
        if device.array is np.ndarray:  # it may draw faster what the generator draws
            return device.random(
                "multinomial", (num_samples,), dtypes.int64, source, weights=host, replacement=replacement
            )
        return source.multinomial(host, (num_samples,), replacement=replacement)

    native = device.draw("multinomial", choose, input.native)
    made = new_tensor(native, dtypes.int64, device)
    return made if out is None else store("multinomial", made, out)
