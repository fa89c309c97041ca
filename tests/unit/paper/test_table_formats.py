"""Tables as files: what each format keeps of them."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from convs2s.config.load import load
from convs2s.paper.table_formats import Sheet, fitted, latex, svg
from convs2s.paper.tables import write_table
from tests.support.cells import cells
from tests.support.documents import svg_texts

SUFFIXES = (".md", ".csv", ".tex", ".svg")
NAMES = ["table1", "table3", "table4", "table6", "figure3"]


@pytest.fixture(scope="module", params=NAMES)
def written(
    request: pytest.FixtureRequest, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The path of a table without its suffix, written in every format."""
    settings, folder = (
        load(root, {"scale": "multi30k"}),
        tmp_path_factory.mktemp("tables"),
    )
    outputs = [folder / f"{request.param}{suffix}" for suffix in SUFFIXES]
    write_table(
        settings,
        request.param,
        cells=cells(settings, request.param),
        scores=[],
        published=None,
        failures={},
        outputs=outputs,
    )
    path: Path = folder / request.param
    return path


def environments(latex: str) -> list[str]:
    """The names of the environments that are open at the end, of which there should be none."""
    open_ones: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", latex):
        if kind == "begin":
            open_ones.append(name)
        else:
            assert open_ones.pop() == name
    return open_ones


def test_latex_is_well_formed(written: Path) -> None:
    latex = written.with_suffix(".tex").read_text("utf-8")
    assert environments(latex) == []
    # Escaped characters and commands.
    bare = re.sub(r"\\[\\{}&%$#_]|\\[a-z]+", "", latex)
    assert bare.count("{") == bare.count("}")
    rows = re.search(r"\\hline\n(.*)\\hline\n\\end", latex, re.DOTALL)
    assert rows
    lines = [line for line in rows[1].splitlines() if line != r"\hline"]
    columns = re.search(r"\\begin\{tabular\}\{(l+)\}", latex)
    assert columns
    assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines} == {
        len(columns[1])
    }
    assert not re.search(r"(?<!\\)[%#_]", latex)
    assert latex.isascii() or not set(latex) & set("±|~^")


@pytest.mark.skipif(
    not (shutil.which("tectonic") or shutil.which("pdflatex")),
    reason="no LaTeX is installed",
)
def test_latex_compiles(written: Path, tmp_path: Path) -> None:
    latex = written.with_suffix(".tex").read_text("utf-8")
    document = tmp_path / "document.tex"
    body = (
        f"\\documentclass{{article}}\n\\begin{{document}}\n{latex}\\end{{document}}\n"
    )
    document.write_text(body, "utf-8")
    program = shutil.which("pdflatex") or shutil.which("tectonic")
    assert program
    done = subprocess.run(
        [program, document.name], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_csv_comes_back_from_pandas(written: Path) -> None:
    text = written.with_suffix(".csv").read_text("utf-8")
    frame = pd.read_csv(StringIO(text), dtype=str, keep_default_na=False)
    assert len(frame) > 0
    assert frame.to_csv(index=False, lineterminator="\n") == text
    assert not frame.columns.str.startswith("Unnamed").any()


def test_the_drawing_says_what_the_table_says(written: Path) -> None:
    drawn = written.with_suffix(".svg")
    words = set(" ".join(svg_texts(drawn)).split())
    frame = pd.read_csv(written.with_suffix(".csv"), dtype=str, keep_default_na=False)
    systems = {word for system in frame.iloc[:, 1] for word in system.split()}
    assert {word for word in systems if len(word) <= 14} <= words  # as text, in vectors
    assert {"run", "STAND-IN", "Scale:"} <= words
    width = re.search(r'width="([\d.]+)pt"', drawn.read_text("utf-8"))
    assert width
    assert float(width[1]) < 7 * 72


def test_a_drawing_is_as_large_as_its_lines() -> None:
    columns = [f"column{number:08}" for number in range(10)]  # too long to be broken
    drawn = svg(
        Sheet(["A title"], [dict.fromkeys(columns, "x")], columns[0], {}, {}, ())
    )
    lines = re.findall(r">([^<]*)</text>", drawn)
    assert max(map(len, lines)) == 10 * 14 + 9 * 2
    letter, line = 0.602 * 5.5, 1.25 * 5.5
    width, height = (10 * 14 + 9 * 2 + 2) * letter, (len(lines) + 1) * line
    assert f'width="{width:.1f}pt" height="{height:.1f}pt"' in drawn
    assert next(text for text in lines if text) == "A title"
    assert "".join(lines).count("A title") == 1


def test_latex_has_no_sign_that_it_would_show_as_another() -> None:
    sheet = Sheet(["A title"], [{"n": "a < b > c"}], "n", {}, {}, ())
    assert r"a \textless{} b \textgreater{} c" in latex(sheet)


def test_columns_are_narrowed_until_they_fit() -> None:
    columns = [["x" * 40], ["y" * 10], ["z"]]
    assert fitted(columns, 100) == [40, 10, 1]
    assert fitted(columns, 40) == [25, 10, 1]
    assert fitted(columns, 20) == [14, 10, 1]  # no word so short is broken


@pytest.mark.parametrize(
    ("texts", "common"),
    [
        ("aab", {"": "a"}),
        ("aabb", {"": ""}),
        (["a", "b", ""], {"": ""}),
        (["", ""], {}),
    ],
)
def test_rows_share_what_more_than_half_of_them_have(
    texts: Sequence[str], common: dict[str, str]
) -> None:
    sheet = Sheet([], [{"n": text} for text in texts], "n", shared=["n"])
    assert sheet.common == {"n": common}
