"""What programs call all day, on a few numbers: tensors made, read and written by index, looked at, and small layers and losses.

No row has a target: the table of ops counts how many are at or ahead of the peer, and lists those that take far longer.
"""

from __future__ import annotations

from ..harness import Row, Suite
from . import mixed

__all__ = ["ROWS", "Everyday"]

NAMES = """
import numpy as np
nn, functional, optim, distributions = torch.nn, torch.nn.functional, torch.optim, torch.distributions
torch.manual_seed(8)
a, L = np.ones((4, 4), "float32"), [1.0, 2.0, 3.0]
x, y = torch.rand(8), torch.rand(8)
m, b = torch.rand(8, 8), torch.rand(4, 3, 8, 8)
mask, mm = x > 0.5, m > 0.5
i, t, lab = torch.arange(3), torch.tensor([1, 2, 3]), torch.randint(0, 4, (8,))
r = torch.rand(8, requires_grad=True)
lin, emb, ln, drop = nn.Linear(8, 8), nn.Embedding(10, 8), nn.LayerNorm(8), nn.Dropout(0.1)
conv, bn = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(3)
gru, mha = nn.GRU(8, 8, batch_first=True), nn.MultiheadAttention(8, 2, batch_first=True)
enc, seq3 = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), torch.rand(2, 5, 8)
seq = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
opt, sgd = optim.Adam(seq.parameters()), optim.SGD(seq.parameters(), lr=0.01, momentum=0.9)
for one in seq.parameters():
    one.grad = torch.zeros_like(one)
sd, ds = seq.state_dict(), torch.utils.data.TensorDataset(m, lab)
"""
MAKING = """
torch.tensor([1.0, 2.0, 3.0])
torch.tensor(3)
torch.tensor(L)
torch.tensor(a)
torch.as_tensor(a)
torch.from_numpy(a)
torch.zeros(3)
torch.zeros(3, 4)
torch.ones(3, 4)
torch.empty(3)
torch.full((3,), 2.0)
torch.arange(10)
torch.arange(0, 1, 0.1)
torch.linspace(0, 1, 10)
torch.eye(4)
torch.randn(8)
torch.randn(3)
torch.rand(8)
torch.randint(0, 10, (5,))
torch.randperm(10)
torch.zeros_like(x)
torch.meshgrid(t, t, indexing="ij")
x.uniform_()
x.normal_()
torch.multinomial(m, 1)
x.new_zeros(3)
torch.complex(x, y)
torch.full_like(x, 2.0)
""".strip().splitlines()
INDEXING = """
x[0].item()
x[None]
x[1:4]
x[::2]
m[:, 0]
m[..., -1]
m[i]
m[:, i]
m[i, i]
x[mask]
m[mm]
x[[0, 2]]
x[torch.tensor([1])]
x[1:3] = 0
x[mask] = 0.0
x[i] = 1.0
m[:, 0] = x
m[0] = y
m[i, i] = 0.0
""".strip().splitlines()
CALLS = """
torch.stack([x, y])
torch.cat([x, y])
x.numpy()
x.tolist()
float(x[0])
len(x)
list(x)
[v for v in m]
x.shape[0]
x.size(0)
m.size()
x.dim()
x.numel()
x.detach()
x.clone()
x.cpu()
x.to("cpu")
x.to(torch.float64)
x.double()
x.long()
x.float()
x.half()
x.contiguous()
m.sum(0)
m.sum(dim=-1, keepdim=True)
m.mean(1)
m.max(1)
m.argmax(dim=1)
m.std()
m.std(0)
m.var(0)
m.norm()
m.norm(dim=1)
m.min()
m.any()
m.all()
m.prod()
x > 0
x == y
(x > 0).all()
bool((x > 0).all())
(x > 0) & (y > 0)
~mask
x**2
x / 2
2 / x
x // 0.5
x % 2
m @ x
m.T @ m
torch.einsum("ij,jk->ik", m, m)
torch.bmm(b[:, 0], b[:, 1])
m.view(-1)
m.reshape(4, 16)
m.flatten()
b.flatten(1)
m.transpose(0, 1)
b.permute(0, 2, 3, 1)
x.unsqueeze(0)
b.squeeze()
m.expand(3, 8, 8)
m.repeat(2, 2)
m.chunk(2)
m.split(3)
m.unbind()
x.masked_fill(mask, 0.0)
x.where(mask, y)
torch.where(mask, x, y)
torch.where(x > 0.5, x, 0.0)
x.clamp(0, 1)
x.clamp(min=0)
x.softmax(0)
m.softmax(-1)
m.log_softmax(1)
x.sort()
x.argsort()
x.topk(3)
x.unique()
x.cumsum(0)
x.flip(0)
m.triu()
torch.tril(m)
m.diag()
x.gather(0, i)
m.gather(1, i[:, None])
x.scatter_add_(0, i, i.float())
x.index_select(0, i)
x.nonzero()
mask.nonzero()
mask.sum()
torch.equal(x, y)
torch.allclose(x, y)
torch.isnan(x)
torch.isnan(x).any()
x.isfinite().all()
str(x)
repr(m)
x.add(y, alpha=2)
x.add_(y, alpha=0.1)
x.mul_(1.0)
x.lerp_(y, 0.0)
x.copy_(y)
x.zero_()
x.fill_(1.0)
torch.linalg.norm(m)
torch.linalg.inv(m)
torch.linalg.svd(m)
torch.linalg.solve(m, x)
torch.linalg.eigh(m @ m.T)
torch.cdist(m, m)
torch.outer(x, x)
torch.dot(x, y)
torch.broadcast_to(x, (2, 8))
x.is_contiguous()
x.stride()
x.storage_offset()
x.data_ptr()
x.element_size()
x.type(torch.float64)
x.abs().max()
x.mean().sqrt()
torch.max(x, y)
x.ne(0).long().sum()
torch.logsumexp(m, 1)
m.cumprod(1)
torch.bincount(t)
torch.histc(x, 5)
torch.searchsorted(x, y)
torch.roll(x, 1)
torch.fft.fft(x)
torch.promote_types(torch.float32, torch.int64)
torch.finfo(torch.float32).eps
torch.iinfo(torch.int64).max
(r * 2).grad_fn
""".strip().splitlines()
LAYERS = """
functional.relu(x)
functional.gelu(x)
functional.softmax(m, dim=1)
functional.cross_entropy(m[:, :4], lab)
functional.mse_loss(x, y)
functional.binary_cross_entropy_with_logits(x, y)
functional.one_hot(t)
functional.linear(m, lin.weight, lin.bias)
functional.dropout(x, 0.5)
functional.pad(x, (1, 1))
functional.normalize(m)
functional.cosine_similarity(m, m)
functional.interpolate(b, scale_factor=2)
functional.max_pool2d(b, 2)
functional.embedding(t, emb.weight)
functional.layer_norm(m, (8,))
lin(x)
lin(m)
seq(m)
emb(t)
ln(m)
drop(x)
conv(b)
bn(b)
gru(seq3)
mha(seq3, seq3, seq3)
enc(seq3)
seq(m).sum().backward()
functional.cross_entropy(seq(m), lab).backward()
(r * 2).sum().backward()
torch.autograd.grad((r * 2).sum(), r)
opt.step()
sgd.step()
sgd.zero_grad(set_to_none=False)
seq.state_dict()
seq.load_state_dict(sd)
list(seq.parameters())
list(seq.named_parameters())
torch.nn.utils.clip_grad_norm_(seq.parameters(), 1.0)
ds[0]
distributions.Normal(0.0, 1.0)
distributions.Normal(0.0, 1.0).sample()
distributions.Normal(x, 1.0).log_prob(y)
distributions.Categorical(logits=m).sample()
distributions.Categorical(logits=m).log_prob(lab)
distributions.Bernoulli(logits=x).sample()
torch.distributions.kl_divergence(distributions.Normal(0.0, 1.0), distributions.Normal(1.0, 2.0))
torch.vmap(lambda z: z * 2)(m)
torch.func.grad(lambda z: (z * z).sum())(x)
torch.utils.data.default_collate([(x, 1), (y, 2)])
""".strip().splitlines()

ROWS = [Row(f"everyday {body}", NAMES, body, group="everyday calls") for body in (*MAKING, *INDEXING, *CALLS, *LAYERS)]
ROWS += mixed.ROWS


class Everyday(Suite):
    """Seconds of ten runs of each row."""

    rows = ROWS
    count = 10
