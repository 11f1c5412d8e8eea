"""Arithmetic over the columns of a record, such as "total_ms - prefill_ms"."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

_OPERATIONS: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b if b else math.nan,
}
_FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = {"max": max, "min": min}
_LONGEST: Final = 500


@dataclass(frozen=True, slots=True)
class Expression:
    """A sum of columns: names, numbers, + - * /, parentheses, min and max.

    Attributes:
        text: as it was written.
        names: the columns in it.
    """

    text: str
    names: frozenset[str]
    _tree: ast.expr

    @classmethod
    def parse(cls, text: str) -> Expression:
        """Return the expression that a text is.

        Raises:
            ValueError: it is none.
        """
        if len(text) > _LONGEST:
            raise ValueError(f"longer than {_LONGEST} characters")
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError(f"no arithmetic: {text!r}") from error
        names: set[str] = set()
        _check(tree, names)
        return cls(text, frozenset(names), tree)

    def value(self, columns: Mapping[str, float | None]) -> float | None:
        """Return the value; None where a column is missing, or the value is no finite number."""
        if any(columns.get(name) is None for name in self.names):
            return None
        found = _value(self._tree, columns)
        return found if math.isfinite(found) else None


def _check(node: ast.expr, names: set[str]) -> None:
    if isinstance(node, ast.Name):
        names.add(node.id)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        _check(node.left, names)
        _check(node.right, names)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        _check(node.operand, names)
    elif isinstance(node, ast.Call) and _function(node) and node.args and not node.keywords:
        for argument in node.args:
            _check(argument, names)
    elif not (isinstance(node, ast.Constant) and type(node.value) in {int, float}):
        raise ValueError("only columns, numbers, + - * /, min and max are read")


def _function(node: ast.Call) -> Callable[..., float] | None:
    return _FUNCTIONS.get(node.func.id) if isinstance(node.func, ast.Name) else None


def _value(node: ast.expr, columns: Mapping[str, float | None]) -> float:
    if isinstance(node, ast.Name):
        return float(columns[node.id] or 0.0)
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, columns), _value(node.right, columns)
        return _OPERATIONS[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        return -_value(node.operand, columns)
    if isinstance(node, ast.Call):
        return _FUNCTIONS[node.func.id]([_value(one, columns) for one in node.args])  # type: ignore[attr-defined]
    return float(node.value)  # type: ignore[attr-defined]
