"""Boxes with arrows between them, as text, as the source that Graphviz draws, or as a picture."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from tensorcore.errors import ArgumentError, UsageError

__all__ = ["Box", "Drawing"]

_COLOURS = {"result": "#b7d7a8", "op": "#e6e6e6", "leaf": "#a4c8e8", "saved": "#f4d9a6"}


class Box(NamedTuple):
    """One thing in the drawing.

    Attributes:
        kind: ``result`` (a tensor that was given), ``op`` (what was done), ``leaf`` (a tensor that it all starts from) or
            ``saved`` (a tensor that is kept for later).
        title: the name of what was done, or of the tensor.
        detail: the shape and dtype.
    """

    kind: str
    title: str
    detail: str

    @property
    def text(self) -> str:
        """Title and detail on two lines."""
        return f"{self.title}\n{self.detail}" if self.detail else self.title


class Drawing:
    """Boxes and the arrows between them, in the direction that the values went.

    Attributes:
        boxes: the results first, then what they came from.
        arrows: pairs of positions in ``boxes``: from, to.
    """

    def __init__(self, boxes: list[Box], arrows: list[tuple[int, int]]) -> None:
        self.boxes, self.arrows = boxes, arrows

    def text(self) -> str:
        """A tree of lines, the results at the left; what was shown before is shown as its title alone."""
        parents: dict[int, list[int]] = {}
        for source, target in self.arrows:
            parents.setdefault(target, []).append(source)
        lines: list[str] = []
        shown: set[int] = set()
        stack = [(i, "", "") for i in reversed(range(len(self.boxes))) if self.boxes[i].kind == "result"]
        while stack:
            at, lead, indent = stack.pop()
            box = self.boxes[at]
            again = at in shown and bool(parents.get(at))
            lines.append(
                lead + box.title + (f"  {box.detail}" if box.detail and not again else "") + (" ^" if again else "")
            )
            if again:
                continue
            shown.add(at)
            below = parents.get(at, [])
            for place, one in reversed(list(enumerate(below))):
                last = place == len(below) - 1
                stack.append((one, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  ")))
        return "\n".join(lines)

    __str__ = text

    def dot(self) -> str:
        """The source that Graphviz draws."""
        lines = ["digraph {", '  node [shape=box, style="filled,rounded", fontname=Helvetica, fontsize=10];']
        for i, box in enumerate(self.boxes):
            label = box.text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            lines.append(f'  n{i} [label="{label}", fillcolor="{_COLOURS[box.kind]}"];')
        lines += [f"  n{source} -> n{target};" for source, target in self.arrows]
        return "\n".join([*lines, "}\n"])

    source = property(dot)

    def save(self, path: Any, *, engine: str | None = None) -> str:
        """Write a file: the source where it ends in ``.dot`` or ``.gv``, text for ``.txt``, else a picture.

        Args:
            engine: ``graphviz`` (its Python package and its program) or ``matplotlib``; whichever there is where None.

        Returns:
            What it was drawn with. Raises UsageError where that is not installed.
        """
        path = os.fspath(path)
        ending = os.path.splitext(path)[1].lower()
        if engine not in (None, "graphviz", "matplotlib"):
            raise ArgumentError(f"save: expected engine 'graphviz' or 'matplotlib', got {engine!r}; leave it out")
        if ending in (".dot", ".gv", ".txt"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.text() + "\n" if ending == ".txt" else self.dot())
            return "text"
        if ending not in (".png", ".svg", ".pdf"):
            raise ArgumentError(f"save: expected a path in .png, .svg, .pdf, .dot, .gv or .txt, got {path!r}; name one")
        if engine != "matplotlib" and self._with_graphviz(path, ending[1:], engine == "graphviz"):
            return "graphviz"
        self._with_matplotlib(path)
        return "matplotlib"

    def render(self, filename: str, format: str = "png", **options: Any) -> str:
        """Draw into ``{filename}.{format}``, as programs that use Graphviz's objects ask for it; the path."""
        path = f"{filename}.{format}"
        self.save(path)
        return path

    def _repr_svg_(self) -> str | None:
        try:
            import graphviz

            return str(graphviz.Source(self.dot()).pipe("svg").decode())
        except Exception:  # no package, no program: the notebook shows the text
            return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.boxes)} boxes, {len(self.arrows)} arrows)"

    def _with_graphviz(self, path: str, kind: str, asked: bool) -> bool:
        try:
            import graphviz

            data = graphviz.Source(self.dot()).pipe(kind)
        except ImportError as error:
            reason: Exception = error
        except graphviz.ExecutableNotFound as error:
            reason = error
        else:
            with open(path, "wb") as file:
                file.write(data)
            return True
        if asked:
            raise UsageError(
                f"save: expected Graphviz to draw with, got: {reason}; install tensorcore[tools] and the system's graphviz"
            ) from reason
        return False

    def _with_matplotlib(self, path: str) -> None:
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError as error:
            raise UsageError(
                "save: expected graphviz or matplotlib to draw with, got neither; install tensorcore[tools]"
            ) from error
        places = self._layout()
        width = max([x for x, _ in places]) + 1
        height = max([y for _, y in places]) + 1
        figure = Figure(figsize=(2.0 * width + 0.4, 0.72 * height + 0.4), layout="none")
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(-0.6, width - 0.4), ylim=(-0.7, height - 0.3))
        axes.set_axis_off()
        for source, target in self.arrows:
            (x, y), (to_x, to_y) = places[source], places[target]
            axes.annotate(
                "", xy=(to_x, to_y + 0.28), xytext=(x, y - 0.28),
                arrowprops={"arrowstyle": "-|>", "color": "0.45", "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0},
            )  # fmt: skip
        for box, (x, y) in zip(self.boxes, places, strict=True):
            axes.text(
                x, y, box.text, ha="center", va="center", fontsize=7,
                bbox={"boxstyle": "round,pad=0.35", "facecolor": _COLOURS[box.kind], "edgecolor": "0.6", "linewidth": 0.6},
            )  # fmt: skip
        figure.savefig(path, dpi=150)

    def _layout(self) -> list[tuple[float, float]]:
        """Places: rows by the longest way to a result, and in each row the order of what is below, centred."""
        count = len(self.boxes)
        below: list[list[int]] = [[] for _ in range(count)]
        for source, target in self.arrows:
            below[source].append(target)
        # Every arrow leads to a box with a smaller position, as the walk found results before their sources.
        level = [0] * count
        for i in self._outward():
            level[i] = max([level[one] + 1 for one in below[i]], default=0)
        rows: dict[int, list[int]] = {}
        for i in range(count):
            rows.setdefault(level[i], []).append(i)
        widest = max(map(len, rows.values()))
        x = [0.0] * count
        for depth in sorted(rows):
            if depth:
                rows[depth].sort(key=lambda i: sum([x[one] for one in below[i]]) / max(len(below[i]), 1))
            for place, i in enumerate(rows[depth]):
                x[i] = place + (widest - len(rows[depth])) / 2
        return [(x[i], float(level[i])) for i in range(count)]

    def _outward(self) -> list[int]:
        """All positions, each after those that its arrows lead to."""
        waits = [0] * len(self.boxes)
        sources: list[list[int]] = [[] for _ in self.boxes]
        for source, target in self.arrows:
            waits[source] += 1
            sources[target].append(source)
        ready = [i for i, n in enumerate(waits) if not n]
        for i in ready:
            for one in sources[i]:
                waits[one] -= 1
                if not waits[one]:
                    ready.append(one)
        return ready
