"""Tensors on a mesh: every op gives what it gives on one process, however its operands lie."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest

import tensorcore as torch
import tensorcore.distributed as dist
from tensorcore import nn
from tensorcore.distributed.device_mesh import DeviceMesh, init_device_mesh
from tensorcore.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    zeros,
)
from tensorcore.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from .worlds import world

F = nn.functional
rng = np.random.default_rng(8)
X, Y = rng.standard_normal((2, 6, 4)).astype(np.float32), rng.standard_normal((2, 4, 6)).astype(np.float32)
AT = np.array([[0, 3, 2, 1, 4, 5], [5, 1, 0, 2, 2, 0]])
OPS = {
    "add": lambda x, y: x + y.transpose(1, 2),
    "broadcast": lambda x, y: x * y[:1, :1].transpose(1, 2)[:, :, :1] + 2.0,
    "tanh": lambda x, y: torch.tanh(x),
    "where": lambda x, y: torch.where(x > 0, x, y.mT),
    "sum": lambda x, y: x.sum(),
    "sum of a dim": lambda x, y: x.sum(1) * 2,
    "mean": lambda x, y: x.mean((0, 2), keepdim=True),
    "mean of all": lambda x, y: x.mean(),
    "amax": lambda x, y: x.amax(1) + x.amin(1),
    "var": lambda x, y: x.var(-1),
    "norm": lambda x, y: x.norm(),
    "matmul": lambda x, y: x @ y,
    "vectors": lambda x, y: x[0, 0] @ y[0, :, 0] + (x @ y[0, :, 0]).sum(),
    "linear": lambda x, y: F.linear(x, y[0].T, y[1, 0]),
    "view": lambda x, y: (x.reshape(12, 4) * 2).view(2, 3, 8).flatten(),
    "heads": lambda x, y: x.view(2, 6, 2, 2).transpose(1, 2).softmax(-1),
    "permute": lambda x, y: x.permute(2, 0, 1).unsqueeze(1).expand(4, 3, 2, 6),
    "index": lambda x, y: x[:, 1:4] + x[1, 2, 3],
    "cat": lambda x, y: torch.cat([x, y.mT], 1) + torch.stack([x, x], 1).sum(1).sum(1, keepdim=True),
    "softmax": lambda x, y: F.softmax(x, 1) * F.log_softmax(x, -1),
    "gelu": lambda x, y: F.gelu(x) + F.silu(x),
    "layer norm": lambda x, y: F.layer_norm(x, (4,), y[0, :, 0], y[0, :, 1]),
    "cross entropy": lambda x, y: F.cross_entropy(x.flatten(0, 1), torch.arange(12, device=x.device) % 4),
    "attention": lambda x, y: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "sort": lambda x, y: x.sort(-1).values.cumsum(1),
    "gather": lambda x, y: x.gather(1, torch.tensor(AT, device=x.device)[:, :, None].expand(2, 6, 4)),
    "embedding": lambda x, y: F.embedding(torch.tensor(AT, device=x.device), x[0]),
    "conv": lambda x, y: F.conv1d(F.max_pool1d(x, 2), torch.ones(3, 6, 2, device=x.device)),
}  # fmt: skip
PLACES = [Replicate(), Shard(0), Shard(1), Shard(2)]


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("size", [2, 3])
def test_every_op_on_a_mesh(name, size) -> None:
    """Values and gradients are those without a mesh, for all ways of the operands to lie, even and uneven."""
    op = OPS[name]
    x, y = torch.tensor(X, requires_grad=True), torch.tensor(Y, requires_grad=True)
    wanted = op(x, y)
    weight = torch.linspace(0.5, 1.5, wanted.numel()).reshape(wanted.shape)
    (wanted * weight).sum().backward()
    expected = [wanted.numpy(force=True), *(None if one.grad is None else one.grad.numpy() for one in (x, y))]

    def act():
        mesh = init_device_mesh("cpu", (size,))
        for where in itertools.product(PLACES, PLACES[::3]):
            a, b = (
                distribute_tensor(torch.tensor(one), mesh, [place]).requires_grad_()
                for one, place in zip((X, Y), where, strict=True)
            )
            made = op(a, b)
            assert isinstance(made, DTensor)
            (made * distribute_tensor(weight, mesh, [Replicate()])).sum().backward()
            found = [
                made.full_tensor().detach(),
                *(None if one.grad is None else one.grad.full_tensor() for one in (a, b)),
            ]
            for one, other in zip(found, expected, strict=True):
                assert (one is None) == (other is None)
                if one is not None:
                    np.testing.assert_allclose(one.numpy(), other, atol=2e-5, err_msg=str(where))

    world(size, act)


def test_what_is_sent_follows_the_shards() -> None:
    """Batches stay shared out through a network, inner dims become sums, and nothing is gathered on the way."""

    def act():
        mesh = init_device_mesh("cpu", (2,))
        x = zeros(4, 8, device_mesh=mesh, placements=[Shard(0)])
        w, v = (
            zeros(*shape, device_mesh=mesh, placements=[p]) for shape, p in (((8, 6), Shard(1)), ((6, 8), Shard(0)))
        )
        r = x.redistribute(placements=[Replicate()])
        columns = torch.relu(r @ w)
        return [
            one.placements[0] for one in (torch.relu(x @ r.T), columns, columns @ v, x.sum(0), x.view(2, 2, 8), x.T)
        ]

    assert world(2, act) == [[Shard(0), Shard(1), Partial(), Partial(), Shard(0), Shard(1)]] * 2


@pytest.mark.parametrize("have", [Replicate(), Shard(0), Shard(1), Partial()])
@pytest.mark.parametrize("want", [Replicate(), Shard(0), Shard(1)])
def test_redistribute(have, want) -> None:
    """The whole stays the same, and so does its gradient, which comes back as the tensor lay."""

    def act():
        mesh = init_device_mesh("cpu", (3,))
        whole = torch.arange(35.0).reshape(7, 5)
        start = (
            (
                DTensor.from_local(whole * (dist.get_rank() + 1), mesh, [have])
                if have.is_partial()
                else distribute_tensor(whole, mesh, [have])
            )
            .detach()
            .requires_grad_()
        )
        made = start.redistribute(mesh, [want])
        assert made.placements == (want,)
        assert made.full_tensor().tolist() == (whole * (6 if have.is_partial() else 1)).tolist()
        made.sum().backward()
        assert start.grad.full_tensor().tolist() == [[1.0] * 5] * 7

    world(3, act)


def test_several_dims_of_a_mesh() -> None:
    """A tensor may be shared out twice, along one of its dims or two, and taken apart in any order."""

    def act():
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        whole = torch.arange(40.0).reshape(10, 4)
        seen = []
        for where in itertools.product([Replicate(), Shard(0), Shard(1)], repeat=2):
            x = distribute_tensor(whole, mesh, where)
            for after in itertools.product([Replicate(), Shard(0), Shard(1)], repeat=2):
                assert x.redistribute(mesh, after).full_tensor().tolist() == whole.tolist(), (where, after)
            seen.append(tuple(x.to_local().shape))
        y = distribute_tensor(whole, mesh, [Shard(0), Replicate()]) @ distribute_tensor(
            whole.T, mesh, [Replicate(), Shard(1)]
        )
        assert y.placements == (Shard(0), Shard(1))
        assert y.full_tensor().tolist() == (whole @ whole.T).tolist()
        return seen[0], seen[4], seen[5], mesh["tp"].size(), mesh["dp"].get_local_rank(), mesh.get_coordinate()

    found = world(4, act)
    assert found[0] == ((10, 4), (3, 4), (5, 2), 2, 0, [0, 0])
    assert found[3] == ((10, 4), (2, 4), (5, 2), 2, 1, [1, 1])


def test_in_place_and_views() -> None:
    """Writes reach the parts; one to a view that could only be a copy raises instead of being lost."""

    def act():
        mesh = init_device_mesh("cpu", (2,))
        x = zeros(4, 3, device_mesh=mesh, placements=[Shard(0)])
        x += 1
        x.T.mul_(torch.tensor(3.0))
        x[:, 1].copy_(zeros(4, device_mesh=mesh))
        assert x.full_tensor().tolist() == [[3.0, 0.0, 3.0]] * 4
        assert x.placements == (Shard(0),)
        with pytest.raises(
            RuntimeError, match=r"expected memory that is shared with the tensor it is a view of, got a copy"
        ):
            x[1].fill_(7.0)
        with pytest.raises(RuntimeError, match=r"got mixed torch[.]Tensor and DTensor: one of shape"):
            x + torch.ones(4, 3)
        return repr(x)

    assert world(2, act)[1] == (
        "DTensor(local_tensor=tensor([[3., 0., 3.],\n        [3., 0., 3.]]), device_mesh=DeviceMesh('cpu', [0, 1]), "
        "placements=(Shard(dim=0),))"
    )


def test_from_and_to_local() -> None:
    """Gradients come back to the parts; uneven parts need the shape of the whole."""

    def act():
        rank, mesh = dist.get_rank(), init_device_mesh("cpu", (2,))
        part = torch.full((2 - rank, 2), float(rank + 1), requires_grad=True)
        x = DTensor.from_local(part, mesh, [Shard(0)], shape=(3, 2), stride=(2, 1))
        (x.sum() * 3).full_tensor().backward()
        assert part.grad.tolist() == [[3.0, 3.0]] * (2 - rank)
        with pytest.raises(ValueError, match=r"expected a part of shape \[2, 2\] of a whole of shape \[4, 2\]"):
            DTensor.from_local(torch.ones(1, 2), mesh, [Shard(0)], shape=(4, 2))
        assert not hasattr(torch.ones(1), "placements")
        assert not isinstance(part, DTensor)
        checked = DTensor.from_local(torch.tensor([float(rank)]), mesh, [Replicate()], run_check=True)
        return checked.to_local().item()

    assert world(2, act) == [0.0, 0.0]


def test_meshes() -> None:
    """Meshes name their dims and check their shape."""

    def act():
        mesh = DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("a", "b"))
        assert mesh == init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        assert dist.get_process_group_ranks(mesh.get_group("a")) == [dist.get_rank() % 2, dist.get_rank() % 2 + 2]
        assert (mesh.size(), mesh.size(0), mesh.shape, mesh.ndim, mesh.mesh.tolist()) == (
            4,
            2,
            (2, 2),
            2,
            [[0, 1], [2, 3]],
        )
        with pytest.raises(KeyError, match="Invalid mesh_dim_name 'c' specified"):
            mesh["c"]
        with pytest.raises(ValueError, match="expected a mesh of at most 4 ranks"):
            init_device_mesh("cpu", (5,))

    world(4, act)


class Block(nn.Module):
    """A block of a transformer, with heads that fit the size of its projections."""

    def __init__(self, wide: int = 8, head: int = 4) -> None:
        super().__init__()
        self.table = nn.Embedding(10, wide)
        self.norm = nn.LayerNorm(wide)
        self.q, self.k, self.v = (nn.Linear(wide, wide) for _ in range(3))
        self.out = nn.Linear(wide, wide)
        self.up, self.down = nn.Linear(wide, 16), nn.Linear(16, wide)
        self.head = head

    def forward(self, tokens):
        x = self.table(tokens)
        h = self.norm(x)
        q, k, v = (one(h).unflatten(-1, (-1, self.head)).transpose(1, 2) for one in (self.q, self.k, self.v))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(x)))


PLAN = {
    "table": RowwiseParallel(),
    **dict.fromkeys("qkv", ColwiseParallel()),
    "out": RowwiseParallel(),
    "up": ColwiseParallel(),
    "down": RowwiseParallel(),
}  # fmt: skip
TOKENS = np.random.default_rng(0).integers(0, 10, (3, 5))


def losses(model, steps: int = 6) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(torch.tensor(TOKENS)) ** 2).mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def made() -> Block:
    torch.manual_seed(3)
    return Block()


def test_tensor_parallel_training() -> None:
    """A block whose attention and MLP are shared out by columns and rows trains as one process does, to 1e-5."""
    start = made()
    state = {name: one.clone() for name, one in start.state_dict().items()}
    wanted = losses(start)

    def act():
        model = Block()
        model.load_state_dict(state)
        mesh = init_device_mesh("cpu", (2,))
        parallelize_module(model, mesh, PLAN)
        assert model.q.weight.to_local().shape == (4, 8)
        assert model.table.weight.to_local().shape == (5, 8)
        return losses(model)

    for found in world(2, act):
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert wanted[-1] < wanted[0]


def test_styles_around_modules() -> None:
    """Inputs and outputs are turned as a plan says; names may have a star; what fits nothing is refused."""

    def act():
        mesh = init_device_mesh("cpu", (2,))
        torch.manual_seed(0)
        layers = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4, bias=False))
        nn.init.eye_(layers[1].weight)
        parallelize_module(layers[0], mesh, SequenceParallel())
        parallelize_module(layers, mesh, PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()))
        parallelize_module(layers, mesh, {"1": ColwiseParallel(input_layouts=Shard(1), use_local_output=False)})
        parallelize_module(
            layers, mesh, PrepareModuleOutput(output_layouts=Shard(-1), desired_output_layouts=Replicate())
        )
        made = layers(torch.arange(8.0).reshape(1, 2, 4))
        assert made.shape == (1, 4, 4)
        np.testing.assert_allclose(made.mean(-1).detach().numpy(), np.zeros((1, 4)), atol=1e-6)
        with pytest.raises(ValueError, match="got 'nothing', which none has"):
            parallelize_module(layers, mesh, {"nothing": ColwiseParallel()})
        with pytest.raises(TypeError, match=r"currently only support nn[.]Linear and nn[.]Embedding! got LayerNorm"):
            parallelize_module(layers, mesh, {"0": ColwiseParallel()})

    world(2, act)


def test_distribute_module() -> None:
    """Parameters that the partition function leaves are whole; inputs and outputs pass the given functions."""

    def act():
        mesh = init_device_mesh("cpu", (2,))

        def partition(name, module, mesh):
            if isinstance(module, nn.Linear):
                module.register_parameter("weight", nn.Parameter(distribute_tensor(module.weight, mesh, [Shard(0)])))

        model = distribute_module(
            nn.Linear(2, 4), mesh, partition, lambda layer, inputs, mesh: (distribute_tensor(inputs[0], mesh),),
            lambda layer, made, mesh: made.full_tensor(),
        )  # fmt: skip
        assert model.weight.placements == (Shard(0),)
        assert model.bias.placements == (Replicate(),)
        return tuple(model(torch.ones(3, 2)).shape)

    assert world(2, act) == [(3, 4)] * 2


def test_where_a_part_lies() -> None:
    """Shape and offset of this rank's part follow the placements, dim by dim of the mesh."""
    find = importlib.import_module("tensorcore.distributed.tensor._utils").compute_local_shape_and_global_offset

    def act():
        mesh = init_device_mesh("cpu", (2, 2))
        assert find((5,), mesh, [Replicate(), Replicate()], skip_offset=True) == ((5,), ())
        return find((2, 5), mesh, [Shard(1), Shard(1)])

    assert world(4, act) == [((2, 2), (0, 0)), ((2, 1), (0, 2)), ((2, 1), (0, 3)), ((2, 1), (0, 4))]


def test_parts_for_each_rank_as_a_function() -> None:
    """``all_to_all_single`` of the functional collectives gives a new tensor, whose gradient goes the way back."""
    swap = importlib.import_module("tensorcore.distributed._functional_collectives").all_to_all_single_autograd

    def act():
        rank = dist.get_rank()
        mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("all",))
        x = (torch.arange(3.0) + 10 * rank).requires_grad_()
        made = swap(x, [1, 1] if rank == 0 else [2, 2], [1, 2], mesh)
        (made * (rank + 1)).sum().backward()
        assert swap(torch.arange(2.0), None, None, (mesh, "all")).tolist() == [float(rank)] * 2
        return made.tolist(), x.grad.tolist()

    assert world(2, act) == [([0.0, 10.0], [1.0, 2.0, 2.0]), ([1.0, 2.0, 11.0, 12.0], [1.0, 2.0, 2.0])]
