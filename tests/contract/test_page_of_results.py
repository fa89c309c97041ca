"""The page of results from a few runs, and what lies behind it."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.errors import UserError
from convs2s.paper.ledger import read_ledger
from convs2s.paper.results import entries_of
from convs2s.paper.results_page import write_results_page
from tests.support.cells import bleu, cells, write
from tests.support.documents import svg_texts

RUN = ("table1", "table7", "figure2")


@pytest.fixture(scope="module")
def pages(
    demo: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Path]:
    """The page and the files behind it, in a folder that was there: all runs but the last row's."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "page").mkdir()
    measured = [cell for name in RUN for cell in cells(demo, name)]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        scores = [
            write(cell.paths[0], bleu(after=30.0 + number, before=20.0 + number))
            for number, cell in enumerate(measured)
            if (cell.address.table, cell.address.row) != ("table1", 14)
        ]
        entries = entries_of(demo, measured, list(dict.fromkeys(scores)))
    output = folder / "page.md"
    write_results_page(
        demo, entries, ledger="a.jsonl", discussion="## Discussion\n", output=output
    )
    return {path.name: path for path in (output, *(folder / "page").iterdir())}


def titles(page: Path) -> list[tuple[str, str]]:
    """The headings of a page: their level and what they begin with."""
    return re.findall(
        r"^(#+) (.*?)(?::| and| at| of|$)", page.read_text("utf-8"), re.MULTILINE
    )


def test_a_page_has_a_title_and_a_part_for_each_table(
    pages: Mapping[str, Path],
) -> None:
    # Nothing of table 2 was run, and no claim has a verdict.
    parts = ["Table 1", "Discussion"]
    assert titles(pages["page.md"])[1:] == [("##", part) for part in parts]
    assert titles(pages["claims.md"]) == [("#", "Claims"), ("##", "Comparisons")]
    (title, *tables) = titles(pages["tables.md"])
    assert title == ("#", "Every table")
    assert {("##", f"Table {number}") for number in range(1, 9)} <= set(tables)


def test_every_link_of_the_page_leads_to_a_file(pages: Mapping[str, Path]) -> None:
    page = pages["page.md"]
    links = re.findall(r"\]\((page/[^)]*)\)", page.read_text("utf-8"))
    assert sorted(links) == [
        f"page/{name}" for name in sorted(set(pages) - {"page.md"})
    ]
    assert all((page.parent / link).exists() for link in links)


def test_the_page_shows_what_was_run_alone(pages: Mapping[str, Path]) -> None:
    page, tables, claims = (
        pages[name].read_text("utf-8") for name in ("page.md", "tables.md", "claims.md")
    )
    row = "| ConvS2S (BPE 40K), the en-de architecture"
    assert row in tables
    assert row not in page
    assert "| ConvS2S (BPE 40K) [" in page
    assert "| What the paper says |" not in page
    assert "| not run |" in claims
    assert "| no verdict |" in claims
    assert "| not run |" not in page
    assert "[1] test set: " in page


@pytest.mark.usefixtures("in_folder")
def test_plateaus_are_of_trainings_that_have_a_curve(root: Path) -> None:
    """A panel for each group of rows, by what a ledger's lines have."""
    settings = load(root, {"scale": "multi30k_trained"})
    rows = settings.paper["trainings"].rows
    curves = {"table 4": [9.0, 5.0, 4.99], "LSTM, table 1": []}
    measured, hours, records = cells(settings, "trainings"), list[str](), list[str]()
    for cell in measured:
        curve = curves.get(rows[cell.address.row].group or "")
        if curve is not None and cell.measure == "training_hours":
            took = {"device_hours": {"score": 1.0, "signature": "a processor"}}
            hours += [write(path, took) for path in cell.paths]
        elif curve is not None:
            reached = {"validation_perplexity": 4.99, "curve": curve}
            records += [write(path, reached) for path in cell.paths]
    entries = entries_of(settings, measured, dict.fromkeys([*hours, *records]))
    Path("ledger.jsonl").write_text(
        "".join(f"{entry.line()}\n" for entry in entries), "utf-8"
    )
    read = read_ledger(Path("ledger.jsonl"))
    assert [entry.curve for entry in read] == [entry.curve for entry in entries]
    with pytest.raises(
        UserError, match=r"^page: expected the name of a page that ends in \.md"
    ):
        write_results_page(
            settings, read, ledger="a", discussion="", output=Path("page")
        )
    with pytest.raises(
        UserError, match=r"^a: has no run of scale multi30k_trained; name its own"
    ):
        write_results_page(
            settings, [], ledger="a", discussion="", output=Path("page.md")
        )
    assert not Path("page").exists()
    Path("file").touch()
    with pytest.raises(
        UserError, match=r"^file\.md: expected .*, and no file named file$"
    ):
        write_results_page(
            settings, read, ledger="a", discussion="", output=Path("file.md")
        )
    write_results_page(
        settings, read, ledger="a", discussion="", output=Path("page.md")
    )
    drawn = svg_texts(Path("page", "plateaus.svg"))
    assert {"table 4", "100%"} <= drawn
    assert "LSTM, table 1" not in drawn
    assert "plateaus.svg" not in Path("page.md").read_text("utf-8")
    costs = Path("page", "tables.md").read_text("utf-8").partition("## Costs")[2]
    assert "(plateaus.svg)" in costs
    shown = [
        re.split(r" *\| *", line)[1:5] for line in costs.splitlines() if "|" in line
    ]
    # Three seeds of each row of table 4, each an hour; the base of figure 2 is one of them.
    assert ["table4", "12", "12", "12.00"] in shown
    assert ["table6", "3", "0", "0.00"] in shown
    (of_figure,) = (row for row in shown if row[0] == "figure2")
    assert of_figure[2:] == ["3", "3.00"]
    (total,) = (row for row in shown if row[0] == "all, each training once")
    assert total[2:] == [str(len(set(hours))), f"{len(set(hours)):.2f}"]
