"""Tables as files: what each format keeps of them, and what stands in footnotes."""

import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pandas as pd

from convs2s.config.settings import Settings
from convs2s.paper.cells import cells
from convs2s.paper.table_formats import CellText, Sheet, fitted
from convs2s.paper.tables import write_table
from tests.contract.documents import svg_texts


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
        for word in " ".join(frame[demo.paper[name].system_label]).split():
            assert word in drawn or len(word) > 14


def check_latex(text: str) -> None:
    """No environment or brace stays open, each row has all columns, no sign is left as it is."""
    bare = re.sub(r"\\[\\{}&%$#_]|\\[a-z]+", "", text)
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"[%#_~^|<>±†]", bare)
    (body,) = re.findall(r"\\begin\{tabular\}\{(l+)\}(.*)\\end\{tabular\}", text, re.S)
    columns, content = body
    rows = [line for line in content.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(columns)}


def test_the_widest_columns_are_narrowed_but_no_word_is_broken() -> None:
    columns = [["a " * 30], ["b" * 20, "c"]]
    for letters, widths in ((82, [60, 20]), (50, [28, 20]), (9, [1, 14])):
        assert fitted(columns, letters) == widths


def printed(texts: Sequence[CellText]) -> tuple[list[str], list[str], list[str]]:
    """What stands above rows of such texts, in the rows, and in the footnotes."""
    rows = [{"System": "a", "Lines": text, "Empty": ""} for text in texts]
    sheet = Sheet(["T"], rows, "System", {"Lines": "{}"}, shared=["Lines"])
    _, shown, notes = sheet.printed()
    return sheet.above[1:], [row[0] for row in shown], notes


def test_rows_say_once_what_more_than_half_of_them_have() -> None:
    above = ["Unless a footnote says otherwise: of 4."]
    marks = ["a", "a", "a", "a [1]"]
    assert printed(["of 4", "of 4", "", "of 5"]) == (above, marks, ["[1] of 5"])
    assert printed(["4", "5"]) == ([], ["a [1]", "a [2]"], ["[1] 4", "[2] 5"])
    assert printed([""]) == ([], ["a"], [])
    # A footnote is of the values that differ alone; what is said of the others stands above, also
    # where a row lacks one of them.
    usual = {"BLEU": "of 4", "speed": "in fp32"}
    bf16 = usual | {"speed": "in bf16"}
    other = dict.fromkeys(usual, "of 5")
    said = [usual, {"BLEU": "of 4"}, bf16, usual, usual, other, {}]
    above = ["Unless a footnote says otherwise: BLEU: of 4; speed: in fp32."]
    marks = ["a", "a", "a [1]", "a", "a", "a [2]", "a"]
    assert printed(said) == (above, marks, ["[1] speed: in bf16", "[2] of 5"])
