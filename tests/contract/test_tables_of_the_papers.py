"""The papers' tables: which runs a cell needs, and how values stand beside the paper's."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.layout import Layout
from convs2s.paper.cells import Cell, cells
from convs2s.paper.results import entries_of, results
from convs2s.paper.tables import sheet, write_table
from tests.support.cells import bleu, frame_of, table, write
from tests.support.refusals import says
from tests.support.score_files import read, scored_rouge

SCORED = bleu(after=30.0, before=20.0)

pytestmark = pytest.mark.usefixtures("in_folder")


def of_row(settings: Settings, table: str, row: int) -> list[Cell]:
    return [cell for cell in cells(settings, table) if cell.address.row == row]


@pytest.fixture
def romanian(paper: Settings) -> Cell:
    """A cell of three seeds."""
    return of_row(paper, "table1", 1)[0]


@pytest.mark.parametrize("scale", ["paper", "multi30k", "multi30k_trained", "demo"])
def test_a_model_file_stands_for_one_model(root: Path, scale: str) -> None:
    """Not so in tables whose rows show models that other tables train."""
    settings = load(root, {"scale": scale})
    stands_for: dict[object, set[object]] = {}
    for name in settings.paper.keys() - {"further_rows", "lstm_text", "trainings"}:
        for cell in cells(settings, name):
            row = settings.paper[name].rows[cell.address.row]
            for run in cell.runs:
                for file in Layout("r", "d").task(cell.task).models(cell.model, run):
                    stands_for.setdefault(file, set()).add((row.task, row.model))
    assert stands_for
    assert not [ours for ours, papers in stands_for.items() if len(papers) > 1]


def test_a_cell_is_mean_and_deviation_over_the_runs_found(paper: Settings) -> None:
    ppl, score, length = of_row(paper, "table4", 1)
    assert score.paths == length.paths
    found = [
        write(score.paths[0], bleu(after=30.0, before=21.0, lines=2737)),
        write(score.paths[2], bleu(after=30.0, before=22.0, lines=2737)),
        write(ppl.paths[0], {"validation_perplexity": 6.654}),
    ]
    os.utime(found[1], times=(86400, 86400))
    os.utime(found[0], times=(0, 0))
    frame = table(paper, "table4", found)
    assert frame.iloc[0]["BLEU (ours)"] == "not run"
    expected = {
        "Validation perplexity (ours)": "6.65",
        "BLEU (ours)": "21.5 ± 0.7",
        "BLEU (difference)": "+0.2",
        "BLEU (mean)": "21.5",
        "BLEU (deviation)": "0.7",
        "BLEU (each)": "seed1 21.0; seed3 22.0",
        "Runs": "Validation perplexity: 1 of 3; BLEU: 2 of 3; Length ratio: 2 of 3",
        "Test set": "wmt14_en_de_word newstest2014_filtered (2,737 lines)",
        "Model files": "0a0a0a0a0a",
        "Scale": "paper",
    }
    row = dict(frame.iloc[1])
    assert row == row | expected
    says(row["Date"], "BLEU: 1970-01-01 to 1970-01-02")
    says(row["Metric"], "before unknown word replacement nrefs:1|tok:none")


def test_runs_that_do_not_compare_have_no_mean(paper: Settings, romanian: Cell) -> None:
    """Such as those of two versions of a metric, or times on two machines."""
    other = json.loads(json.dumps(SCORED).replace("nrefs:1", "nrefs:2"))
    found = [write(romanian.paths[0], SCORED), write(romanian.paths[1], other)]
    row = table(paper, "table1", found).iloc[1]
    assert row["BLEU (ours)"] == "seed1 30.50; seed2 30.50"
    assert (row["BLEU (mean)"], row["BLEU (difference)"]) == ("", "")
    says(row["Metric"], "nrefs:1|tok:13a", "nrefs:2|tok:13a")


def test_romanian_is_scored_on_text_and_german_on_tokens(paper: Settings) -> None:
    found = [
        write(path, SCORED)
        for cell in cells(paper, "table1")
        for path in cell.paths[:1]
    ]
    frame = table(paper, "table1", found)
    ours = [score for score in frame["BLEU (ours)"] if score]
    assert ours == ["30.50", "30.50", *["30.00"] * 5]
    row = frame.iloc[2]
    says(row["Metric"], "BLEU: detokenized BLEU nrefs:1|tok:13a;")
    assert row["Notes"] == "arXiv v1: BLEU 29.88"
    # What was not given is not read.
    assert "30.00" not in list(table(paper, "table1", [])["BLEU (ours)"])


def test_table_6_shows_what_an_evaluation_says(paper: Settings) -> None:
    scored = read(scored_rouge(Path(), "rouge.json"))
    found = [
        write(path, scored) for one in cells(paper, "table6") for path in one.paths
    ]
    frame = table(paper, "table6", found)
    ours = frame[frame["RG-1 (ours)"] != ""]
    assert list(ours["Test set"]) == [
        "gigaword duc2004 (3 lines)",
        "gigaword gigaword (3 lines)",
    ]
    for text, measure in zip(ours["RG-1 (ours)"], ("recall", "f1"), strict=True):
        assert text == f"{scored['rouge']['rouge_1'][measure]['score']:.2f} ± 0.00"


def test_a_list_stands_beside_the_score_of_a_choice_from_it(demo: Settings) -> None:
    choices = {}
    for name, score in (("first", 20.0), ("average", 25.0), ("oracle", 40.0)):
        choices[name] = {"tokenized": {"score": score, "signature": "nrefs:1"}}
    paths = {path for cell in cells(demo, "lstm_table2") for path in cell.paths}
    found = [write(path, SCORED | {"bleu": choices}) for path in sorted(paths)]
    frame = table(demo, "lstm_table2", found)
    ours = frame[frame["BLEU (ours)"] != ""]
    assert list(ours["BLEU (ours)"]) == ["20.00", "25.00", "25.00", "25.00", "40.00"]
    # The model of a row's folder chooses; the list and what is best in it are another one's.
    assert list(map(bool, ours["Model files"])) == [False, True, True, True, False]
    (named,) = set(ours["Test set"])
    says(named, "demo_en_fr_word test (500 lines), list of demo_wmt16_en_ro seed1")


def test_no_difference_to_the_paper_is_printed_on_stand_in_data(
    demo: Settings, paper: Settings
) -> None:
    for settings, expected in ((demo, ""), (paper, "+1.32")):
        (cell,) = of_row(settings, "table2", 2)
        found = [write(cell.paths[0], bleu(after=27.75, before=20.0))]
        row = table(settings, "table2", found).iloc[2]
        assert (row["BLEU (ours)"], row["BLEU (difference)"]) == ("27.75", expected)
    # Nor of a text that is no number.
    assert set(table(paper, "lstm_table2", [])["BLEU (difference)"]) == {""}


def test_what_a_scale_leaves_out_or_puts_in_place_is_said(
    root: Path, demo: Settings, paper: Settings
) -> None:
    said = "\n".join(sheet(demo, "figure2", []).headings)
    says(said, "Figure 2: ", "\nSTAND-IN DATA: generated sentences")
    says(
        said, "runs the depths in between: encoder 2, 3, 4, 6, ", "; decoder 4, 6, 8, "
    )
    layers = table(demo, "figure2", [])["Layers"]
    assert list(layers)[-6:] == ["1", "2", "3", "5", "7", "25"]
    assert "STAND-IN" not in "".join(sheet(paper, "table1", []).headings)
    mirror = load(root, {"scale": "mirror"})
    values = list(table(mirror, "table5", [])["BLEU (ours)"])
    assert values == ["not run", *["no stand-in"] * 9]


# ---- runs that are not there ----


def test_what_is_not_run_says_how_to_and_what_it_takes(paper: Settings) -> None:
    frame = table(paper, "table1", [])
    ours = frame[frame["BLEU (ours)"] == "not run"]
    seeds = "results/wmt16_en_ro/models/wmt16_en_ro/seed{1,2,3}/newstest2016.beam5.bleu.json"
    assert ours["Command"].iloc[1] == f"snakemake {seeds} --config scale=paper"
    assert ours["Cost"].iloc[2] == "3 trainings, 1,332.0 of the papers' GPU-hours"
    ensembles = table(paper, "table2", []).iloc[2]
    says(ensembles["Command"], "/ensemble8/newstest2014_filtered.beam5_en_de")
    assert ensembles["Cost"] == "8 trainings, 3,552.0 of the papers' GPU-hours"
    assert "speed" not in table(paper, "figure3", [])


def test_the_command_names_what_is_missing_alone(
    paper: Settings, romanian: Cell
) -> None:
    seeds = [write(path, SCORED) for path in romanian.paths]
    row = table(paper, "table1", seeds[:1]).iloc[1]
    assert (row["BLEU (difference)"], row["Runs"]) == ("+1.05", "1 of 3")
    assert row["Cost"] == "2 trainings, 360.0 of the papers' GPU-hours"
    says(row["Command"], "/seed{2,3}/newstest2016.beam5.bleu.json")
    row = table(paper, "table1", seeds).iloc[1]
    assert (row["Runs"], row["Cost"], row["Command"]) == ("3 of 3", "", "")


def test_a_model_that_another_column_knows_needs_no_training(paper: Settings) -> None:
    ppl, score, _ = of_row(paper, "table4", 0)
    found = [write(path, {"validation_perplexity": 6.5}) for path in ppl.paths[:2]]
    own = entries_of(paper, [ppl], found)
    # A published ledger has no models, and its numbers have a mark.
    published = [replace(entry, origin="theirs") for entry in own]
    for entries, cost, ours in (
        (own, "1 training", "6.50 ± 0.00"),
        (published, "3 trainings", "6.50 ± 0.00 †"),
    ):
        row = frame_of(paper, "table4", results([ppl, score], entries)).iloc[0]
        assert row["Cost"] == f"{cost}, hours: see preflight"
        assert row["Validation perplexity (ours)"] == ours


def test_a_failed_run_says_why(paper: Settings, romanian: Cell) -> None:
    """In place of the number, or beside the mean of the others."""
    found = [write(path, SCORED) for path in romanian.paths[:2]]
    failures = {romanian.records[2].fingerprint: "failed: no memory"}
    for there, value, note in (
        ([], "failed: no memory", ""),
        (found, "30.50 ± 0.00", "seed3 failed: no memory"),
    ):
        entries = entries_of(paper, [romanian], there)
        shown = results([romanian], entries, failures)
        row = frame_of(paper, "table1", shown).iloc[1]
        assert (row["BLEU (ours)"], row["Notes"]) == (value, note)


def test_a_printed_table_has_the_values_and_their_footnotes(paper: Settings) -> None:
    measured = cells(paper, "table4")
    output = Path("table4.md")
    training = "results/wmt14_en_de_word/models/ablation/seed{1,2,3}/training.json"
    for both, target, mark, note in (
        (0, 0, "", ""),
        (4, 4, ", 3", "4 of 500 pairs"),
        (0, 1, ", 3", "0 of 500 pairs"),
    ):
        overlap = {"pairs": 500, "both": both, "source": both, "target": target}
        found = [
            write(path, bleu(after=30.0, before=20.0 + seed) | {"overlap": overlap})
            for seed, path in enumerate(measured[1].paths)
        ]
        write_table(
            paper,
            "table4",
            cells=measured,
            scores=found,
            published=None,
            failures={},
            outputs=[output],
        )
        markdown = output.read_text("utf-8")
        assert ("are also in the training text;" in markdown) == bool(note)
        says(
            markdown,
            f"| ConvS2S [1, 2{mark}] | 6.64 | not run | 21.7 | 21.0 ± 1.0 (-0.7) | 0.980 ± 0.000 |",
            "Unless a footnote says otherwise: runs: 3 of 3; test set: wmt14_en_de_word ",
            "\n[1] model files, SHA-256: 0a0a0a0a0a\n",
            f"\n[2] to run it: `snakemake {training} --config scale=paper`\n",
            note,
        )
