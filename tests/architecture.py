"""The floors of the house and the checkers of its rules: each answers with one sentence for each violation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

# An import only points down, or along one floor. A module belongs to its longest prefix here.
FLOORS = {
    "tensorcore.errors": 0,
    "tensorcore.dtypes": 0,
    "tensorcore._version": 0,
    "tensorcore.boxes": 0,
    "tensorcore.deeper": 0,
    "tensorcore.formats": 0,
    "tensorcore.shortcuts": 0,
    "tensorcore.backend": 1,
    "tensorcore.tape": 2,
    "tensorcore.tensor": 3,
    "tensorcore.printing": 3,
    "tensorcore.ops": 4,
    "tensorcore.interop": 4,
    "tensorcore.parameter": 4,
    "tensorcore.serialization": 4,
    "tensorcore.storage": 4,
    "tensorcore.threads": 4,
    "tensorcore.autograd": 5,
    "tensorcore.determinism": 5,
    "tensorcore.fft": 5,
    "tensorcore.foreach": 5,
    "tensorcore.func": 5,
    "tensorcore.random": 5,
    "tensorcore.switches": 5,
    "tensorcore.types": 5,
    "tensorcore.linalg": 5,
    "tensorcore.signal": 5,
    "tensorcore.quasirandom": 5,
    "tensorcore.return_types": 5,
    "tensorcore.sparse": 5,
    "tensorcore.special": 5,
    "tensorcore.lazy": 6,
    "tensorcore.wrappers": 6,
    "tensorcore.__config__": 7,
    "tensorcore._dynamo": 7,
    "tensorcore._higher_order_ops": 7,
    "tensorcore._subclasses": 7,
    "tensorcore.absent": 7,
    "tensorcore.fx": 7,
    "tensorcore.settings": 5,
    "tensorcore._inductor": 7,
    "tensorcore.autograd.profiler": 7,
    "tensorcore.array_api": 8,
    "tensorcore._C": 8,
    "tensorcore._utils": 5,
    "tensorcore.functional": 8,
    "tensorcore.overrides": 8,
    "tensorcore.guests": 8,
    "tensorcore.accelerator": 7,
    "tensorcore.accelerators": 7,
    "tensorcore.backends": 7,
    "tensorcore.compiler": 7,
    "tensorcore.hub": 7,
    "tensorcore.jit": 7,
    "tensorcore.library": 7,
    "tensorcore.mps": 7,
    "tensorcore.memory": 7,
    "tensorcore.futures": 7,
    "tensorcore.multiprocessing": 7,
    "tensorcore.control": 7,
    "tensorcore.distributions": 7,
    "tensorcore.nn": 7,
    "tensorcore.onnx": 7,
    "tensorcore.optim": 7,
    "tensorcore.profiler": 7,
    "tensorcore.quantization": 7,
    "tensorcore.utils": 7,
    "tensorcore.version": 7,
    "tensorcore.amp": 7,
    "tensorcore.ao": 7,
    "tensorcore.cpu": 7,
    "tensorcore.cuda": 7,
    "tensorcore.xpu": 7,
    "tensorcore.distributed": 7,
    "tensorcore": 8,
    "tensorcore.plugin": 8,
    "tensorcore.testing": 8,
    "tensorcore.cli": 8,
    "tensorcore.__main__": 8,
}
TOP_FLOOR = 8  # the facades; prefix "tensorcore" alone is the package file, every other module is named above
FRONTEND = 7  # below it no device has a name
LINES = 460

# Deliberate exceptions: (where, what) -> why.
UPWARD_IMPORTS: dict[tuple[str, str], str] = {}
# Imports inside functions that close a circle.
WAYS_BACK: dict[tuple[str, str], str] = {
    ("tensorcore.backend.base", "tensorcore.backend.fallback"): "a missing kernel asks the policy once it is called",
    ("tensorcore.backend.base", "tensorcore.backend.registry"): "a device is pickled as what finds it again",
    ("tensorcore.backend.composed.movement", "tensorcore.backend.xp"): "the reference makes what is then sent over",
    ("tensorcore.backend.watch", "tensorcore.backend.registry"): "who looks at all devices begins with those there are",
    (
        "tensorcore.distributions.kl",
        "tensorcore.distributions.kl_mixed",
    ): "formulas are written down when one is asked for",
    (
        "tensorcore.distributions.kl",
        "tensorcore.distributions.kl_same",
    ): "formulas are written down when one is asked for",
    ("tensorcore.distributed.tensor.mesh", "tensorcore.distributed.tensor.api"): "tensors enter a mesh as in programs",
    ("tensorcore.guests", "tensorcore"): "guests enter by the front door",
    ("tensorcore.nn.module", "tensorcore.compiler"): "Module.compile is a door to it",
    ("tensorcore.ops.sparse.layouts", "tensorcore.ops.sparse.making"): "new() makes sparse tensors as programs do",
    ("tensorcore.ops.creation.create", "tensorcore.ops.sparse.making"): "layout= may ask for a sparse tensor",
    (
        "tensorcore.ops.sparse.base",
        "tensorcore.ops.sparse.arithmetic",
    ): "operators of sparse tensors are written with them",
    ("tensorcore.overrides", "tensorcore"): "lists what is behind the front door",
}
DEVICE_NAMES: dict[tuple[str, str], str] = {}
LONG_FILES: dict[str, str] = {}
PRINTING = {"tensorcore.cli": "its output is the terminal's", "tensorcore.__main__": "starts the command line"}


class Import(NamedTuple):
    """One import: its target, its line, and whether it runs when the module is imported."""

    target: str
    line: int
    at_import: bool
    typing_only: bool


class Module(NamedTuple):
    """One source file under the name that it is imported by."""

    name: str
    tree: ast.Module
    is_package: bool


def imports_that_point_up(modules: Mapping[str, Module]) -> list[str]:
    """Imports from a higher floor, at the top of a module or inside a function; imports for types alone are free."""
    found = []
    for module in modules.values():
        floor = floor_of(module.name)
        if floor is None:
            found.append(f"{module.name}: has no floor; name it in FLOORS")
            continue
        for target, line, _, typing_only in imports_of(module, modules):
            above = floor_of(target)
            if typing_only or above is None or above <= floor or (module.name, target) in UPWARD_IMPORTS:
                continue
            found.append(f"{module.name}:{line}: floor {floor} imports {target} of floor {above}")
    return found


def private_imports_of_plugins(modules: Mapping[str, Module]) -> list[str]:
    """Imports of a plugin from tensorcore that are not ``tensorcore.plugin``, those for types included."""
    return [
        f"{module.name}:{line}: a plugin imports {target}; tensorcore.plugin is its only door"
        for module in modules.values()
        for target, line, _, _ in imports_of(module, {"tensorcore.plugin": module, **modules})
        if target.split(".")[0] == "tensorcore" and target != "tensorcore.plugin"
    ]


def import_cycles(modules: Mapping[str, Module]) -> list[str]:
    """Circles among the imports, those inside functions too; imports for types alone are free."""
    graph = {
        name: sorted(
            {
                target
                for target, _, at_import, typing_only in imports_of(module, modules)
                if target in modules and not typing_only and (at_import or (name, target) not in WAYS_BACK)
            }
        )
        for name, module in modules.items()
    }
    return _circles(graph)


def device_names(module: Module) -> list[str]:
    """String constants that name a device, other than default argument values."""
    defaults = {
        id(constant)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.arguments)
        for default in [*node.defaults, *node.kw_defaults]
        if default is not None
        for constant in ast.walk(default)
    }
    return [
        f"{module.name}:{node.lineno}: names the device {node.value!r}; ask the backend's capabilities"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"(cpu|cuda|mps|xpu|rocm)(:\d+)?", node.value)
        and id(node) not in defaults
        and (module.name, node.value) not in DEVICE_NAMES
    ]


def missing_all(module: Module) -> list[str]:
    """A module that does not say what is public. Package files and private modules have nothing to say."""
    if module.is_package or module.name.rpartition(".")[2].startswith("_"):
        return []
    targets = [
        target
        for statement in module.tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
    ]
    if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
        return []
    return [f"{module.name}: has no __all__"]


def missing_opening(module: Module) -> list[str]:
    """A module whose first words are not one sentence that says what is inside. An empty package file is free."""
    if module.is_package and not module.tree.body:
        return []
    text = ast.get_docstring(module.tree) or ""
    opening = text.split("\n\n")[0].strip()
    if re.search(r"[.:]($|\s)", opening):
        return []
    return [f"{module.name}: expected a docstring that opens with a sentence, got {opening!r}"]


def printing(module: Module) -> list[str]:
    """Calls of ``print`` in the library."""
    if module.name in PRINTING:
        return []
    return [
        f"{module.name}:{node.lineno}: prints; raise, warn or return instead"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def too_long(path: str, text: str) -> list[str]:
    """A file that wants a second room."""
    count = len(text.splitlines())
    return [f"{path}: {count} lines of {LINES}"] if count > LINES and path not in LONG_FILES else []


# Reading the sources


def floor_of(name: str) -> int | None:
    """The floor of a module or of a name in one; None outside tensorcore and for a module that has no place yet."""
    if name == "tensorcore":
        return TOP_FLOOR
    while name and name != "tensorcore":
        if name in FLOORS:
            return FLOORS[name]
        name = name.rpartition(".")[0]
    return None


def imports_of(module: Module, modules: Mapping[str, Module]) -> Iterator[Import]:
    """Every import in a module, relative ones resolved, ``from package import module`` as the module."""
    yield from _imports(module.tree.body, module, modules, at_import=True, typing_only=False)


def _imports(
    body: list[ast.AST], module: Module, modules: Mapping[str, Module], at_import: bool, typing_only: bool
) -> Iterator[Import]:
    for node in body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, at_import and not typing_only, typing_only)
        elif isinstance(node, ast.ImportFrom):
            source = _source(node, module)
            for alias in node.names:
                full = f"{source}.{alias.name}"
                known = full in modules or full in FLOORS
                yield Import(full if known else source, node.lineno, at_import and not typing_only, typing_only)
        elif isinstance(node, ast.Call) and _imports_by_name(node):
            yield Import(node.args[0].value, node.lineno, at_import and not typing_only, typing_only)
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from _imports(node.body, module, modules, at_import, True)
            yield from _imports(node.orelse, module, modules, at_import, typing_only)
        else:
            deferred = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            children = list(ast.iter_child_nodes(node))
            yield from _imports(children, module, modules, at_import and not deferred, typing_only)


def _source(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    parts = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _imports_by_name(call: ast.Call) -> bool:
    return (
        ast.unparse(call.func) in ("importlib.import_module", "import_module", "__import__")
        and bool(call.args)
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    )


def read_modules(folder: Path, *packages: str) -> dict[str, Module]:
    """The modules of the packages in a folder by name."""
    modules = {}
    for package in packages:
        for path in sorted((folder / package).rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            modules[name] = Module(name, ast.parse(path.read_text("utf-8"), str(path)), is_package)
    return modules


# The C sources


def c_circles(sources: Mapping[str, str]) -> list[str]:
    """Circles among C files, each of which uses functions or variables that the next one defines."""
    plain = {name: _without_remarks(text) for name, text in sources.items()}
    homes = {defined: name for name, text in plain.items() for defined in c_definitions(text)}
    graph = {
        name: sorted({homes[word] for word in set(re.findall(r"\w+", text)) & homes.keys()} - {name})
        for name, text in plain.items()
    }
    return _circles(graph)


def c_definitions(text: str) -> set[str]:
    """What a C file without comments defines for others: functions and variables at the margin that are not static."""
    body = r"(?!static\b|typedef\b|extern\b|struct \w+ \{|enum\b|DECLARE_LOOPS|ALWAYS_INLINE)[A-Za-z_][\w *]*?[ *]"
    name = r"(?:ISA\((\w+)\)|(\w+))"
    function = re.finditer(rf"^{body}{name}\([^;{{}}]*\) \{{", text, re.MULTILINE)
    variable = re.finditer(rf"^{body}{name}(?:\[\w*\])*(?: = [^;]*)?;", text, re.MULTILINE)
    return {found[1] or found[2] for found in [*function, *variable]}


def _without_remarks(text: str) -> str:
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.DOTALL)


def _circles(graph: Mapping[str, list[str]]) -> list[str]:
    """Each way along the edges that comes back to where it began, found once."""
    found, done = [], set()

    def walk(name: str, path: list[str]) -> None:
        if name in path:
            found.append(" -> ".join([*path[path.index(name) :], name]))
        elif name not in done:
            for target in graph[name]:
                walk(target, [*path, name])
            done.add(name)

    for name in sorted(graph):
        walk(name, [])
    return found
