"""Nets over text and other sequences."""

from __future__ import annotations

from typing import Any

from .common import Step, layers, trained

__all__ = ["beam_search", "cell_by_cell", "characters", "generated_text", "spiking_neurons", "vision_transformer"]


def characters(torch: Any) -> Step:
    """A language model of characters: two layers of LSTM, 50 long, batch 32."""
    nn = torch.nn
    words, recurrent, scores = (
        nn.Embedding(65, 64),
        nn.LSTM(64, 128, 2, batch_first=True, dropout=0.2),
        nn.Linear(128, 65),
    )
    text, following = torch.randint(0, 65, (2, 32, 50))
    parameters = list(nn.ModuleList([words, recurrent, scores]).parameters())

    def loss() -> Any:
        return nn.functional.cross_entropy(scores(recurrent(words(text))[0]).flatten(0, 1), following.flatten())

    return trained(torch, loss, torch.optim.RMSprop(parameters, 2e-3), clip=parameters)


def cell_by_cell(torch: Any) -> Step:
    """A GRU cell called in a Python loop over 20 times, batch 8."""
    cell, scores, times = torch.nn.GRUCell(32, 64), torch.nn.Linear(64, 10), torch.randn(20, 8, 32)

    def loss() -> Any:
        state = torch.zeros(8, 64)
        for x in times:
            state = cell(x, state)
        return scores(state).logsumexp(1).mean()

    return trained(torch, loss, torch.optim.SGD([*cell.parameters(), *scores.parameters()], 0.1))


def spiking_neurons(torch: Any) -> Step:
    """128 neurons that leak and fire over 100 times, batch 16: a slice of currents is read, and one of spikes written, at each."""
    into, scores = torch.nn.Linear(32, 128), torch.nn.Linear(128, 10)
    signals, labels = torch.randn(16, 100, 32), torch.randint(0, 10, (16,))

    def loss() -> Any:
        currents, spikes, charge = into(signals), torch.zeros(16, 100, 128), torch.zeros(16, 128)
        for i in range(100):
            charge = 0.9 * charge + currents[:, i]
            fired = ((charge - 1.0) * 5.0).sigmoid()
            spikes[:, i] = fired
            charge = charge * (1.0 - fired)
        return torch.nn.functional.cross_entropy(scores(spikes.mean(1)), labels)

    return trained(torch, loss, torch.optim.Adam([*into.parameters(), *scores.parameters()], 1e-3))


def vision_transformer(torch: Any) -> Step:
    """A transformer over 64 patches of 32x32 pictures: three layers, 96 wide, batch 16."""
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(96, 4, 192, 0.0, "gelu", batch_first=True, norm_first=True)
    patches, body = nn.Conv2d(3, 96, 4, 4), nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    scores, place, first = nn.Linear(96, 10), nn.Parameter(torch.zeros(1, 65, 96)), nn.Parameter(torch.zeros(1, 1, 96))
    pictures, labels = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))

    def loss() -> Any:
        x = patches(pictures).flatten(2).transpose(1, 2)
        x = body(torch.cat([first.expand(16, -1, -1), x], 1) + place)
        return nn.functional.cross_entropy(scores(x[:, 0]), labels, label_smoothing=0.1)

    parameters = [*nn.ModuleList([patches, body, scores]).parameters(), place, first]
    return trained(torch, loss, torch.optim.AdamW(parameters))


def generated_text(torch: Any) -> Step:
    """Sixteen words from one layer of a transformer, which keeps the keys and values of those before."""
    nn, F = torch.nn, torch.nn.functional
    words, scores, heads, joined = (
        nn.Embedding(1000, 128),
        nn.Linear(128, 1000),
        nn.Linear(128, 384),
        nn.Linear(128, 128),
    )
    norms, body = [nn.LayerNorm(128), nn.LayerNorm(128)], layers(torch, 128, 512, 128, between="GELU")

    def step() -> float:
        kept, word = None, torch.tensor([[1]])
        with torch.no_grad():
            for _ in range(16):
                x = words(word)
                query, *pair = (part.view(1, 1, 4, 32).transpose(1, 2) for part in heads(norms[0](x)).chunk(3, -1))
                kept = pair if kept is None else [torch.cat(both, 2) for both in zip(kept, pair, strict=True)]
                seen = F.scaled_dot_product_attention(query, *kept)
                x = x + joined(seen.transpose(1, 2).reshape(1, 1, 128))
                x = x + body(norms[1](x))
                word = torch.multinomial(F.softmax(scores(x)[:, -1] / 0.8, -1), 1)
        return float(word.item())

    return step


def beam_search(torch: Any) -> Step:
    """Five steps of a search with five beams over 5,000 words, batch 8."""
    likelihood = torch.log_softmax(torch.randn(8, 5, 5000), -1)

    def step() -> float:
        best, text = torch.zeros(8, 5), torch.zeros(8, 5, 0, dtype=torch.long)
        for _ in range(5):
            best, places = (best[..., None] + likelihood).view(8, -1).topk(5, 1)
            beams, words = places // 5000, places % 5000
            before = text.gather(1, beams[..., None].expand(-1, -1, text.shape[2]))
            text = torch.cat([before, words[..., None]], 2)
        return best.sum().item()

    return step
