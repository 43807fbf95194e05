"""Programs of subclasses, run in a process of their own: each takes the library, and says what it saw.

``python -m tests.subclass_programs tensorcore`` (or ``torch``) prints all as JSON. They are the kinds of class that PyTorch's
page on extending it describes: numbers that act as tensors, tensors with something beside them, ones that log, ones that refuse.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any


def duck(torch: Any) -> list[Any]:
    """A class that is no tensor registers what some functions do with it; all others are refused."""
    handled = {}

    class Diagonal:
        def __init__(self, size, value):
            self.size, self.value = size, value

        def tensor(self):
            return self.value * torch.eye(self.size)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in handled or not all(issubclass(one, (torch.Tensor, cls)) for one in types):
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    def handles(func):
        return lambda mine: handled.setdefault(func, mine)

    @handles(torch.mean)
    def mean(input):
        return input.value / input.size

    @handles(torch.add)
    def add(input, other):
        parts = [one.tensor() if isinstance(one, Diagonal) else one for one in (input, other)]
        return torch.add(*parts)

    five = Diagonal(5, 2.0)
    said = [
        torch.mean(five),
        torch.add(five, torch.ones(5, 5)).sum().item(),
        torch.add(torch.ones(5, 5), five)[0, 0].item(),
    ]
    try:
        torch.mul(five, 3)
    except TypeError:
        said.append("refused")
    return said


def beside(torch: Any) -> list[Any]:
    """A wrapper that takes its note from one of the arguments to the result."""

    class Noted:
        def __init__(self, data, note):
            self.held, self.note = torch.as_tensor(data), note

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            notes = [one.note for one in args if hasattr(one, "note")]
            return cls(func(*[getattr(one, "held", one) for one in args], **(kwargs or {})), notes[0])

    m = Noted([[1, 2], [1, 2]], "mine")
    t = torch.tensor([[1, 2], [1, 2]])
    made = [torch.add(t, m), torch.mul(t, m), torch.sum(m)]
    return [[one.note, one.held.tolist()] for one in made]


def dispatched(torch: Any) -> list[Any]:
    """A function of one's own that asks its arguments as PyTorch's do, by the names that PyTorch's functions use."""
    asking = import_module(f"{torch.__name__}.overrides")

    class Loud:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return [func.__name__, [one.__name__ for one in types], len(args), sorted(kwargs)]

    def doubled(x, y=None):
        if asking.has_torch_function_unary(x) or asking.has_torch_function_variadic(x, y):
            return asking.handle_torch_function(doubled, (x, y), x, y=y)
        return x * 2

    asked = [
        asking.has_torch_function((Loud(),)),
        asking.has_torch_function_unary(torch.ones(1)),
        asking.has_torch_function_variadic(1, Loud()),
    ]
    return [doubled(Loud()), doubled(1, Loud()), doubled(torch.ones(2)).tolist(), asked]


def logs(torch: Any) -> list[Any]:
    """A subclass that notes each call, and lets it go on as it would."""
    calls = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append((func.__name__, [one.__name__ for one in types]))
            return super().__torch_function__(func, types, args, kwargs)

    x = Logged([1.0, 2.0])
    y = torch.exp(x)
    z = torch.cat([torch.ones(2), y])
    q = 2 - (y + 1) * y / 3 % 2 // 1
    q[0] = -(q[1] ** 2)
    q *= (y > 0) & ~(q == 0) | (q >= 1)
    (y.detach().requires_grad_() @ q).backward()
    calls = [one for one in calls if one[0] not in ("requires_grad_", "is_inference")]
    return [calls, type(y).__name__, type(z).__name__, type(torch.nn.functional.relu(z)).__name__]


def kept(torch: Any) -> list[Any]:
    """A plain subclass is kept by functions, methods, operators, views, and in what several results are."""

    class Sub(torch.Tensor):
        pass

    class Deep(Sub):
        pass

    s, d = Sub([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(Deep)
    s.wheel = 3
    results = [
        s + 1, 1 - s, torch.ones(2, 2) + s, torch.add(s, s), s.T, s[0], s.sum(), s @ s, torch.cat([s, s]), s.view(4),
        torch.nn.functional.softmax(s, -1), torch.linalg.norm(s), s.max(0).values, s.chunk(2)[1], s.clone(), s + d, d * s,
        torch.Tensor._make_subclass(Deep, torch.ones(2)), torch.nn.Linear(2, 2)(s), s.detach(), torch.where(s > 2, s, 0.0),
    ]  # fmt: skip
    s += 1
    kinds = [type(one).__name__ for one in [*results, s]]
    return [
        kinds,
        s.wheel,
        s.tolist(),
        str(s),
        [type(s.tolist()).__name__, type(s[0, 0].item()).__name__, type(s.shape).__name__],
    ]


def graded(torch: Any) -> list[Any]:
    """Gradients pass through subclasses, by backward and by autograd.grad."""

    class Sub(torch.Tensor):
        pass

    w = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = (w.as_subclass(Sub) * Sub([3.0, 4.0])).exp().log().sum()
    loss.backward()
    (again,) = torch.autograd.grad((w.as_subclass(Sub) ** 2).sum(), w)
    return [type(loss).__name__, w.grad.tolist(), again.tolist(), w.as_subclass(Sub).is_leaf]


def refused(torch: Any) -> list[Any]:
    """Two classes that know nothing of each other end in a TypeError; switched off, they are tensors."""

    class Metre(torch.Tensor):
        pass

    class Second(torch.Tensor):
        pass

    said = []
    try:
        torch.add(Metre([1.0]), Second([1.0]))
    except TypeError:
        said.append("refused")
    with torch._C.DisableTorchFunctionSubclass():
        said.append(type(Metre([1.0]) + Second([1.0])) is torch.Tensor)

    class Off(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    return [*said, type(Off([1.0]) + 1) is torch.Tensor]


def modes(torch: Any) -> list[Any]:
    """A mode hears of every call, creations too; the inner one first, and not of its own."""
    from_overrides = import_module(f"{torch.__name__}.overrides")
    heard = []

    class Mode(from_overrides.TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            heard.append((self.name, func.__name__))
            return func(*args, **(kwargs or {}))

    with Mode("outer"), Mode("inner"):
        x = torch.ones(2)
        torch.exp(x)
        torch.nn.functional.relu(x)
    torch.exp(x)
    return heard


def own(torch: Any) -> list[Any]:
    """A function of one's own asks by the same protocol, and the questions about it are answered."""
    overrides = import_module(f"{torch.__name__}.overrides")

    class Stranger:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "asked", func.__name__

    def mine(a, b=1):
        if overrides.has_torch_function((a,)):
            return overrides.handle_torch_function(mine, (a,), a, b=b)
        return "plain"

    @overrides.wrap_torch_function(lambda a: (a,))
    def wrapped(a):
        return "plain"

    one = Stranger()
    listed = overrides.get_overridable_functions()
    return [
        mine(one), mine(torch.ones(1)), wrapped(one), wrapped(1), overrides.is_tensor_like(one), overrides.is_tensor_like(1),
        overrides.is_tensor_like(torch.ones(1)), torch.add in listed[torch], torch.Tensor.add_ in listed[torch.Tensor],
        torch.nn.functional.linear in listed[torch.nn.functional], torch.zeros in listed[torch],
        overrides.resolve_name(torch.Tensor.add_), overrides.is_tensor_method_or_property(torch.Tensor.add_),
    ]  # fmt: skip


def operators(torch: Any) -> list[Any]:
    """Where a program writes an operator, a class hears of the method that stands for it: its own table finds it."""
    heard = []
    methods = {
        getattr(torch.Tensor, name): name
        for name in ["add", "sub", "mul", "div", "remainder", "matmul", "lt", "ge", "ne", "neg", "abs", "positive",
                     "add_", "sub_", "mul_", "div_", "floor_divide_"]
    }  # fmt: skip

    class Hearing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            heard.append(methods.get(func, f"no method: {func.__name__}"))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2).as_subclass(Hearing)
    results = [x + 1, 1 + x, x - 1, 2 - x, x * 3, x / 2, 2 / x, x % 2, x @ x, x < 1, x >= 1, x != 1, -x, abs(x), +x]
    x += 1
    x -= 1
    x *= 4
    x /= 2
    x //= 2
    classes = {type(one).__name__ for one in results}
    return [list(heard), sorted(classes), [torch.Tensor.tolist(one) for one in [*results, x]]]


PROGRAMS = [duck, beside, dispatched, logs, kept, graded, refused, modes, own, operators]

if __name__ == "__main__":
    library = import_module(sys.argv[1])
    said = {}
    for program in PROGRAMS:
        try:
            said[program.__name__] = program(library)
        except Exception as error:  # one that stops is a difference like any other
            said[program.__name__] = f"{type(error).__name__}: {error}"
    print(json.dumps(said))
