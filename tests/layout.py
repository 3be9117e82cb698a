"""How the tree is cut, read from its files: arrows, sizes, names. `python -m tests.layout` lists the faults."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("dags", "pipelines", "models", "configs", "tidecast")
MOST_LINES, MOST_MODULES, MOST_OF_A_PREFIX, MOST_TWINS = 250, 15, 3, 5
NAME = re.compile(rf"(?<![\w.])(?:{'|'.join(ROOMS)})(?:\.\w+)+")


@dataclass(frozen=True)
class Tree:
    """All modules of the product: path, lines, classes, and the modules each leads to."""

    files: dict[str, Path]
    arrows: dict[str, set[str]]
    classes: dict[str, list[str]]

    @classmethod
    def read(cls, root: Path = ROOT) -> Tree:
        """The tree under a folder; a package stands for its `__init__`."""
        files = {
            _module(path.relative_to(root)): path for room in ROOMS for path in sorted((root / room).rglob("*.py"))
        }
        arrows: dict[str, set[str]] = {}
        classes: dict[str, list[str]] = defaultdict(list)
        for name, path in files.items():  # one tree at a time: those of all modules hold hundreds of MB
            tree = ast.parse(path.read_text(encoding="utf-8"))
            arrows[name] = set(_leads(name, tree, files)) - {name}
            for node in tree.body:
                if isinstance(node, ast.ClassDef):
                    classes[node.name].append(name)
        return cls(files, arrows, dict(classes))


def faults(tree: Tree, layers: dict[str, list[set[str]]]) -> list[str]:
    """Every fault as one line, sorted."""
    found = [*_upward(tree, layers), *_cycles(tree, layers), *_large(tree), *_crowded(tree), *_twins(tree)]
    return sorted(set(found))


def contracts(root: Path = ROOT) -> dict[str, list[set[str]]]:
    """Layers per container, highest first, as import-linter is told."""
    linter = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]
    return {
        container: [{name.strip() for name in layer.split("|")} for layer in contract["layers"]]
        for contract in linter["contracts"]
        if contract["type"] == "layers"
        for container in contract.get("containers", [""])
    }


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _leads(name: str, tree: ast.Module, files: dict[str, Path]) -> Iterator[str]:
    """Modules that one imports, wherever the line stands, or names in a string that is no docstring."""
    nodes = _nodes(tree)
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (found for alias in node.names if (found := _known(alias.name, files)))
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(name, node, files)
            for alias in node.names:
                if found := _known(f"{base}.{alias.name}", files):
                    yield found
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield from (found for text in NAME.findall(node.value) if (found := _known(text, files)))


def _nodes(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a tree, as `ast.walk` gives them, which takes as long as parsing."""
    found = [tree]
    for node in found:  # it grows meanwhile
        for name in node._fields:
            value = getattr(node, name)
            if isinstance(value, ast.AST):
                found.append(value)
            elif isinstance(value, list):
                found += [one for one in value if isinstance(one, ast.AST)]
    return found


def _absolute(name: str, node: ast.ImportFrom, files: dict[str, Path]) -> str:
    if not node.level:
        return node.module or ""
    up = node.level - (files[name].name == "__init__.py")
    return ".".join([*name.split(".")[: len(name.split(".")) - up], *([node.module] if node.module else [])])


def _known(dotted: str, files: dict[str, Path]) -> str | None:
    """The longest part of a dotted name that is a module."""
    parts = dotted.split(".")
    return next((".".join(parts[:end]) for end in range(len(parts), 1, -1) if ".".join(parts[:end]) in files), None)


def _upward(tree: Tree, layers: dict[str, list[set[str]]]) -> Iterator[str]:
    for container, order in layers.items():
        height = {name: -i for i, layer in enumerate(order) for name in layer}
        for source, target in _pairs(tree):
            here, there = _child(container, source), _child(container, target)
            if here and there and here != there and height.get(here, 0) <= height.get(there, 0):
                yield f"arrow up in {container or 'the tree'}: {source} -> {target}"


def _cycles(tree: Tree, layers: dict[str, list[set[str]]]) -> Iterator[str]:
    """Cycles between modules, and between the siblings of any package of the containers."""
    for group in _tangles(tree.arrows):
        yield f"cycle of modules: {', '.join(group)}"
    packages = {name for name, path in tree.files.items() if path.name == "__init__.py"}
    siblings: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for source, target in _pairs(tree):
        here, there = source.split("."), target.split(".")
        apart = next((at for at, (one, other) in enumerate(zip(here, there, strict=False)) if one != other), 0)
        if apart:
            siblings[".".join(here[:apart])][here[apart]].add(there[apart])
    for package in sorted(siblings):
        for group in _tangles(siblings[package]):
            if len(group) > 1 and not all(
                f"{package}.{name}" in tree.files and f"{package}.{name}" not in packages for name in group
            ):
                yield f"cycle of siblings in {package}: {', '.join(group)}"


def _pairs(tree: Tree) -> Iterable[tuple[str, str]]:
    return ((source, target) for source, targets in tree.arrows.items() for target in targets)


def _child(container: str, module: str) -> str | None:
    """Which part of a container a module belongs to; None for what is outside, and for the container itself."""
    inside = f"{container}." if container else ""
    return module.removeprefix(inside).split(".")[0] if module.startswith(inside) else None


def _tangles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected parts of more than one node (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(arrows.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return found


def _large(tree: Tree) -> Iterator[str]:
    for name, path in tree.files.items():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > MOST_LINES:
            yield f"more than {MOST_LINES} lines: {name}"


def _crowded(tree: Tree) -> Iterator[str]:
    folders: dict[Path, list[str]] = defaultdict(list)
    for path in tree.files.values():
        if path.name != "__init__.py":
            folders[path.parent].append(path.stem)
    for folder, stems in folders.items():
        package = next(_package(name, path) for name, path in tree.files.items() if path.parent == folder)
        if len(stems) > MOST_MODULES:
            yield f"more than {MOST_MODULES} modules: {package}"
        for prefix in {stem.split("_")[0] for stem in stems}:
            if sum(stem.split("_")[0] == prefix for stem in stems) > MOST_OF_A_PREFIX:
                yield f"prefix of more than {MOST_OF_A_PREFIX} modules: {package}.{prefix}_"
        yield from (f"a page's text is <page>_text: {package}.{stem}" for stem in stems if stem.endswith("_words"))


def _package(name: str, path: Path) -> str:
    return name if path.name == "__init__.py" else name.rpartition(".")[0]


def _twins(tree: Tree) -> Iterator[str]:
    """Class names that stand twice, once there are more than a few."""
    twice = [name for name, where in tree.classes.items() if len(where) > 1 and not name.startswith("_")]
    if len(twice) > MOST_TWINS:
        yield from (f"class name that stands twice: {name}" for name in twice)


if __name__ == "__main__":
    print(*faults(Tree.read(), contracts()), sep="\n")
