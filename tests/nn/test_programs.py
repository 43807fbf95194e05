"""Small programs of several kinds: from one seed their losses are PyTorch's, step by step."""

import warnings

import numpy as np
import pytest

import tensorcore as tc


def language_model(torch):
    """An LSTM with tied weights that carries its state from batch to batch, clipped and stepped by hand."""
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.3)
            self.encoder = nn.Embedding(50, 32)
            self.rnn = nn.LSTM(32, 32, 2, dropout=0.3)
            self.decoder = nn.Linear(32, 50)
            self.decoder.weight = self.encoder.weight
            nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

        def forward(self, x, state):
            made, state = self.rnn(self.drop(self.encoder(x)), state)
            return self.decoder(self.drop(made)).view(-1, 50), state

    model = Model()
    state = tuple(torch.zeros(2, 4, 32) for _ in range(2))
    for batch in np.random.default_rng(0).integers(0, 50, (6, 9, 4)):
        x = torch.tensor(batch)
        made, state = model(x[:-1], tuple(one.detach() for one in state))
        loss = nn.functional.cross_entropy(made, x[1:].reshape(-1))
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        with torch.no_grad():
            for one in model.parameters():
                one.add_(one.grad, alpha=-20)
        yield loss


def translation(torch):
    """A bidirectional GRU over packed sequences, and a cell that attends to it."""
    nn = torch.nn
    encoder, cell, table = nn.GRU(8, 16, bidirectional=True), nn.GRUCell(8, 16), nn.Embedding(20, 8, padding_idx=0)
    scores, attend, reduce = nn.Linear(16, 20), nn.Linear(48, 1), nn.Linear(32, 16)
    weights = [one for part in (encoder, cell, table, scores, attend, reduce) for one in part.parameters()]
    optimizer = torch.optim.Adam(weights, 1e-2)
    rng = np.random.default_rng(3)
    for _ in range(4):
        source, target = torch.tensor(rng.integers(1, 20, (7, 5))), torch.tensor(rng.integers(1, 20, (6, 5)))
        packed = nn.utils.rnn.pack_padded_sequence(table(source), torch.tensor([7, 6, 4, 4, 2]))
        made, last = encoder(packed)
        made, _ = nn.utils.rnn.pad_packed_sequence(made)
        state = torch.tanh(reduce(torch.cat([last[0], last[1]], 1)))
        loss = 0.0
        for step in range(5):
            both = torch.cat([made, state.unsqueeze(0).expand(made.shape[0], -1, -1)], 2)
            chosen = (torch.softmax(attend(both), 0) * made).sum(0)
            state = cell(table(target[step]), state + reduce(chosen))
            loss = loss + nn.functional.cross_entropy(scores(state), target[step + 1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def transformer(torch):
    """Encoder and decoder with dropout, a causal mask and padding; then a look without gradients."""
    nn = torch.nn
    model, table, scores = nn.Transformer(16, 4, 2, 2, 32, batch_first=True), nn.Embedding(30, 16), nn.Linear(16, 30)
    optimizer = torch.optim.AdamW([*model.parameters(), *table.parameters(), *scores.parameters()], 1e-3)
    rng = np.random.default_rng(3)
    padding = torch.tensor(np.arange(6) >= np.array([6, 5, 6, 4])[:, None])
    masks = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
    for _ in range(4):
        source, target = torch.tensor(rng.integers(1, 30, (4, 6))), torch.tensor(rng.integers(1, 30, (4, 5)))
        causal = nn.Transformer.generate_square_subsequent_mask(4)
        made = scores(model(table(source), table(target[:, :-1]), tgt_mask=causal, **masks))
        loss = nn.functional.cross_entropy(made.reshape(-1, 30), target[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss
    model.eval()
    with torch.no_grad():
        yield scores(model(table(source), table(target), **masks)).sum()


def adversaries(torch):
    """A generator and a critic of spectral norm 1, with a penalty on the critic's gradient."""
    nn = torch.nn
    bounded = nn.utils.parametrizations.spectral_norm
    make = nn.Sequential(
        nn.ConvTranspose2d(8, 16, 4, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
        nn.ConvTranspose2d(16, 1, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip
    judge = nn.Sequential(
        bounded(nn.Conv2d(1, 8, 4, 2, 1)), nn.LeakyReLU(0.2, inplace=True), bounded(nn.Conv2d(8, 1, 4)), nn.Flatten()
    )
    steps = [torch.optim.Adam(one.parameters(), 2e-3, betas=(0.5, 0.999)) for one in (make, judge)]
    rng, compare = np.random.default_rng(5), nn.BCEWithLogitsLoss()
    for _ in range(4):
        real, fake = torch.tensor(rng.standard_normal((4, 1, 8, 8)).astype("f")), make(torch.randn(4, 8, 1, 1))
        mix = torch.rand(4, 1, 1, 1)
        between = (mix * real + (1 - mix) * fake.detach()).requires_grad_()
        (slope,) = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
        loss = compare(judge(real), torch.ones(4, 1)) + compare(judge(fake.detach()), torch.zeros(4, 1))
        loss = loss + 10 * ((slope.flatten(1).norm(dim=1) - 1) ** 2).mean()
        steps[1].zero_grad()
        loss.backward()
        steps[1].step()
        yield loss
        loss = compare(judge(fake), torch.ones(4, 1))
        steps[0].zero_grad()
        loss.backward()
        steps[0].step()
        yield loss


def lazy_layers(torch):
    """Many kinds of layers whose sizes the first batch tells."""
    nn = torch.nn
    net = nn.Sequential(
        nn.LazyConv2d(6, 3, padding=1, padding_mode="reflect"), nn.GroupNorm(2, 6), nn.Hardswish(), nn.MaxPool2d(2),
        nn.Dropout2d(0.2), nn.LazyConvTranspose2d(4, 2, 2), nn.LazyBatchNorm2d(), nn.PReLU(4),
        nn.Upsample(scale_factor=0.5, mode="bilinear"), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.utils.parametrizations.weight_norm(nn.Linear(16, 8)), nn.RReLU(), nn.LazyLinear(5),
    )  # fmt: skip
    rng, optimizer = np.random.default_rng(5), None
    for _ in range(4):
        made = net(torch.tensor(rng.standard_normal((4, 3, 8, 8)).astype("f")))
        classes = torch.tensor(rng.integers(0, 5, 4))
        optimizer = optimizer or torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
        loss = nn.MultiMarginLoss()(made, classes) + nn.CrossEntropyLoss(label_smoothing=0.1)(made, classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


@pytest.mark.oracle
@pytest.mark.parametrize("program", [language_model, translation, transformer, adversaries, lazy_layers])
def test_losses_are_pytorchs(program, torch):
    """Initial numbers, random numbers, results and updates together give PyTorch's losses."""
    losses = []
    for lib in (tc, torch):
        lib.manual_seed(4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            losses.append([one.item() for one in program(lib)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
