"""Lists as Python expressions, which is how fairseq's arguments state layers, read without eval."""

import ast
from typing import Any

from convs2s.errors import UserError
from convs2s.files.limits import LONGEST_EXPRESSION, MOST_ITEMS


def evaluate(expression: object, name: str) -> Any:
    """Return the value of an expression such as ``[(512, 3)] * 9 + [(1024, 3)] * 4``.

    It has whole numbers, truth values, tuples, and lists, which ``+`` joins and ``*`` repeats.

    Raises:
        UserError: it is anything else; the message begins with ``name``.
    """
    try:
        if not isinstance(expression, str) or len(expression) > LONGEST_EXPRESSION:
            raise ValueError
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UserError(
            f"{name}: expected text such as '[(512, 3)] * 9 + [(1024, 3)] * 4', "
            f"not {str(expression)[:60]!r}"
        ) from None


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item) for item in items)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined(_value(left), _value(right))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _repeated(_value(left), _value(right))
    raise ValueError


def _joined(left: Any, right: Any) -> list[Any]:
    if not (isinstance(left, list) and isinstance(right, list)):
        raise ValueError
    return left + right


def _repeated(left: Any, right: Any) -> list[Any]:
    items, times = (right, left) if isinstance(left, int) else (left, right)
    if not (isinstance(items, list) and isinstance(times, int)):
        raise ValueError
    if _count(items) * times > MOST_ITEMS:
        raise ValueError
    return items * times


def _count(items: Any) -> int:
    """Return the number of values in a list, those of lists and tuples within it counted."""
    return sum(map(_count, items)) + 1 if isinstance(items, list | tuple) else 1
