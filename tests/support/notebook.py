"""Running a notebook without Jupyter: its cells in order, in one namespace, each result displayed.

nbclient with ipykernel would need 25 packages more for a notebook without magics or widgets.
"""

import ast
import json
from pathlib import Path


def run_notebook(path: Path) -> dict[str, object]:
    """Run all cells of a notebook; return its names."""
    names: dict[str, object] = {"__name__": "__main__"}
    for number, (kind, source) in enumerate(cells(path)):
        if kind == "code":
            _run(ast.parse(source), f"{path.name}, cell {number}", names)
    return names


def cells(path: Path) -> list[tuple[str, str]]:
    """Return the kind and the source of each cell."""
    found = json.loads(path.read_text("utf-8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in found]


def _run(tree: ast.Module, place: str, names: dict[str, object]) -> None:
    last = (
        tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    )
    exec(compile(tree, place, "exec"), names)
    if isinstance(last, ast.Expr):
        shown = eval(compile(ast.Expression(last.value), place, "eval"), names)
        html = getattr(shown, "_repr_html_", None)
        print((html() if callable(html) else None) or repr(shown))
