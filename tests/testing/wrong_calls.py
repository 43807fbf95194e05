"""A hundred wrong calls and what each is answered with: ``python -m tests.testing.wrong_calls`` writes the golden file.

The calls are text, so that the golden file can show them. They see the tensors of ``given`` on one device.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import tensorcore as tc

__all__ = ["BY_VALUE", "CALLS", "GOLDEN", "answer", "given", "golden", "values"]

GOLDEN = Path(__file__).with_name("wrong_calls.txt")

CALLS = """
x + y
x - y
x * torch.ones(2, 2, device=device)
x / "two"
x == torch.ones(5, device=device)
x < y
x.add_(y)
x.add_(torch.ones(4, 2, 3, device=device))
i.add_(0.5)
i.div_(2)
i // 0
i % torch.zeros(2, dtype=torch.int64, device=device)
x & x
~x
i << 0.5
b - b
-b
abs("x")
torch.add(x)
torch.add(x, y, z)
torch.add(x, 1, alpha="one")
torch.mul(x, None)
torch.maximum(x, y)
torch.where(x, x, x)
torch.where(b, x, x)
torch.clamp(x)
x.pow("two")
i.pow(-1)
torch.sum(x, dim=2)
torch.sum(x, dim=(0, 0))
torch.sum(x, dim="rows")
x.mean(dim=-3)
i.mean()
x.amax(dim=5)
torch.empty(0, device=device).amax()
torch.empty(0, device=device).argmax()
torch.empty(2, 0, device=device).max(dim=1)
x.softmax(dim=2)
x.cumsum(3)
x.sort(dim=2)
x.topk(4)
x.kthvalue(9)
x.var(dim=4)
torch.logsumexp(x, 7)
torch.median(torch.ones(2, device=device), 1)
x @ x
x @ y
x.matmul(torch.tensor(1.0, device=device))
torch.mm(x, v)
torch.bmm(x, x)
torch.dot(v, y)
torch.mv(x, y)
torch.addmm(x, x, x)
torch.einsum("ij,jk->ik", x, x)
torch.einsum("ij", x, x)
torch.linalg.inv(x)
torch.linalg.cholesky(-m)
torch.linalg.solve(m, x)
torch.nn.functional.linear(x, y)
x.reshape(4, 2)
x.reshape(-1, -1)
x.view(7)
x.t().view(6)
torch.ones(2, 3, 4, device=device).t()
x.transpose(0, 2)
x.permute(0)
x.permute(0, 0)
x.squeeze(4)
x.unsqueeze(5)
x.expand(5, 3)
x.expand(3)
x.narrow(0, 1, 4)
x.select(0, 2)
x.split([1, 2])
x.chunk(0)
x.flatten(1, 0)
x.unfold(0, 3, 1)
x.as_strided((9, 9), (9, 1))
torch.cat([x, y])
torch.cat([])
torch.stack([x, m])
torch.cat([x, x], dim=2)
x[2]
x[0, 0, 0]
x[:, 3]
x[::-1]
x["a"]
x[0.5]
x[torch.tensor([5], device=device)]
x[torch.tensor([True, False, True], device=device)]
x[0] = y
x.index_select(0, v)
x.index_select(2, i)
x.gather(0, i)
x.gather(1, x)
x.scatter(0, i, x)
x.masked_fill(torch.ones(5, device=device).bool(), 0)
x.masked_select(x)
torch.take(x, v)
x.item()
bool(x)
int(y)
len(torch.tensor(1.0, device=device))
iter(torch.tensor(1.0, device=device))
x.to("no_such_device")
x.to("other:0:1")
x.to(3.5)
torch.ones(-1, device=device)
torch.ones(2.5, device=device)
torch.ones("three", device=device)
torch.tensor([[1, 2], [3]], device=device)
torch.tensor("text", device=device)
torch.arange(0, 5, 0, device=device)
torch.arange(5, 0, 1, device=device)
torch.linspace(0, 1, -1, device=device)
torch.full((2,), "x", device=device)
torch.eye(-1, device=device)
torch.zeros(2, dtype="float32", device=device)
torch.nn.functional.cross_entropy(x, torch.ones(3, dtype=torch.int64, device=device))
torch.nn.functional.cross_entropy(x, torch.tensor([0, 7], device=device))
torch.nn.functional.mse_loss(x, y, reduction="median")
torch.nn.functional.one_hot(torch.tensor([-1], device=device))
torch.nn.functional.embedding(torch.tensor([9], device=device), x)
torch.nn.functional.conv2d(x, x)
torch.nn.functional.max_pool2d(v, 2)
torch.nn.functional.dropout(x, p=1.5)
torch.nn.functional.layer_norm(x, (4,))
torch.nn.functional.batch_norm(v, None, None, training=True)
torch.nn.functional.pad(x, (1,))
torch.nn.Linear(3, 2, device=device)(y)
torch.nn.Linear(3, 2, device=device)(i)
torch.fft.fft(x, n=0)
x.requires_grad_().add_(1)
i.requires_grad_()
x.backward()
leaf.sum().backward(torch.ones(2, device=device))
(leaf * 2).backward()
torch.autograd.grad(x.sum(), x)
leaf.add_(1)
leaf[0].fill_(0)
leaf.numpy()
torch.bernoulli(x)
torch.multinomial(-v, 2)
torch.normal(x, -x - 1)
torch.randint(5, 2, (3,), device=device)
torch.randperm(-1, device=device)
x.uniform_(2, 1)
torch.bincount(x)
torch.histc(x, bins=0)
torch.searchsorted(torch.ones(2, 3, device=device), torch.ones(3, 3, device=device))
torch.quantile(x, 2.0)
torch.cross(x, y)
torch.tril(v)
torch.diag(torch.ones(2, 2, 2, device=device))
torch.cdist(x, y)
torch.optim.SGD([leaf], lr=-1.0)
torch.add(x, x, out=torch.empty(2, 3, dtype=torch.int64, device=device))
torch.nn.Linear(3, 2, device=device).load_state_dict({"weight": x})
torch.optim.SGD([leaf], lr="0.1")
torch.optim.SGD(torch.nn.Linear(3, 2), lr=0.1)
torch.optim.Adam([leaf], betas=0.9)
torch.nn.utils.clip_grad_norm_(torch.nn.Linear(3, 2), 1.0)
torch.nn.functional.pad(x, 3)
torch.nn.functional.pad(x, (1, 1), mode="zero")
torch.nn.Conv2d(3, 8)
x.sum(axes=0)
x.size("rows")
x.mul_(x, where=b)
x.cos_(x)
x.to(dtpye=torch.float64)
""".strip().splitlines()

# What is wrong with these shows in the numbers alone; a device away from the host is not waited for to look at them.
BY_VALUE = {
    "torch.nn.functional.cross_entropy(x, torch.tensor([0, 7], device=device))",
    "x[torch.tensor([5], device=device)]",
}


def given(device: Any) -> dict[str, Any]:
    """What a call sees: tensors on the device, and the library under the name that programs use."""
    tc.manual_seed(0)
    return {
        "torch": tc, "device": device,
        "x": tc.arange(6, dtype=tc.float32).reshape(2, 3).to(device), "y": tc.ones(4).to(device),
        "z": tc.zeros(2, 3).to(device), "m": tc.eye(3).to(device), "v": tc.ones(3).to(device),
        "i": tc.tensor([0, 1]).to(device), "b": tc.tensor([True, False]).to(device),
        "leaf": tc.ones(3).to(device).requires_grad_(),
    }  # fmt: skip


def answer(call: str, names: dict[str, Any]) -> str:
    """The exception's type and text, the device as ``DEVICE``; or that the call is none that is refused."""
    device = names["device"]
    try:
        if " = " in call:
            exec(call, names)
        else:
            made = eval(call, names)
            for one in made if isinstance(made, tuple) else [made]:
                if isinstance(one, tc.Tensor):
                    one.tolist()  # what a device finds out later belongs to this call
    except Exception as error:
        text = re.sub(r"expected one of '.*', got", "expected one of DEVICES, got", str(error))
        text = re.sub(r" \(written down as .*\)$", "", text)  # where a lazy call stands in the program
        text = text.replace(f"'{device}'", "'DEVICE'").replace("\n", "\\n").replace("\t", "\\t")
        return f"{type(error).__name__}: {text.rstrip()}"
    return "no error"


def values(names: dict[str, Any]) -> dict[str, Any]:
    """The tensors as plain numbers, with how often each was written to."""
    return {key: (one.tolist(), one._version) for key, one in names.items() if isinstance(one, tc.Tensor)}


def golden() -> dict[str, str]:
    """The calls of the golden file, and their answers."""
    entries = GOLDEN.read_text("utf-8").strip().split("\n\n")
    return dict(entry.split("\n    ", 1) for entry in entries)


def main() -> int:
    """Write the golden file from what the CPU answers."""
    device = tc.device("cpu")
    entries = [f"{call}\n    {answer(call, given(device))}\n" for call in CALLS]
    GOLDEN.write_text("\n".join(entries), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
