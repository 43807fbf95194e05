"""Models and optimizers of which each rank keeps a part train as one process on the joined batch does."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tensorcore as torch
import tensorcore.distributed as dist
from tensorcore import nn
from tensorcore.distributed.device_mesh import init_device_mesh
from tensorcore.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from tensorcore.distributed.optim import ZeroRedundancyOptimizer
from tensorcore.distributed.tensor import DTensor, Shard
from tensorcore.nn.functional import cross_entropy

from .test_data_parallel import load, share_of, steps_of, together
from .worlds import world

SCANS = load(240)


class Digits(nn.Module):
    """A small convolutional net in three parts, one of which has a tied weight and one a layer that nobody uses."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.second = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten())
        self.last = nn.Linear(16 * 16, 10)
        self.never = nn.Linear(3, 3)

    def forward(self, x):
        return self.last(self.second(self.first(x)))


class GPT(nn.Module):
    """Two blocks of a transformer with the embedding as the last layer, too."""

    def __init__(self, words: int = 17, wide: int = 12, heads: int = 3) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(words, wide), nn.Embedding(8, wide)
        self.blocks = nn.ModuleList(
            [
                nn.TransformerEncoderLayer(wide, heads, 2 * wide, 0.0, "gelu", batch_first=True, norm_first=True)
                for _ in "ab"
            ]
        )
        self.norm, self.head = nn.LayerNorm(wide), nn.Linear(wide, words, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.table(tokens) + self.places(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        for one in self.blocks:
            x = one(x, src_mask=mask, is_causal=True)
        return self.head(self.norm(x))


def digits(model, batch, mine, weight):
    scores = model(torch.tensor(SCANS.x[mine]))
    return cross_entropy(scores, torch.tensor(SCANS.y[mine]), reduction="sum") / len(batch) * weight


WORDS = np.random.default_rng(0).integers(0, 17, (40, 9))


def words(model, batch, mine, weight):
    tokens = torch.tensor(WORDS[mine % 40])
    scores = model(tokens[:, :-1])
    return cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten(), reduction="sum") / (len(batch) * 8) * weight


KINDS = {"digits": (Digits, digits), "gpt": (GPT, words)}


def train(model, optimizer, loss_of, rank: int, size: int, steps: int = 6, clip: float | None = None) -> list[float]:
    """Each step's loss, as far as this rank's uneven part of the batch makes it."""
    losses = []
    for batch in steps_of(SCANS, 24, steps):
        optimizer.zero_grad()
        loss = loss_of(model, batch, share_of(batch, rank, size), size)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_([one for one in model.parameters() if one.grad is not None], clip)
        optimizer.step()
        losses.append(loss.item() / size)
    return losses


def fresh(kind: str):
    torch.manual_seed(5)
    return KINDS[kind][0]()


OPTIMIZERS = {
    "sgd": lambda params: torch.optim.SGD(params, lr=0.3, momentum=0.9),
    "adamw": lambda params: torch.optim.AdamW(params, lr=0.01),
    "rmsprop": lambda params: torch.optim.RMSprop(params, lr=0.003),
}


@pytest.fixture(scope="module")
def alone():
    """The losses of one process on whole batches."""
    return {
        (kind, name): train(model := fresh(kind), make(model.parameters()), KINDS[kind][1], 0, 1)
        for kind in KINDS
        for name, make in OPTIMIZERS.items()
    }


def copy_of(kind: str, state):
    model = KINDS[kind][0]()
    model.load_state_dict(state)
    return model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(("name", "keep"), [("sgd", None), ("adamw", False), ("rmsprop", None)])
def test_the_losses_are_those_of_one_process(alone, kind, size, name, keep) -> None:
    """ZeRO 3 and ZeRO 2 give the single process's losses to 1e-5, with tied and unused parameters and uneven parts."""
    state = fresh(kind).state_dict()

    def act():
        model = copy_of(kind, state)
        for one in model.children() if kind == "digits" else model.blocks:
            fully_shard(one, reshard_after_forward=keep)
        fully_shard(model, reshard_after_forward=keep)
        return together(train(model, OPTIMIZERS[name](model.parameters()), KINDS[kind][1], dist.get_rank(), size))

    for losses in world(size, act):
        np.testing.assert_allclose(losses, alone[kind, name], atol=1e-5)


def test_each_rank_keeps_a_part() -> None:
    """Parameters, gradients and optimizer state are parts; what is whole is gone after forward and after backward."""
    state = fresh("gpt").state_dict()

    def held(module) -> int:
        """Elements of the whole parameters that there is memory for."""
        return sum(slot.whole.numel() for slot in module._unit.slots if 0 not in slot.whole.stride())

    def act():
        model = copy_of("gpt", state)
        for one in model.blocks:
            fully_shard(one)
        fully_shard(model)
        assert isinstance(model.blocks[0], FSDPModule)
        assert isinstance(model, GPT)
        optimizer = OPTIMIZERS["adamw"](model.parameters())
        after = words(model, np.arange(4), np.arange(4), 1)
        forward = [held(one) for one in (*model.blocks, model)]
        after.backward()
        optimizer.step()
        backward = [held(one) for one in (*model.blocks, model)]
        weight = model.blocks[1].linear1.weight
        kept = [weight, weight.grad, optimizer.state[weight]["exp_avg"]]
        assert all(isinstance(one, DTensor) and one.placements == (Shard(0),) for one in kept)
        assert all(one.to_local().shape == (12, 12) and one.shape == (24, 12) for one in kept)
        assert model.head.weight is model.table.weight
        return forward, backward

    for forward, backward in world(2, act):
        assert forward[:2] == [0, 0]
        assert forward[2] > 0
        assert backward == [0, 0, 0]


def test_accumulation_and_clipping(alone) -> None:
    """Gradients that add up before they are sent, and the norm over all parts, are one process's."""
    state = fresh("digits").state_dict()
    model = fresh("digits")
    wanted = train(model, OPTIMIZERS["sgd"](model.parameters()), digits, 0, 1, clip=0.5)

    def act():
        model = copy_of("digits", state)
        fully_shard(model.second)
        fully_shard(model)
        optimizer = OPTIMIZERS["sgd"](model.parameters())
        losses = []
        for batch in steps_of(SCANS, 24, 6):
            optimizer.zero_grad()
            mine, total = share_of(batch, dist.get_rank(), 2), 0.0
            for turn, part in enumerate(np.array_split(mine, 2)):
                model.set_requires_gradient_sync(turn == 1)
                loss = digits(model, batch, part, 2)
                loss.backward()
                total += loss.item() / 2
            nn.utils.clip_grad_norm_([one for one in model.parameters() if one.grad is not None], 0.5)
            optimizer.step()
            losses.append(total)
        return together(losses)

    for losses in world(2, act):
        np.testing.assert_allclose(losses, wanted, atol=1e-5)


def test_mixed_precision() -> None:
    """Parameters come together as bfloat16 and are kept as float32; gradients are averaged in float32."""

    def act():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
        policy = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=torch.float32
        )
        fully_shard(model, mp_policy=policy)
        seen = []
        model[0].register_forward_hook(lambda layer, inputs, made: seen.append((inputs[0].dtype, made.dtype)))
        made = model(torch.ones(3, 4))
        made.sum().backward()
        assert seen == [(torch.bfloat16, torch.bfloat16)]
        return made.dtype, model[0].weight.dtype, model[0].weight.grad.dtype

    assert world(2, act) == [(torch.float32,) * 3] * 2


def test_what_cannot_be_sharded() -> None:
    """Scalars, meshes of two dims and modules that are sharded already are refused."""

    def act():
        layer = nn.Module()
        layer.scale = nn.Parameter(torch.tensor(1.0))
        with pytest.raises(ValueError, match=r"doesn't support scalar parameters. Change scale to a 1D tensor"):
            fully_shard(layer)
        with pytest.raises(ValueError, match="expected a mesh of one dim, got 2"):
            fully_shard(nn.Linear(1, 1), mesh=init_device_mesh("cpu", (1, 2)))
        with pytest.raises(ValueError, match="expected a module that is not sharded"):
            fully_shard(fully_shard(nn.Linear(1, 1)))

    world(2, act)


def test_evaluation_and_hand_over() -> None:
    """Without recording the whole goes at once; ``unshard`` brings it together for who wants to look."""

    def act():
        torch.manual_seed(0)
        model = nn.Linear(3, 5)
        wanted = model(torch.ones(1, 3)).tolist()
        fully_shard(model)
        with torch.no_grad():
            assert model(torch.ones(1, 3)).tolist() == wanted
        assert isinstance(model.weight, DTensor)
        model.unshard()
        shape = tuple(model.weight.shape), isinstance(model.weight, DTensor)
        model.reshard()
        return shape, model.weight.to_local().shape[0]

    assert world(2, act) == [(((5, 3), False), 3), (((5, 3), False), 2)]


def test_parts_in_host_memory() -> None:
    """Offloading to the host changes nothing for a mesh over it, and is refused for another one."""

    def act():
        torch.manual_seed(0)
        model, wanted = nn.Linear(3, 4), []
        for policy in (OffloadPolicy(), CPUOffloadPolicy(pin_memory=False)):
            made = fully_shard(copy.deepcopy(model), offload_policy=policy)
            wanted.append(made(torch.ones(1, 3)).tolist())
        elsewhere = init_device_mesh("sim", (2,))
        with pytest.raises(ValueError, match="expected a mesh over the host for CPUOffloadPolicy"):
            fully_shard(nn.Linear(1, 1), mesh=elsewhere, offload_policy=CPUOffloadPolicy())
        assert wanted[0] == wanted[1] == model(torch.ones(1, 3)).tolist()

    world(2, act)


def test_zero_redundancy(alone) -> None:
    """Each rank keeps the state of some parameters; losses are one process's, and a state brought together goes on."""
    state = fresh("gpt").state_dict()

    def act():
        model = nn.parallel.DistributedDataParallel(copy_of("gpt", state))
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.01)
        losses = train(model, optimizer, words, dist.get_rank(), 2, steps=3)
        kept = len(optimizer.state)
        with pytest.raises(RuntimeError, match="Optimizer state has not been consolidated on this rank"):
            optimizer.state_dict()
        optimizer.consolidate_state_dict(1)
        given = [optimizer.state_dict() if dist.get_rank() == 1 else None]
        dist.broadcast_object_list(given, 1)
        again = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.5)
        again.load_state_dict(given[0])
        assert len(given[0]["state"]) == len(list(model.parameters()))
        rest = []
        for batch in steps_of(SCANS, 24, 6)[3:]:
            again.zero_grad()
            loss = words(model, batch, share_of(batch, dist.get_rank(), 2), 2)
            loss.backward()
            again.step()
            rest.append(loss.item() / 2)
        return together(losses + rest), kept

    found = world(2, act)
    for losses, kept in found:
        np.testing.assert_allclose(losses, alone["gpt", "adamw"], atol=1e-5)
        assert 0 < kept < len(state)
    assert sum(kept for _, kept in found) == len(list(fresh("gpt").parameters()))
