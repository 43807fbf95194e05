"""What holds on every rank of any transport: each check runs on all ranks of an initialised world at once."""

from __future__ import annotations

import math

import tensorcore as torch
import tensorcore.distributed as dist
from tensorcore.distributed.nn import functional as flowing

R = dist.ReduceOp


def here():
    return dist.get_rank(), dist.get_world_size()


def check_all_reduce():
    """Every op gives every rank the combined values, in place."""
    r, n = here()
    wanted = {R.SUM: n * (n + 1) / 2, R.AVG: (n + 1) / 2, R.MAX: n, R.MIN: 1, R.PRODUCT: math.factorial(n)}
    for op, value in wanted.items():
        x = torch.full((2, 3), float(r + 1))
        assert dist.all_reduce(x, op) is None
        assert x.tolist() == [[value] * 3] * 2, op


def check_bitwise():
    """BAND, BOR and BXOR combine integers and bools."""
    r, n = here()
    for op, wanted in ((R.BOR, 2**n - 1), (R.BXOR, 2**n - 1), (R.BAND, 0)):
        x = torch.tensor([1 << r])
        dist.all_reduce(x, op)
        assert x.tolist() == [wanted]
    x = torch.tensor([True, r == 0])
    dist.all_reduce(x, R.BAND)
    assert x.tolist() == [True, False]


def check_bool_and_integers():
    """Sums of bools are a logical or, products a logical and; integer means round towards zero."""
    r, n = here()
    x = torch.tensor([r == 0, False])
    dist.all_reduce(x)
    assert x.tolist() == [True, False]
    x = torch.tensor([r == 0, True])
    dist.all_reduce(x, R.PRODUCT)
    assert x.tolist() == [False, True]
    x = torch.tensor([-3 * r, 2**40])
    dist.all_reduce(x, R.AVG)
    assert x.tolist() == [-(3 * n * (n - 1) // 2) // n if n % 2 else -(3 * (n - 1) // 2), 2**40]


def check_half_types():
    """Half types are added up in float32 and rounded once; their mean does not overflow on the way."""
    r, n = here()
    x = torch.full((3,), 40000.0, dtype=torch.float16)
    dist.all_reduce(x, R.AVG)
    assert x.tolist() == [40000.0] * 3
    x = torch.tensor([256.0 if r == 0 else 0.75], dtype=torch.bfloat16)
    dist.all_reduce(x)
    assert x.item() == torch.tensor(256 + 0.75 * (n - 1)).to(torch.bfloat16).item()


def check_complex():
    """Complex tensors are summed."""
    r, n = here()
    x = torch.tensor([1 + 1j * r])
    dist.all_reduce(x)
    assert x.tolist() == [n + 1j * n * (n - 1) / 2]


def check_strided_empty_and_scalar():
    """Tensors that are transposed, a slice, empty or 0-d keep their place and get the right values."""
    r, n = here()
    base = torch.arange(12.0).reshape(3, 4)
    for view in (base.t(), base[:, 1:3], base[::2]):
        before = view.clone()
        dist.all_reduce(view)
        assert (view == n * before).all()
    assert base[1, 3].item() == 7.0 * n
    dist.all_reduce(torch.zeros(0, 3))
    x = torch.tensor(float(r))
    dist.broadcast(x, n - 1)
    assert x.item() == n - 1


def check_large():
    """Messages of more than one piece arrive whole."""
    r, n = here()
    x = torch.full((3_000_001,), float(r + 1))
    dist.all_reduce(x)
    assert (x == n * (n + 1) / 2).all()
    out = torch.zeros(n * 1_500_001)
    dist.all_gather_into_tensor(out, torch.full((1_500_001,), float(r)))
    assert (out.reshape(n, -1) == torch.arange(float(n))[:, None]).all()
    x = torch.full((3_000_001,), float(r))
    dist.broadcast(x, 1)
    assert (x == 1).all()
    x = torch.full((n * 200_001,), float(r + 1))
    out = torch.zeros(200_001)
    dist.reduce_scatter_tensor(out, x)
    assert (out == n * (n + 1) / 2).all()
    assert (x == r + 1).all()
    dist.reduce_scatter_tensor(x[r * 200_001 : (r + 1) * 200_001], x, R.MAX)
    assert (x[r * 200_001 : (r + 1) * 200_001] == n).all()
    dist.all_gather_into_tensor(x, x[r * 200_001 : (r + 1) * 200_001])
    assert (x == n).all()


def check_large_of_other_dtypes():
    """Large half types, integers and bools are combined as small ones are."""
    r, n = here()
    x = torch.full((100_003,), 256.0 if r == 0 else 0.75, dtype=torch.bfloat16)
    dist.all_reduce(x)
    assert (x == torch.tensor(256 + 0.75 * (n - 1)).to(torch.bfloat16)).all()
    x = torch.arange(50_001) * (r + 1)
    dist.all_reduce(x, R.PRODUCT)
    assert x[2].item() == 2**n * math.factorial(n)
    x = torch.arange(200_001) % n == r
    dist.all_reduce(x)
    assert x.all()


def check_all_sizes():
    """Each size, whichever way its bytes go, gives the same: through a slot, out of the others' memory, or in messages."""
    r, n = here()
    for count in (1, 1000, 100_003, 262_144, 700_001):
        x = torch.arange(count, dtype=torch.float32) % 1000 + r
        wanted = torch.arange(count, dtype=torch.float32) % 1000 + (n - 1) / 2
        mean, total = x.clone(), x.clone()
        dist.all_reduce(mean, R.AVG)
        dist.all_reduce(total)
        assert torch.allclose(mean, wanted, rtol=1e-6)
        assert torch.allclose(total, n * wanted, rtol=1e-6)
        half = x.to(torch.float16)
        dist.all_reduce(half, R.AVG)
        assert torch.allclose(half.float(), wanted, rtol=1e-3)
        whole, part = torch.empty(n * count), torch.empty(count)
        dist.all_gather_into_tensor(whole, x)
        assert [whole[i * count].item() for i in range(n)] == list(range(n))
        dist.reduce_scatter_tensor(part, whole * (r + 1))
        assert torch.allclose(part, (x * (n * (n + 1) / 2)), rtol=1e-6)
        dist.broadcast(x, n - 1)
        assert torch.equal(x, torch.arange(count, dtype=torch.float32) % 1000 + n - 1)


def check_a_rank_that_runs_ahead():
    """The root of many broadcasts waits for nobody, and overwrites nothing that a slower rank still wants."""
    r, n = here()
    got = []
    for i in range(30):
        x = torch.full((50,), float(i if r == i % n else -1))
        dist.broadcast(x, i % n)
        got.append(x.sum().item())
    assert got == [50.0 * i for i in range(30)]


def check_a_message_under_way():
    """A message that nobody has waited for goes on while its sender waits for something else."""
    r, n = here()
    if n < 2:
        return
    x = torch.full((1_000_000,), 3.0)
    work = dist.isend(x, 1) if r == 0 else None
    if r == 1:
        got = torch.zeros(1_000_000)
        dist.recv(got, 0)
        assert got.sum().item() == 3e6
    dist.barrier()
    dist.all_reduce(torch.ones(1))
    if work is not None:
        work.wait()


def check_async():
    """Several may be under way; each is complete after its wait."""
    r, n = here()
    tensors = [torch.full((1000,), float(r + i)) for i in range(4)]
    works = [dist.all_reduce(one, async_op=True) for one in tensors]
    for i, (one, work) in enumerate(zip(tensors, works, strict=True)):
        assert work.wait() is True
        assert work.is_completed()
        assert one[0].item() == n * (n - 1) / 2 + n * i
    x = torch.ones(1)
    assert dist.all_reduce(x, async_op=True).get_future().then(lambda f: f.value()[0].item() + 1).wait() == n + 1


def check_mixed_waiting():
    """One rank may wait at once where another has an async call."""
    r, n = here()
    x = torch.ones(5)
    if r == 0:
        dist.all_reduce(x)
    else:
        dist.all_reduce(x, async_op=True).wait()
    assert x[0].item() == n


def check_all_gather():
    """A list by rank, of one shape or of several, and one tensor, stacked or joined."""
    r, n = here()
    out = [torch.zeros(2, 2) for _ in range(n)]
    dist.all_gather(out, torch.full((2, 2), float(r)).t())
    assert [one[1, 0].item() for one in out] == list(range(n))
    out = [torch.zeros(i + 1) for i in range(n)]
    dist.all_gather(out, torch.full((r + 1,), float(r)))
    assert [one.tolist() for one in out] == [[float(i)] * (i + 1) for i in range(n)]
    for shape in ((2 * n,), (n, 2)):
        whole = torch.zeros(shape)
        dist.all_gather_into_tensor(whole, torch.full((2,), float(r)))
        assert whole.reshape(n, 2)[:, 1].tolist() == list(range(n))


def check_reduce_scatter():
    """Rank i gets part i of the sum, from a list or from one tensor."""
    r, n = here()
    out = torch.zeros(2)
    dist.reduce_scatter(out, [torch.full((2,), float(i)) for i in range(n)])
    assert out.tolist() == [r * n] * 2
    dist.reduce_scatter_tensor(out, torch.arange(2.0 * n), R.AVG)
    assert out.tolist() == [2 * r, 2 * r + 1]
    out = torch.zeros(1, dtype=torch.int64)
    dist.reduce_scatter_tensor(out, torch.full((n,), 1 << r), R.BOR)
    assert out.item() == 2**n - 1


def check_all_to_all():
    """Rank i gets part i of every rank's input, even and uneven."""
    r, n = here()
    out = torch.zeros(n)
    dist.all_to_all_single(out, torch.arange(float(n)) + 10 * r)
    assert out.tolist() == [10 * i + r for i in range(n)]
    out = torch.zeros(n * (r + 1))
    dist.all_to_all_single(out, torch.full((n * (n + 1) // 2,), float(r)), [r + 1] * n, list(range(1, n + 1)))
    assert out.tolist() == [float(i) for i in range(n) for _ in range(r + 1)]
    outs = [torch.zeros(i + 1) for i in range(n)]
    dist.all_to_all(outs, [torch.full((r + 1,), float(r))] * n)
    assert [one.sum().item() for one in outs] == [i * (i + 1) for i in range(n)]


def check_rooted():
    """reduce, gather and scatter: one rank gives or gets, the others keep what they have."""
    r, n = here()
    x = torch.tensor([float(r)])
    dist.reduce(x, 1)
    assert x.item() == (n * (n - 1) / 2 if r == 1 else r)
    x = torch.tensor([1 << r])
    dist.reduce(x, 0, R.BOR)
    assert x.item() == (2**n - 1 if r == 0 else 1 << r)
    out = [torch.zeros(1) for _ in range(n)] if r == 1 else None
    dist.gather(torch.tensor([float(r)]), out, dst=1)
    assert r != 1 or [one.item() for one in out] == list(range(n))
    x = torch.zeros(2)
    dist.scatter(x, [torch.full((2,), 2.0 * i) for i in range(n)] if r == 0 else None)
    assert x.tolist() == [2.0 * r] * 2


def check_messages():
    """Tensors go from rank to rank, in order for one tag, whatever is sent between."""
    r, n = here()
    right, left = (r + 1) % n, (r - 1) % n
    got = [torch.zeros(2), torch.zeros(2)]
    works = [dist.isend(torch.full((2,), float(r + i)), right, tag=i) for i in (0, 1)]
    works += [dist.irecv(got[i], left, tag=i) for i in (1, 0)]
    dist.all_reduce(torch.ones(1))
    for work in works:
        work.wait()
    assert [one[0].item() for one in got] == [left, left + 1]
    x = torch.tensor([0])
    ops = [dist.P2POp(dist.isend, torch.tensor([r]), right), dist.P2POp(dist.irecv, x, left)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert x.item() == left
    if r == 0:
        dist.send(torch.ones(3, 2).t(), 1)
    elif r == 1:
        x = torch.zeros(2, 3)
        assert dist.recv(x, 0) == 0
        assert x.sum().item() == 6


def check_receiving_from_any():
    """Without a source a receive takes what comes first, says who sent it, and leaves what others have sent."""
    r, n = here()
    if r > 0:
        dist.send(torch.full((3,), float(r)), 0, tag=7)
    else:
        other = torch.zeros(3)
        seen = {}
        if n > 1:
            assert dist.recv(other, n - 1, tag=7) == n - 1
            seen[n - 1] = other.tolist()
        for _ in range(n - 2):
            x = torch.zeros(3)
            work = dist.irecv(x, tag=7)
            work.wait()
            seen[work.source_rank()] = x.tolist()
        assert seen == {i: [float(i)] * 3 for i in range(1, n)}
    dist.barrier()


def check_subgroups():
    """The world falls into groups of equal sizes, or of the ranks that are listed."""
    r, n = here()
    mine, every = dist.new_subgroups(1)
    assert (dist.get_process_group_ranks(mine), len(every)) == ([r], n)
    mine, _ = dist.new_subgroups_by_enumeration([[n - 1]])
    assert (mine is not None) == (r == n - 1)
    if n % 2 == 0:
        mine, _ = dist.new_subgroups(2)
        x = torch.full((1,), float(r))
        dist.all_reduce(x, group=mine)
        assert x.item() == 4 * (r // 2) + 1


def check_objects():
    """Any objects that pickle go where tensors go."""
    r, n = here()
    found = [None] * n
    dist.all_gather_object(found, {"rank": r, "text": "x" * 10 * r})
    assert found == [{"rank": i, "text": "x" * 10 * i} for i in range(n)]
    objects = [r, {"t": torch.tensor([r])}]
    dist.broadcast_object_list(objects, 1)
    assert objects[0] == 1
    assert objects[1]["t"].item() == 1
    out = [None]
    dist.scatter_object_list(out, [str(i) for i in range(n)] if r == 0 else None)
    assert out == [str(r)]
    found = [None] * n if r == 0 else None
    dist.gather_object((r,), found)
    assert r or found == [(i,) for i in range(n)]
    if r == 0:
        dist.send_object_list([1, "b"], 1)
    elif r == 1:
        objects = [None, None]
        assert dist.recv_object_list(objects, 0) == 0
        assert objects == [1, "b"]


def check_groups():
    """A subgroup has ranks of its own and works alone; the others have no part in it."""
    r, n = here()
    first, rest = dist.new_group([0]), dist.new_group(list(range(1, n)))
    mine = first if r == 0 else rest
    assert (first if r else rest) is dist.GroupMember.NON_GROUP_MEMBER
    assert dist.get_process_group_ranks(mine) == ([0] if r == 0 else list(range(1, n)))
    assert dist.get_rank(mine) == (0 if r == 0 else r - 1)
    assert dist.get_rank(first if r else rest) == -1
    x = torch.tensor([float(r)])
    dist.all_reduce(x, group=mine)
    assert x.item() == (0 if r == 0 else n * (n - 1) / 2)
    x = torch.tensor([float(r)])
    dist.broadcast(x, dist.get_global_rank(mine, 0), group=mine)
    assert x.item() == (0 if r == 0 else 1)
    dist.destroy_process_group(mine)


def check_barriers():
    """Barriers return on all ranks."""
    dist.barrier()
    dist.barrier(async_op=True).wait()
    dist.monitored_barrier()


def check_gradients():
    """Gradients flow through collectives as those of the sum over the ranks."""
    r, n = here()

    def grad(function, *shape):
        x = torch.full(shape or (2,), float(r + 1), requires_grad=True)
        function(x).backward()
        return x.grad.tolist()

    weight = float(r + 1)
    total = n * (n + 1) / 2
    assert grad(lambda x: (flowing.all_reduce(x) * weight).sum()) == [total] * 2
    assert grad(lambda x: (flowing.all_reduce(x, R.AVG) * weight).sum()) == [total / n] * 2
    assert grad(lambda x: (flowing.all_reduce(x, R.MAX) * weight).sum()) == [total if r == n - 1 else 0.0] * 2
    assert grad(lambda x: sum((i + 1) * one.sum() for i, one in enumerate(flowing.all_gather(x)))) == [n * weight] * 2
    assert grad(lambda x: (flowing.broadcast(x, 1) * weight).sum()) == [total if r == 1 else 0.0] * 2
    assert grad(lambda x: (flowing.reduce(x, 1) * weight).sum()) == [2.0] * 2
    assert grad(lambda x: (torch.stack(flowing.gather(x, 1)) * weight).sum()) == [2.0] * 2
    assert grad(lambda x: (flowing.scatter([x] * n, 0) * weight).sum()) == [total if r == 0 else 0.0] * 2
    assert grad(lambda x: (flowing.reduce_scatter(torch.zeros(2), [x] * n) * weight).sum()) == [total] * 2
    assert grad(lambda x: (flowing.all_to_all_single(torch.zeros(n), x) * weight).sum(), n) == [
        float(i + 1) for i in range(n)
    ]


def check_gradients_of_gradients():
    """The backward of a collective can be differentiated again."""
    _, n = here()
    x = torch.tensor([3.0], requires_grad=True)
    (g,) = torch.autograd.grad((flowing.all_reduce(x) ** 2).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert g.item() == 6 * n * n
    assert h.item() == 2 * n * n


def check_writes_are_counted():
    """Autograd finds out that a collective wrote to a tensor that it saved."""
    x = torch.ones(2, requires_grad=True)
    saved = x.detach().clone()
    w = (saved * x).sum()
    dist.all_reduce(saved)
    try:
        w.backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
    else:
        raise AssertionError("the write was not noticed")


CHECKS = {name.removeprefix("check_"): one for name, one in list(globals().items()) if name.startswith("check_")}
