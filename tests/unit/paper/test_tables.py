"""The papers' tables: which runs a cell needs, and how values stand beside the paper's."""

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from convs2s.config.extensions import VARIABLE
from convs2s.config.load import load
from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.config.task import RougeSettings
from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.layout import Layout
from convs2s.paper.results import entries_of, results
from convs2s.paper.table_formats import CellText, Sheet, csv
from convs2s.paper.tables import sheet, table_rows, write_table
from convs2s.scoring.evaluation import evaluate_rouge
from tests.support.cells import bleu, cells, of_row, table, write

TABLES = [f"table{number}" for number in range(1, 9)] + ["figure2"]
STAND_INS = ["multi30k", "multi30k_trained", "demo"]
LSTM_EXHIBITS = ["lstm_table1", "lstm_table2", "lstm_figure2", "lstm_figure3"]
PATH = re.compile(
    r"results/[a-z0-9_]+/models/[a-z0-9_]+/(seed\d+|ensemble\d+)/"
    r"([a-z0-9_]+\.[a-z0-9_]+\.(bleu|rouge|(cpu|cuda)\.speed)|training|training\.speed)\.json"
)

pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.mark.parametrize("name", TABLES)
def test_every_cell_names_its_runs(paper: Settings, name: str) -> None:
    for cell in cells(paper, name):
        assert len(cell.paths) == len(cell.runs) >= 1
        assert all(PATH.fullmatch(path) for path in cell.paths)


@pytest.mark.parametrize("name", TABLES)
def test_stand_ins_stay_in_their_scales_folder(demo: Settings, name: str) -> None:
    for cell in cells(demo, name):
        assert cell.task.removesuffix("_word") in ("demo_en_fr", "demo_clauses_en_fr")
        assert cell.model.startswith("demo")
        assert cell.testset in (None, "test", "test_filtered")
        assert len(cell.runs) <= 2
        assert all(path.startswith("results/scales/demo/demo_") for path in cell.paths)


@pytest.mark.parametrize("scale", ["paper", *STAND_INS])
def test_a_model_file_stands_for_one_model_of_the_papers(
    root: Path, scale: str
) -> None:
    """And so does an ensemble of a table for one of that table.

    But for this project's further rows, which are made of models that other tables train, and
    but for the LSTM with as many layers as the one of the other tables.
    """
    settings = load(root, {"scale": scale})
    models: dict[str, set[object]] = {}
    ensembles: dict[tuple[object, ...], set[object]] = {}
    of_others = ("further_rows", "lstm_text", "trainings")
    printed = {
        name: table.rows
        for name, table in settings.paper.items()
        if name not in of_others
    }
    for name, rows in printed.items():
        for cell in cells(settings, name):
            said = rows[cell.address.row]
            ensemble = said.runs if said.runs[0].startswith("ensemble") else ()
            ensembles.setdefault((name, cell.task, cell.model, cell.runs), set()).add(
                ensemble
            )
            for run in cell.runs:
                for file in Layout("r", "d").task(cell.task).models(cell.model, run):
                    models.setdefault(file, set()).add((said.task, said.model))
    assert len(models) >= 25
    for papers in (models, ensembles):
        assert {
            ours: theirs for ours, theirs in papers.items() if len(theirs) > 1
        } == {}


@pytest.mark.parametrize("scale", ["paper", *STAND_INS])
def test_every_cell_of_ours_is_made_where_the_scale_has_its_row(
    root: Path, scale: str
) -> None:
    settings = load(root, {"scale": scale})
    for name, printed in settings.paper.items():
        made = {
            (cell.address.row, cell.address.column) for cell in cells(settings, name)
        }
        ours = {
            (number, column.key)
            for number in settings.scale.shown_rows(printed)
            for column in printed.columns
            if printed.rows[number].kind == "ours"
            and printed.rows[number].measures.get(column.key, column.measure)
        }
        assert made == ours, name


@pytest.mark.parametrize("scale", STAND_INS)
def test_no_printed_value_is_left_out(root: Path, scale: str) -> None:
    settings = load(root, {"scale": scale})
    absent = [
        row
        for name, printed in settings.paper.items()
        for row in filter(settings.scale.why_left_out, printed.rows)
        if name != "trainings"  # whose rows are those of the others
    ]
    # One corpus stands for both of table 1's German ones; the others are depths of figure 2, and
    # of the LSTM.
    depths = [row for row in absent if row.x is not None or row.group == "3.4"]
    assert [row.task for row in absent if row not in depths] == ["wmt14_en_de_stanford"]
    assert len(depths) == {"demo": 44, "multi30k": 5, "multi30k_trained": 32}[scale]
    assert not any(row.paper for row in absent)


def test_the_demo_is_at_most_fifty_trainings(demo: Settings) -> None:
    runs = {
        (cell.task, cell.model, member)
        for name in demo.paper
        for cell in cells(demo, name)
        for run in cell.runs
        for member in members(run)
    }
    assert len(runs) <= 50


def test_ensembles_are_as_large_as_the_scale_allows(
    paper: Settings, demo: Settings
) -> None:
    assert {cell.runs for cell in cells(paper, "table2")} == {
        ("ensemble8",),
        ("ensemble10",),
    }
    assert {cell.runs for cell in cells(demo, "table2")} == {
        ("ensemble2",),
        ("ensemble3",),
    }


@pytest.mark.parametrize("name", [*TABLES, "figure3", *LSTM_EXHIBITS, "lstm_text"])
def test_without_runs_no_cell_has_a_value(paper: Settings, name: str) -> None:
    frame = table(paper, name, [])
    rows = paper.paper[name].rows
    assert len(frame) == len(rows)
    for column in paper.paper[name].columns:
        for row, value in zip(
            rows, frame.get(f"{column.name} (ours)", ()), strict=False
        ):
            said = ("not run", "not measured" if column.key in row.paper else "")
            assert value in (said if row.kind == "ours" else ("",))


def test_printed_values_keep_their_digits(paper: Settings) -> None:
    assert list(table(paper, "table1", [])["BLEU (paper)"])[:3] == [
        "28.1",
        "29.45",
        "30.02",
    ]
    assert list(table(paper, "table4", [])["BLEU (paper)"]) == [
        "21.7",
        "21.3",
        "21.5",
        "21.2",
    ]
    assert table(paper, "table3", [])["Time (s) (paper)"].iloc[0] == "3028"
    assert table(paper, "table6", [])["RG-2 (paper)"].iloc[0] == "8.60"


def test_a_cell_is_mean_and_deviation_over_the_runs_found(paper: Settings) -> None:
    ppl, score, length = of_row(cells(paper, "table4"), 1)
    assert [one.address.column for one in (ppl, score, length)] == [
        "ppl",
        "bleu",
        "length",
    ]
    assert score.paths == length.paths
    found = [
        write(score.paths[0], bleu(after=30.0, before=21.0, lines=2737)),
        write(score.paths[2], bleu(after=30.0, before=22.0, lines=2737)),
        write(ppl.paths[0], {"validation_perplexity": 6.654}),
    ]
    frame = table(paper, "table4", found)
    row = frame.iloc[1]
    assert row["BLEU (ours)"] == "21.5 ± 0.7"
    assert row["Validation perplexity (ours)"] == "6.65"
    assert row["Length ratio (ours)"] == "0.980 ± 0.000"
    assert (
        row["Runs"]
        == "Validation perplexity: 1 of 3; BLEU: 2 of 3; Length ratio: 2 of 3"
    )
    assert row["Test set"] == "wmt14_en_de_word newstest2014_filtered (2,737 lines)"
    assert "before unknown word replacement nrefs:1|tok:none" in row["Metric"]
    assert frame.iloc[0]["BLEU (ours)"] == "not run"


def test_the_cells_of_table_6_are_what_an_evaluation_says(paper: Settings) -> None:
    lines = ["the cat sleeps", "a dog ran off"]
    write_lines("titles.txt", ["the cats sleep", "a dog"])
    record = {"source": "", "words": [], "words_before": [], "replacements": []}
    records = (
        record | {"line": n, "text": t, "text_before": t}
        for n, t in enumerate(lines, 1)
    )
    write_lines("outputs.jsonl", map(json.dumps, records))
    found = cells(paper, "table6")
    for path in dict.fromkeys(path for cell in found for path in cell.paths):
        evaluate_rouge(
            translations=Path("outputs.jsonl"),
            references=[Path("titles.txt")],
            exceptions=None,
            output=Path(path),
            test_set="test",
            settings=RougeSettings(),
            manifest={},
        )
    frame = table(paper, "table6", [path for cell in found for path in cell.paths])
    ours = frame[frame["RG-1 (ours)"].str.contains("±")]
    assert list(ours["Task"]) == ["DUC-2004", "Gigaword"]
    # Recall is 3/3 and 2/2, precision 3/3 and 2/4.
    assert list(ours["RG-1 (ours)"]) == ["100.00 ± 0.00", "83.33 ± 0.00"]
    assert "ROUGE-L recall ROUGE-1.5.5-equal|refs:1|" in ours["Metric"].iloc[0]
    assert list(ours["Test set"]) == [
        "gigaword duc2004 (2 lines)",
        "gigaword gigaword (2 lines)",
    ]


def test_scores_with_different_signatures_are_values_of_ours(paper: Settings) -> None:
    measured = cells(paper, "table4")
    cell = measured[1]
    records = [bleu(after=30.0, before=20.0 + number) for number in range(2)]
    records[1]["before_replacement"]["bleu"]["tokenized"]["signature"] = (
        "nrefs:1|tok:other"
    )
    scores = [
        write(path, record) for path, record in zip(cell.paths, records, strict=False)
    ]
    found = results(measured, entries_of(paper, measured, scores))
    first, second, *_ = table_rows(paper, "table4", found)
    assert first["BLEU (ours)"].text == "seed1 20.0; seed2 21.0"
    assert (first["BLEU (ours)"].origin, first["BLEU (ours)"].number) == ("ours", None)
    assert (second["BLEU (ours)"].text, second["BLEU (ours)"].origin) == (
        "not run",
        "absent",
    )


def test_times_stand_in_the_rows_of_their_device(paper: Settings) -> None:
    timing = {
        "lines": 6003,
        "seconds": {"score": 12.6, "signature": "a processor, 2 CPU threads"},
    }
    measured = [
        cell for cell in cells(paper, "table3") if cell.measure == "seconds_cpu"
    ]
    frame = table(paper, "table3", [write(cell.paths[0], timing) for cell in measured])
    ours = frame[frame["BLEU (ours)"] != ""]
    assert len(ours) == 12
    for system, seconds in zip(ours["System"], ours["Time (s) (ours)"], strict=True):
        assert seconds == ("12.6" if "CPU" in system else "not run")
    assert "generation time a processor, 2 CPU threads" in ours.iloc[3]["Metric"]


def test_romanian_is_scored_on_text_and_german_on_tokens(paper: Settings) -> None:
    found = [
        write(path, bleu(after=30.0, before=20.0))
        for cell in cells(paper, "table1")
        for path in cell.paths[:1]
    ]
    frame = table(paper, "table1", found)
    ours = frame[frame["BLEU (ours)"] != ""]
    assert list(ours["BLEU (ours)"]) == ["30.50", "30.50", *["30.00"] * 5]
    metric = "BLEU: detokenized BLEU nrefs:1|tok:13a; "
    metric += "Length ratio: words divided by the references'"
    assert ours.iloc[1]["Metric"] == metric
    assert ours.iloc[1]["Notes"] == "arXiv v1: BLEU 29.88"


def test_files_that_were_not_given_are_not_read(paper: Settings) -> None:
    for cell in cells(paper, "table2"):
        write(cell.paths[0], bleu(after=30.0, before=20.0))
    assert "30.00" not in list(table(paper, "table2", [])["BLEU (ours)"])


def test_a_row_that_is_left_out_is_named_above(demo: Settings) -> None:
    frame = table(demo, "figure2", [])
    assert set(frame["BLEU (ours)"]) == {"not run"}
    assert list(frame[frame["Network"] == "decoder"]["Layers"]) == [
        "1",
        "2",
        "3",
        "5",
        "7",
        "25",
    ]
    *_, said = sheet(demo, "figure2", []).headings
    assert said.startswith(
        "Left out at this scale, as scale multi30k runs the depths in between: "
    )
    assert "between: encoder 2, 3, 4, 6, " in said
    assert "; decoder 4, 6, 8, " in said
    *_, said = sheet(demo, "table1", []).headings
    assert said.endswith(
        "'14 English-German ConvS2S (BPE 40K), the 2737 lines, the Stanford corpus."
    )


def test_a_row_without_stand_in_says_so(root: Path) -> None:
    mirror = load(root, {"scale": "mirror"})
    values = list(table(mirror, "table5", [])["BLEU (ours)"])
    assert values == ["not run", *["no stand-in"] * 9]


def test_stand_ins_are_named_in_every_format(demo: Settings) -> None:
    nothing: dict[str, Any] = {"scores": [], "published": None, "failures": {}}
    for name in demo.paper:
        outputs = [Path(f"{name}{suffix}") for suffix in (".md", ".csv", ".tex")]
        write_table(demo, name, cells=cells(demo, name), outputs=outputs, **nothing)
        for output in outputs:
            assert "STAND-IN DATA" in output.read_text(encoding="utf-8")


def test_the_papers_scale_names_no_stand_in(paper: Settings) -> None:
    said = sheet(paper, "table1", []).headings
    assert said[0].startswith("Table 1: Accuracy on WMT tasks")
    assert not any("STAND-IN" in line for line in said)


def test_formats(paper: Settings) -> None:
    measured = cells(paper, "table4")
    cell = measured[1]
    found = [
        write(path, bleu(after=30.0, before=20.0 + i))
        for i, path in enumerate(cell.paths)
    ]
    for day, path in enumerate(found):
        os.utime(path, times=(day * 86400, day * 86400))
    outputs = [Path("table4.md"), Path("table4.csv"), Path("table4.tex")]
    given: dict[str, Any] = {"scores": found, "published": None, "failures": {}}
    write_table(paper, "table4", cells=measured, outputs=outputs, **given)
    markdown, csv, latex = (output.read_text(encoding="utf-8") for output in outputs)
    assert (
        "| ConvS2S [1, 2] | 6.64 | not run | 21.7 | 21.0 ± 1.0 (-0.7) | 0.980 ± 0.000 |"
        in markdown
    )
    assert markdown.count("not run") == 10
    assert (
        "Unless a footnote says otherwise: runs: 3 of 3; test set: wmt14_en_de_word "
        in markdown
    )
    assert "; computed on: a processor; " in markdown
    assert "\n[1] model files, SHA-256: 0a0a0a0a0a\n" in markdown
    training = "results/wmt14_en_de_word/models/ablation/seed{1,2,3}/training.json"
    assert f"\n[2] to run it: `snakemake {training} --config scale=paper`\n" in markdown
    frame = pd.read_csv("table4.csv", dtype=str, keep_default_na=False)
    assert frame.equals(table(paper, "table4", found))
    row = frame.iloc[0]
    assert [
        row[f"BLEU ({part})"] for part in ("difference", "mean", "deviation", "each")
    ] == [
        "-0.7",
        "21.0",
        "1.0",
        "seed1 20.0; seed2 21.0; seed3 22.0",
    ]
    assert (row["Lines"], row["Model files"], row["Scale"]) == (
        "500",
        "0a0a0a0a0a",
        "paper",
    )
    assert row["Date"] == "1970-01-01 to 1970-01-03"
    assert csv.count("\n") == 5
    rows_of_latex = re.sub(" +", " ", latex)
    row_of_latex = (
        r"-source \& target position [4, 6] & 6.68 & not run & 21.2 & not run"
    )
    assert row_of_latex in rows_of_latex
    assert r"21.0 $\pm$ 1.0 (-0.7)" in latex
    header = re.search(r"^\| (.*) \|\n\| ---", markdown, re.MULTILINE)
    assert header
    columns = header[1].replace(" | ", " & ")
    assert f"\\hline\n {columns} \\\\\n\\hline" in rows_of_latex
    assert rows_of_latex.count(columns) == 1


@pytest.mark.parametrize("name", LSTM_EXHIBITS)
def test_an_exhibit_of_the_lstm_has_the_papers_value_beside_ours(
    demo: Settings, name: str
) -> None:
    scored = bleu(after=21.0, before=20.0)
    chosen = scored | {
        "bleu": dict.fromkeys(("first", "average", "oracle"), scored["bleu"])
    }
    found = [
        write(path, (chosen if cell.n_best else scored) | {"apart": 0.21})
        for cell in cells(demo, name)
        for path in cell.paths
    ]
    rows = table(demo, name, found)
    printed, *_ = (rows[key] for key in rows.columns if key.endswith("(paper)"))
    ours, *_ = (rows[key] for key in rows.columns if key.endswith("(ours)"))
    stated = demo.paper[name].rows
    value = {"lstm_figure2": "0.21", "lstm_figure3": "21.0"}.get(name, "21.00")
    assert list(ours) == [value if row.kind == "ours" else "" for row in stated]
    assert list(map(bool, printed)) == [bool(row.paper) for row in stated]
    assert not rows["Notes"].str.contains("left out").any()


def test_an_unknown_table_is_named(paper: Settings) -> None:
    with pytest.raises(
        UserError, match="unknown table 'tabel1'; did you mean 'table1'"
    ):
        cells(paper, "tabel1")


def test_a_list_stands_beside_the_score_of_a_choice_from_it(demo: Settings) -> None:
    scores = {"first": 20.0, "average": 25.0, "oracle": 40.0}
    choices = {
        name: {"tokenized": {"score": score, "signature": "nrefs:1|tok:none"}}
        for name, score in scores.items()
    }
    paths = {path for cell in cells(demo, "lstm_table2") for path in cell.paths}
    record = bleu(after=1.0, before=1.0) | {"bleu": choices}
    found = [write(path, record) for path in sorted(paths)]
    frame = table(demo, "lstm_table2", found)
    ours = frame[frame["BLEU (ours)"] != ""]
    assert list(ours["BLEU (ours)"]) == ["20.00", "25.00", "25.00", "25.00", "40.00"]
    # The model of a row's folder chooses; the list and what is best in it are another one's.
    assert list(map(bool, ours["Model files"])) == [False, True, True, True, False]
    assert set(ours["Test set"]) == {
        "demo_en_fr_word test (500 lines), list of demo_wmt16_en_ro seed1, list20"
    }


def test_no_difference_to_the_paper_is_printed_on_stand_in_data(
    demo: Settings, paper: Settings
) -> None:
    for settings, expected in ((demo, {""}), (paper, {"+1.32"})):
        (cell,) = of_row(cells(settings, "table2"), 2)
        found = [write(cell.paths[0], bleu(after=27.75, before=20.0))]
        row = table(settings, "table2", found).iloc[2]
        assert row["BLEU (ours)"] == "27.75"
        assert {row["BLEU (difference)"]} == expected


def test_rows_say_once_what_they_share_and_exceptions_in_footnotes() -> None:
    stated = ["4", "4", "", "5"]
    rows = [
        {"System": name, "Lines": text, "Empty": ""}
        for name, text in zip("abcd", stated, strict=True)
    ]
    notes_of = {"Lines": "of {} lines"}
    written = Sheet(["T"], rows, "System", notes_of, shared=["Lines"])
    header, printed, notes = written.printed()
    assert written.above == ["T", "Unless a footnote says otherwise: of 4 lines."]
    assert (header, notes) == (["System"], ["[1] of 5 lines"])
    assert printed == [["a"], ["b"], ["c"], ["d [1]"]]


def test_a_footnote_is_of_the_values_that_differ_alone() -> None:
    """What is said of the others stands above the table, also where a row lacks one of them."""
    usual = {"BLEU": "of 4", "speed": "in fp32"}
    said = [usual, {"BLEU": "of 4"}, usual | {"speed": "in bf16"}, usual, usual]
    said += [dict.fromkeys(usual, "of 5"), {}]
    names = zip("abcdefg", said, strict=True)
    rows: list[dict[str, CellText]] = [
        {"System": name, "Metric": texts} for name, texts in names
    ]
    stated = {"Metric": "{}"}
    written = Sheet(["T"], rows, "System", stated, shared=["Metric"])
    _, printed, notes = written.printed()
    assert (
        written.above[1]
        == "Unless a footnote says otherwise: BLEU: of 4; speed: in fp32."
    )
    assert notes == ["[1] speed: in bf16", "[2] of 5"]
    assert [row[0] for row in printed] == ["a", "b", "c [1]", "d", "e", "f [2]", "g"]
    assert csv(written).splitlines()[1] == "a,BLEU: of 4; speed: in fp32"


def test_a_users_list_is_named_where_the_data_is_the_papers(paper: Settings) -> None:
    for cell in cells(paper, "lstm_table2"):
        assert cell.n_best == "data/wmt14_en_fr/newstest2014.1000best.gz"


def test_ensembles_of_the_lstm_are_larger_than_the_seeds(demo: Settings) -> None:
    of_bleu = (
        cell for cell in cells(demo, "lstm_table1") if cell.address.column == "bleu"
    )
    runs = [cell.runs for cell in of_bleu]
    singles, two, more = ("seed1",), ("ensemble2",), ("ensemble3",)
    assert runs == [singles, singles, more, two, more, more]


@pytest.fixture
def no_extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is left of what a test's configuration names."""
    monkeypatch.setenv(VARIABLE, "")


CHRF = {"key": "chrf", "name": "chrF", "measure": "chrf"}
WER = {"key": "wer", "name": "Errors", "measure": "WER", "digits": 1}


def with_columns(
    root: Path, *columns: Mapping[str, object], **overrides: object
) -> Settings:
    """The demo's configuration with further columns of table 1, and an extension's metric."""
    folder = Path("configuration")
    shutil.copytree(root / "config", folder / "config")
    for name in ("config.yaml", "examples"):
        Path(folder, name).symlink_to(root / name)
    file = folder / "config/paper.yaml"
    content = yaml.safe_load(file.read_text("utf-8"))
    content["table1"]["columns"] += columns
    file.write_text(yaml.safe_dump(content), "utf-8")
    options = {"extensions": ["examples/word_error_rate.py"], "overrides": overrides}
    return load(folder, {"scale": "demo", **options})


@pytest.mark.usefixtures("no_extensions")
def test_every_metric_of_a_score_file_can_be_a_column(root: Path) -> None:
    settings = with_columns(root, CHRF, WER, tasks={"demo_en_fr": {"metrics": ["WER"]}})
    scored = [
        cell for cell in cells(settings, "table1") if cell.address.column == "bleu"
    ]
    written = bleu(27.0, 26.0) | {
        "chrf": {"score": 51.5, "signature": "nrefs:1|nc:6"},
        "further": {"WER": {"score": 33.33, "signature": "WER|code:0a"}},
    }
    paths = [write(path, written) for cell in scored for path in cell.paths]
    shown = table(settings, "table1", paths)
    rows = settings.scale.shown_rows(settings.paper["table1"])
    for cell in scored:
        row = shown.iloc[rows.index(cell.address.row)]
        assert row["BLEU (ours)"].startswith("27.")
        assert row["chrF (ours)"].startswith("51.50")
        assert "chrF: chrF nrefs:1|nc:6" in row["Metric"]
        expected = "33.3" if cell.task == "demo_en_fr" else "not measured"
        assert row["Errors (ours)"].startswith(expected)
    assert {cell.task == "demo_en_fr" for cell in scored} == {True, False}


def test_what_no_column_shows_is_in_the_ledger_as_well(demo: Settings) -> None:
    cell = next(cell for cell in cells(demo, "table1") if cell.address.column == "bleu")
    further = {"WER": {"score": 33.3, "signature": "WER|code:0a"}}
    write(cell.paths[0], bleu(27.0, 26.0) | {"further": further})
    (entry,) = entries_of(demo, [cell], cell.paths[:1])
    assert {name: score.score for name, score in entry.scores.items()} == {
        "bleu_tokenized": 27.0,
        "bleu_detokenized": 27.5,
        "bleu_tokenized_before_replacement": 26.0,
        "before_replacement.bleu.detokenized": 26.5,
        "length_ratio": 0.98,
        "WER": 33.3,
    }


@pytest.mark.usefixtures("no_extensions")
def test_a_column_of_an_unknown_metric_is_refused(root: Path) -> None:
    message = r"paper\.yaml: table1: column wer: measure: unknown metric 'WRE'; did you mean 'WER'?"
    with pytest.raises(UserError, match=message):
        with_columns(root, WER | {"measure": "WRE"})
