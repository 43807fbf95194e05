"""A loss's tape as text, dot and picture."""

from __future__ import annotations

import sys

import pytest

import tensorcore as tc
from tensorcore import nn
from tensorcore.errors import ArgumentError, ArgumentTypeError, UsageError
from tensorcore.utils.drawing import make_dot, tape_graph


def loss() -> tuple[tc.Tensor, dict[str, tc.Tensor]]:
    x = tc.ones(2, 3, requires_grad=True)
    w = tc.ones(3, 4, requires_grad=True)
    return (x @ w * w.sum()).mean(), {"x": x, "w": w}


def test_text_is_a_tree_that_shows_each_box_once() -> None:
    """From the result to the leaves by their names; a leaf that is used twice is written twice."""
    made, names = loss()
    assert tape_graph(made, names).text() == (
        "result  float32 []\n"
        "└─ MeanBackward0  float32 []\n"
        "   └─ MulBackward0  float32 [2, 4]\n"
        "      ├─ MmBackward0  float32 [2, 4]\n"
        "      │  ├─ x  float32 [2, 3]\n"
        "      │  └─ w  float32 [3, 4]\n"
        "      └─ SumBackward0  float32 []\n"
        "         └─ w  float32 [3, 4]"
    )


def test_a_node_that_is_used_twice_is_one_box() -> None:
    """The second line of it is its title alone."""
    x = tc.ones(2, requires_grad=True)
    y = x.exp()
    graph = tape_graph(y * y)
    assert sum(box.title == "ExpBackward0" for box in graph.boxes) == 1
    assert graph.text().splitlines()[-1] == "   └─ ExpBackward0 ^"


def test_dot_has_a_line_for_each_box_and_arrow() -> None:
    """Quotes in names are escaped; arrows go the way of the values."""
    x = tc.ones(1, requires_grad=True)
    text = tape_graph(x.exp(), {'a "b"': x}).dot()
    assert 'label="a \\"b\\"\\nfloat32 [1]"' in text
    assert text.count(" -> ") == 2
    assert "n2 -> n1;" in text


def test_names_come_from_a_module() -> None:
    """Parameters by their paths, and what nodes keep on demand."""
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    graph = make_dot(model(tc.ones(1, 2)).sum(), model, show_saved=True)
    assert {box.title for box in graph.boxes if box.kind == "leaf"} == {"0.weight", "0.bias"}
    assert any(box.kind == "saved" for box in graph.boxes)


def test_several_results_share_a_graph() -> None:
    """Results with nodes of several outputs too."""
    x = tc.ones(4, requires_grad=True)
    first, second = x.exp().chunk(2)
    graph = tape_graph([first, second.sum()])
    assert [box.kind for box in graph.boxes[:2]] == ["result", "result"]
    assert sum(box.kind == "leaf" for box in graph.boxes) == 1


def test_pictures_are_written(tmp_path) -> None:
    """Matplotlib draws a PNG; text files need nothing."""
    pytest.importorskip("matplotlib")
    graph = tape_graph(*loss())
    assert graph.save(tmp_path / "a.png", engine="matplotlib") == "matplotlib"
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert graph.save(tmp_path / "a.dot") == "text"
    assert (tmp_path / "a.dot").read_text() == graph.source
    graph.save(tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == str(graph) + "\n"


def test_a_long_chain_is_walked() -> None:
    """No recursion: 5,000 nodes."""
    x = tc.ones(1, requires_grad=True)
    y = x
    for _ in range(5000):
        y = y + 1
    graph = tape_graph(y)
    assert (len(graph.boxes), len(graph.text().splitlines())) == (5002, 5002)
    assert graph._layout()[-1][1] == 5001


def test_what_is_missing_is_said(tmp_path, monkeypatch) -> None:
    """Graphviz asked for by name and not installed; nothing to draw with at all."""
    graph = tape_graph(*loss())
    monkeypatch.setitem(sys.modules, "graphviz", None)
    with pytest.raises(UsageError, match="Graphviz"):
        graph.save(tmp_path / "a.png", engine="graphviz")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"tensorcore\[tools\]"):
        graph.save(tmp_path / "a.png")


@pytest.mark.parametrize(
    "error, call",
    [
        (ArgumentTypeError, lambda path: tape_graph(3.0)),
        (UsageError, lambda path: tape_graph(tc.ones(1))),
        (ArgumentError, lambda path: tape_graph(*loss()).save(path / "a.bmp")),
        (ArgumentError, lambda path: tape_graph(*loss()).save(path / "a.png", engine="crayon")),
    ],
)
def test_wrong_arguments_are_refused(error, call, tmp_path) -> None:
    """What is no tensor, or not on the tape; endings and engines that nobody knows."""
    with pytest.raises(error):
        call(tmp_path)
    assert list(tmp_path.iterdir()) == []
