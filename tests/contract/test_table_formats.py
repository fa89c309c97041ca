"""Tables as files: what each format keeps of them, and what stands in footnotes."""

import re
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from convs2s.config.settings import Settings
from convs2s.paper.cells import cells
from convs2s.paper.table_formats import CellText, Sheet, csv, fitted
from convs2s.paper.tables import write_table
from tests.support.documents import svg_texts


def test_every_table_is_a_file_of_each_format(demo: Settings, tmp_path: Path) -> None:
    for name in demo.paper:
        outputs = [tmp_path / f"{name}{end}" for end in (".md", ".csv", ".tex", ".svg")]
        write_table(
            demo,
            name,
            cells=cells(demo, name),
            scores=[],
            published=None,
            failures={},
            outputs=outputs,
        )
        texts = [output.read_text("utf-8") for output in outputs]
        assert all("STAND-IN" in text for text in texts)
        frame = pd.read_csv(StringIO(texts[1]), dtype=str, keep_default_na=False)
        assert frame.to_csv(index=False, lineterminator="\n") == texts[1]
        check_latex(texts[2])
        drawn = set(" ".join(svg_texts(outputs[3])).split())
        system = frame[demo.paper[name].system_label]
        words = set(" ".join(system).split())
        assert {word for word in words if len(word) <= 14} <= drawn


def check_latex(text: str) -> None:
    """No environment or brace stays open, each row has all columns, no sign is left as it is."""
    for name in ("table", "tabular"):
        assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") == 1
    bare = re.sub(r"\\[\\{}&%$#_]|\\[a-z]+", "", text)
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"[%#_~^|<>±†]", bare)
    columns = re.search(r"\\begin\{tabular\}\{(l+)\}", text)
    assert columns
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(columns[1])}


def test_columns_are_narrowed_until_they_fit() -> None:
    columns = [["x" * 40], ["y" * 10], ["z"]]
    assert fitted(columns, 100) == [40, 10, 1]
    assert fitted(columns, 40) == [25, 10, 1]
    assert fitted(columns, 20) == [14, 10, 1]  # no word so short is broken


@pytest.mark.parametrize(
    ("texts", "above", "notes", "marks"),
    [
        (["4", "4", "", "5"], ["of 4"], ["[1] of 5"], ["a [1]"]),
        (["4", "5", "5"], ["of 5"], ["[1] of 4"], ["a [1]"]),
        (["4", "5"], [], ["[1] of 4", "[2] of 5"], ["a [1]", "a [2]"]),
        (["", ""], [], [], []),
    ],
)
def test_rows_say_once_what_more_than_half_of_them_have(
    texts: list[str], above: list[str], notes: list[str], marks: list[str]
) -> None:
    rows = [{"System": "a", "Lines": text, "Empty": ""} for text in texts]
    written = Sheet(["T"], rows, "System", {"Lines": "of {}"}, shared=["Lines"])
    header, printed, footnotes = written.printed()
    shared = [f"Unless a footnote says otherwise: {text}." for text in above]
    assert written.above == ["T", *shared]
    assert (header, footnotes) == (["System"], notes)
    marked = [row[0] for row in printed if row[0] != "a"]
    assert marked == marks


def test_a_footnote_is_of_the_values_that_differ_alone() -> None:
    """What is said of the others stands above the table, also where a row lacks one of them."""
    usual = {"BLEU": "of 4", "speed": "in fp32"}
    said = [usual, {"BLEU": "of 4"}, usual | {"speed": "in bf16"}, usual, usual]
    said += [dict.fromkeys(usual, "of 5"), {}]
    rows: list[dict[str, CellText]] = [
        {"System": name, "Metric": texts}
        for name, texts in zip("abcdefg", said, strict=True)
    ]
    written = Sheet(["T"], rows, "System", {"Metric": "{}"}, shared=["Metric"])
    _, printed, notes = written.printed()
    assert written.above[1].endswith(": BLEU: of 4; speed: in fp32.")
    assert notes == ["[1] speed: in bf16", "[2] of 5"]
    assert [row[0] for row in printed] == ["a", "b", "c [1]", "d", "e", "f [2]", "g"]
    assert csv(written).splitlines()[1] == "a,BLEU: of 4; speed: in fp32"
