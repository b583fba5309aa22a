"""Kernels without an entry for Python, which would end the process, are called by kernels alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WITHOUT_ENTRY = {"subkernel", "uncounted", "kernel"}
COMPILED = WITHOUT_ENTRY | {"entry", "njit", "inlined"}


def decorators(function: ast.FunctionDef) -> set[str]:
    return {node.id for one in function.decorator_list for node in ast.walk(one) if isinstance(node, ast.Name)}


def referred_to(node: ast.AST) -> Iterator[str]:
    """Names, and attributes of names, that code refers to which is not compiled."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and decorators(child) & COMPILED:
            continue
        if isinstance(child, ast.Name):
            yield child.id
        if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name):
            yield f"{child.value.id}.{child.attr}"
        yield from referred_to(child)


def file_of(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py")


@cache
def without_entry(file: Path) -> frozenset[str]:
    if not file.is_file():
        return frozenset()
    functions = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef))
    return frozenset(function.name for function in functions if decorators(function) & WITHOUT_ENTRY)


def known_without_entry(file: Path, tree: ast.AST) -> Iterator[str]:
    """What a file calls the kernels without an entry that it defines or imports."""
    yield from without_entry(file)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("patternlake."):
            for alias in node.names:
                name = alias.asname or alias.name
                if alias.name in without_entry(file_of(str(node.module))):
                    yield name
                yield from (f"{name}.{kernel}" for kernel in without_entry(file_of(f"{node.module}.{alias.name}")))


def called_from_python(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    return set(known_without_entry(file, tree)) & set(referred_to(tree))


@pytest.mark.parametrize("folder", ["udfs", "jobs", "sql_ext", "tests", "benchmarks"])
def test_no_python_calls_a_kernel_that_has_no_entry_for_it(folder: str) -> None:
    called = {str(file.relative_to(ROOT)): called_from_python(file) for file in (ROOT / folder).rglob("*.py")}
    assert {file: names for file, names in called.items() if names} == {}
