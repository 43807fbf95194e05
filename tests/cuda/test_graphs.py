"""Graphs: captured, replayed, with memory and random numbers of their own."""

from __future__ import annotations

import pytest

import tensorcore as tc


def test_a_replay_computes_from_the_values_that_are_there() -> None:
    """Nothing runs while it is captured; each replay reads its inputs anew."""
    x, graph = tc.ones(4, device="cuda"), tc.cuda.CUDAGraph()
    with tc.cuda.graph(graph):
        assert tc.cuda.is_current_stream_capturing()
        y = (x * 3).sum()
    assert not tc.cuda.is_current_stream_capturing()
    for value in (1.0, 2.0):
        x.fill_(value)
        graph.replay()
        assert y.item() == 12 * value


def test_random_numbers_differ_between_replays() -> None:
    """Each replay draws on, and as many numbers as the capture did are used up."""
    graph = tc.cuda.CUDAGraph()
    with tc.cuda.graph(graph):
        y = tc.rand(8, device="cuda")
    tc.cuda.manual_seed(3)
    found = []
    for _ in range(2):
        graph.replay()
        found.append(y.tolist())
    after = tc.rand(8, device="cuda").tolist()
    tc.cuda.manual_seed(3)
    assert [tc.rand(8, device="cuda").tolist() for _ in range(3)] == [*found, after]


COUNTING = {"lr": 0.01, "capturable": True}


@pytest.mark.parametrize(
    "kind, options",
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adam", COUNTING), ("AdamW", {**COUNTING, "fused": True, "amsgrad": True}),
        ("NAdam", COUNTING), ("Adamax", COUNTING), ("RMSprop", COUNTING), ("Adadelta", COUNTING), ("Rprop", COUNTING),
        ("RAdam", {**COUNTING, "betas": (0.9, 0.7)}), ("ASGD", {**COUNTING, "t0": 2}),
    ],
)  # fmt: skip
def test_a_training_step(kind, options) -> None:
    """Forward, backward and the optimizer's step in one graph train as they do one by one; steps are counted in it."""

    def build():
        tc.manual_seed(0)
        model = tc.nn.Sequential(tc.nn.Linear(6, 8), tc.nn.Tanh(), tc.nn.Linear(8, 3)).cuda()
        return model, getattr(tc.optim, kind)(model.parameters(), **options)

    data = tc.randn(5, 4, 6, device="cuda")

    def step(model, optimizer, x):
        optimizer.zero_grad(set_to_none=False)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    plain, optimizer = build()
    expected = [step(plain, optimizer, x).item() for x in data]
    model, optimizer = build()
    x, graph = data[0].clone(), tc.cuda.CUDAGraph()
    side = tc.cuda.Stream()
    side.wait_stream(tc.cuda.current_stream())
    with tc.cuda.stream(side):
        found = [step(model, optimizer, x).item()]
    tc.cuda.current_stream().wait_stream(side)
    with tc.cuda.graph(graph):
        loss = step(model, optimizer, x)
    for one in data[1:]:
        x.copy_(one)
        graph.replay()
        found.append(loss.item())
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adadelta", "ASGD"])
def test_the_length_of_a_step_is_read_by_each_replay(kind) -> None:
    """A learning rate that is a tensor on the device may change between replays, and capture does not read it."""
    lr = tc.tensor(0.5, device="cuda")
    p = tc.ones(3, device="cuda", requires_grad=True)
    p.grad = tc.ones(3, device="cuda")
    optimizer = getattr(tc.optim, kind)([p], lr=lr, capturable=True)
    optimizer.step()
    graph = tc.cuda.CUDAGraph()
    with tc.cuda.graph(graph):
        optimizer.step()
    graph.replay()
    moved = p.tolist()
    lr.fill_(0.0)
    if kind == "ASGD":  # whose length is that of the step before
        graph.replay()
        moved = p.tolist()
    graph.replay()
    assert p.tolist() == moved != [1.0] * 3


def test_a_step_counted_on_the_host_is_not_captured() -> None:
    """Its replays would all be the same step: the optimizer refuses."""
    one = tc.ones(2, device="cuda", requires_grad=True)
    one.grad = tc.ones_like(one)
    optimizer = tc.optim.Adam([one])
    optimizer.step()
    with pytest.raises(RuntimeError, match="capturable is False"), tc.cuda.graph(tc.cuda.CUDAGraph()):
        optimizer.step()


def test_a_mixed_precision_step() -> None:
    """Regions, scaling, the step and the new factor go into one graph, which trains."""
    tc.manual_seed(0)
    model = tc.nn.Linear(6, 3).cuda()
    optimizer = tc.optim.Adam(model.parameters(), lr=0.01, fused=True, capturable=True)
    scaler, x = tc.amp.GradScaler("cuda", init_scale=8.0, growth_interval=2), tc.randn(4, 6, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=False)
        with tc.autocast("cuda"):
            loss = model(x).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    side = tc.cuda.Stream()
    side.wait_stream(tc.cuda.current_stream())
    with tc.cuda.stream(side):
        step()
    tc.cuda.current_stream().wait_stream(side)
    graph = tc.cuda.CUDAGraph()
    with tc.cuda.graph(graph):
        loss = step()
    found = []
    for _ in range(3):
        graph.replay()
        found.append(loss.item())
    assert found[0] > found[1] > found[2]
    assert scaler.get_scale() == 32.0


def test_a_compiled_step() -> None:
    """What ``compile`` made of a model is captured like the model."""
    tc.manual_seed(0)
    model, x = (
        tc.nn.Sequential(tc.nn.Linear(6, 8), tc.nn.GELU(), tc.nn.Linear(8, 3)).cuda(),
        tc.randn(4, 6, device="cuda"),
    )
    compiled = tc.compile(model)
    side = tc.cuda.Stream()
    side.wait_stream(tc.cuda.current_stream())
    with tc.cuda.stream(side):
        compiled(x)
    tc.cuda.current_stream().wait_stream(side)
    graph = tc.cuda.CUDAGraph()
    with tc.cuda.graph(graph):
        y = compiled(x)
    x.mul_(2)
    graph.replay()
    tc.testing.assert_close(y, model(x))


def test_graphed_callables() -> None:
    """A module that runs as graphs has the values and the gradients that it had."""
    tc.manual_seed(1)
    layer = tc.nn.Linear(4, 3).cuda()
    weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
    graphed = tc.cuda.make_graphed_callables(layer, (tc.randn(2, 4, device="cuda"),))
    for _ in range(2):
        x = tc.randn(2, 4, device="cuda")
        layer.zero_grad()
        found = graphed(x)
        tc.testing.assert_close(found, x @ weight.T + bias)
        (found * 2).sum().backward()
        tc.testing.assert_close(layer.weight.grad, 2 * x.sum(0).expand(3, 4))


@pytest.mark.standin
def test_a_look_at_values_ends_a_capture() -> None:
    """What makes the host wait cannot be captured."""
    x = tc.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match="stream is capturing"), tc.cuda.graph(tc.cuda.CUDAGraph()):
        (x + 1).sum().item()
    assert not tc.cuda.is_current_stream_capturing()


def test_an_empty_graph_is_not_replayed() -> None:
    """A graph that was not captured says so."""
    with pytest.raises(ValueError, match="replay: expected a graph that was captured"):
        tc.cuda.CUDAGraph().replay()


def test_host_memory_is_read_and_written_by_each_replay() -> None:
    """Copies from and to page-locked memory are part of a graph, and so are numbers that the host knows."""
    device, graph = tc.device("cuda"), tc.cuda.CUDAGraph()  # in use, so that memory is pinned for it
    x = tc.arange(4.0).pin_memory()
    with tc.cuda.graph(graph):
        y = (x.to(device, non_blocking=True) * tc.tensor([1.0, 2.0, 3.0, 4.0], device=device)).to(
            "cpu", non_blocking=True
        )
    for value in (1.0, 2.0):
        x.fill_(value)
        graph.replay()
        tc.cuda.synchronize()
        assert y.tolist() == [value, 2 * value, 3 * value, 4 * value]
    del y
    assert tc.ones(4).pin_memory().to("cuda").tolist() == [1, 1, 1, 1]


def test_products_are_captured() -> None:
    """One product, a batch of them, and half types, which CuPy's own functions refuse while a stream is capturing."""
    a, b = tc.randn(2, 3, 4, device="cuda"), tc.randn(2, 4, 5, device="cuda")
    graph = tc.cuda.CUDAGraph()
    with tc.cuda.graph(graph):
        found = [a[0] @ b[0], a @ b, a.half() @ b.half()]
    a.mul_(2)
    graph.replay()
    for one, expected in zip(found, [a[0] @ b[0], a @ b, a.half() @ b.half()], strict=True):
        tc.testing.assert_close(one, expected)


@pytest.mark.standin
def test_memory_that_another_stream_used_may_be_freed_in_a_capture() -> None:
    """It goes back to its own stream, which no event of the capture reaches."""
    x = tc.ones(64).pin_memory().to("cuda", non_blocking=True)
    y, graph = x + 1, tc.cuda.CUDAGraph()
    with tc.cuda.graph(graph):
        z = y * 2
        x.record_stream(tc.cuda.current_stream())
        del x
    graph.replay()
    assert z.sum().item() == 256


def test_numbers_that_the_host_draws_are_not_captured() -> None:
    """All replays would have the same: it is refused."""
    with pytest.raises(RuntimeError, match="that the host draws"), tc.cuda.graph(tc.cuda.CUDAGraph()):
        tc.randperm(5, device="cuda")
