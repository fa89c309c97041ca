"""The papers' tables: which runs a cell needs, and how values stand beside the paper's."""

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.config.task import RougeSettings
from convs2s.files.text import write_lines
from convs2s.layout import Layout
from convs2s.paper.cells import Cell, cells
from convs2s.paper.results import entries_of, results
from convs2s.paper.tables import sheet, table_rows, write_table
from convs2s.scoring.evaluation import evaluate_rouge
from tests.support.cells import bleu, frame_of, table, write

SCORED = bleu(after=30.0, before=20.0)

pytestmark = pytest.mark.usefixtures("in_folder")


def of_row(found: Iterable[Cell], row: int) -> list[Cell]:
    return [cell for cell in found if cell.address.row == row]


@pytest.fixture
def romanian(paper: Settings) -> Cell:
    """A cell of three seeds."""
    return of_row(cells(paper, "table1"), 1)[0]


@pytest.mark.parametrize("scale", ["paper", "multi30k", "multi30k_trained", "demo"])
def test_cells_are_of_all_rows_and_a_model_file_stands_for_one_model(
    root: Path, scale: str
) -> None:
    """And an ensemble stands for one ensemble of its table.

    Not so in tables whose rows show models that other tables train.
    """
    settings = load(root, {"scale": scale})
    stands_for: dict[object, set[object]] = {}
    trainings = set[object]()
    for name, printed in settings.paper.items():
        made = cells(settings, name)
        ours = {
            (number, column.key)
            for number in settings.scale.shown_rows(printed)
            for column in printed.columns
            if printed.rows[number].kind == "ours"
            and printed.rows[number].measures.get(column.key, column.measure)
        }
        assert {(cell.address.row, cell.address.column) for cell in made} == ours
        # No printed value is left out.
        left_out = filter(settings.scale.why_left_out, printed.rows)
        assert not any(row.paper for row in left_out) or name == "trainings"
        trainings.update(training for cell in made for training in cell.trainings)
        if name in ("further_rows", "lstm_text", "trainings"):
            continue
        for cell in made:
            row = printed.rows[cell.address.row]
            ensemble = row.runs if row.runs[0].startswith("ensemble") else ()
            alike = (name, cell.task, cell.model, cell.runs)
            stands_for.setdefault(alike, set()).add(ensemble)
            for run in cell.runs:
                for file in Layout("r", "d").task(cell.task).models(cell.model, run):
                    stands_for.setdefault(file, set()).add((row.task, row.model))
    assert stands_for
    assert not [ours for ours, papers in stands_for.items() if len(papers) > 1]
    assert len(trainings) <= 50 or scale != "demo"


def test_seeds_and_ensembles_are_as_many_as_the_scale_allows(
    paper: Settings, demo: Settings
) -> None:
    for settings, ensembles, seeds in ((paper, [8, 10], 3), (demo, [2, 3], 1)):
        found = {cell.runs for cell in cells(settings, "table2")}
        assert found == {(f"ensemble{count}",) for count in ensembles}
        assert {len(cell.runs) for cell in cells(settings, "table7")} == {seeds}


def test_a_cell_is_mean_and_deviation_over_the_runs_found(paper: Settings) -> None:
    ppl, score, length = of_row(cells(paper, "table4"), 1)
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
        "Length ratio (ours)": "0.980 ± 0.000",
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
    row = frame.iloc[1]
    assert {heading: row[heading] for heading in expected} == expected
    assert "BLEU: 1970-01-01 to 1970-01-02" in row["Date"]
    assert "before unknown word replacement nrefs:1|tok:none" in row["Metric"]


def test_runs_that_do_not_compare_have_no_mean(paper: Settings) -> None:
    """Of times on two machines, or of two versions of a metric, a mean says nothing."""
    measured = of_row(cells(paper, "table5"), 0)
    (speed,) = (cell for cell in measured if cell.measure == "training_speed")
    rates = {"one machine": 1303.0, "another": 9450.0}
    found = []
    for path, (machine, rate) in zip(speed.paths, rates.items(), strict=False):
        score = {"score": rate, "signature": machine}
        found.append(write(path, {"target_tokens_per_second": score}))
    shown = results(measured, entries_of(paper, measured, found))
    first, *_ = table_rows(paper, "table5", shown)
    name = "Training speed (target words/s)"
    ours = first[f"{name} (ours)"]
    assert (ours.text, ours.origin) == ("seed1 1303; seed2 9450", "ours")
    assert (ours.number, first[f"{name} (difference)"].text) == (None, "")
    assert "one machine another" in first["Metric"].text
    # A speed is of no test set, and no other value is there.
    assert (first["Test set"].text, first["BLEU (ours)"].origin) == ("", "absent")


def test_romanian_is_scored_on_text_and_german_on_tokens(paper: Settings) -> None:
    found = [
        write(path, SCORED)
        for cell in cells(paper, "table1")
        for path in cell.paths[:1]
    ]
    frame = table(paper, "table1", found)
    ours = frame[frame["BLEU (ours)"] != ""]
    assert list(ours["BLEU (ours)"]) == ["30.50", "30.50", *["30.00"] * 5]
    assert ours.iloc[1]["Metric"].startswith("BLEU: detokenized BLEU nrefs:1|tok:13a;")
    assert ours.iloc[1]["Notes"] == "arXiv v1: BLEU 29.88"
    # What was not given is not read.
    assert "30.00" not in list(table(paper, "table1", [])["BLEU (ours)"])


def test_table_6_shows_what_an_evaluation_says(paper: Settings) -> None:
    write_lines("titles.txt", ["the cats sleep", "a dog"])
    record = {"source": "", "words": [], "words_before": [], "replacements": []}
    lines = []
    for number, text in enumerate(["the cat sleeps", "a dog ran off"], start=1):
        texts = {"line": number, "text": text, "text_before": text}
        lines.append(json.dumps(record | texts))
    write_lines("outputs.jsonl", lines)
    paths = {path for cell in cells(paper, "table6") for path in cell.paths}
    for path in paths:
        evaluate_rouge(
            translations=Path("outputs.jsonl"),
            references=[Path("titles.txt")],
            exceptions=None,
            output=Path(path),
            test_set="test",
            settings=RougeSettings(),
            manifest={},
        )
    frame = table(paper, "table6", list(paths))
    ours = frame[frame["RG-1 (ours)"].str.contains("±")]
    # Recall is 3/3 and 2/2, precision 3/3 and 2/4.
    assert list(ours["RG-1 (ours)"]) == ["100.00 ± 0.00", "83.33 ± 0.00"]
    assert list(ours["Test set"]) == [
        "gigaword duc2004 (2 lines)",
        "gigaword gigaword (2 lines)",
    ]


def test_a_list_stands_beside_the_score_of_a_choice_from_it(
    demo: Settings, paper: Settings
) -> None:
    scores = {"first": 20.0, "average": 25.0, "oracle": 40.0}
    choices = {
        name: {"tokenized": {"score": score, "signature": "nrefs:1"}}
        for name, score in scores.items()
    }
    paths = {path for cell in cells(demo, "lstm_table2") for path in cell.paths}
    found = [write(path, SCORED | {"bleu": choices}) for path in sorted(paths)]
    frame = table(demo, "lstm_table2", found)
    ours = frame[frame["BLEU (ours)"] != ""]
    assert list(ours["BLEU (ours)"]) == ["20.00", "25.00", "25.00", "25.00", "40.00"]
    # The model of a row's folder chooses; the list and what is best in it are another one's.
    assert list(map(bool, ours["Model files"])) == [False, True, True, True, False]
    assert set(ours["Test set"]) == {
        "demo_en_fr_word test (500 lines), list of demo_wmt16_en_ro seed1, list20"
    }
    lists = {cell.n_best for cell in cells(paper, "lstm_table2")}
    assert lists == {"data/wmt14_en_fr/newstest2014.1000best.gz"}


def test_no_difference_to_the_paper_is_printed_on_stand_in_data(
    demo: Settings, paper: Settings
) -> None:
    for settings, expected in ((demo, ""), (paper, "+1.32")):
        (cell,) = of_row(cells(settings, "table2"), 2)
        found = [write(cell.paths[0], bleu(after=27.75, before=20.0))]
        row = table(settings, "table2", found).iloc[2]
        assert (row["BLEU (ours)"], row["BLEU (difference)"]) == ("27.75", expected)
    # Nor of a text that is no number.
    assert set(table(paper, "lstm_table2", [])["BLEU (difference)"]) == {""}


def test_what_a_scale_leaves_out_or_puts_in_place_is_said(
    root: Path, demo: Settings, paper: Settings
) -> None:
    title, stand_in, *_, left_out = sheet(demo, "figure2", []).headings
    assert title.startswith("Figure 2: ")
    assert stand_in.startswith("STAND-IN DATA: generated sentences")
    assert "runs the depths in between: encoder 2, 3, 4, 6, " in left_out
    assert "; decoder 4, 6, 8, " in left_out
    layers = table(demo, "figure2", [])["Layers"]
    assert list(layers)[-6:] == ["1", "2", "3", "5", "7", "25"]
    assert not any("STAND-IN" in line for line in sheet(paper, "table1", []).headings)
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
    assert set(ours[["Runs", "Test set", "Metric", "Processor"]].values.flat) == {""}
    ensembles = table(paper, "table2", []).iloc[2]
    assert "/ensemble8/newstest2014_filtered.beam5_en_de" in ensembles["Command"]
    assert ensembles["Cost"] == "8 trainings, 3,552.0 of the papers' GPU-hours"
    assert "speed" not in table(paper, "figure3", [])


def test_the_command_names_what_is_missing_alone(
    paper: Settings, romanian: Cell
) -> None:
    seeds = [write(path, SCORED) for path in romanian.paths]
    frames = [table(paper, "table1", seeds[:count]).iloc[1] for count in (1, 3)]
    found = [tuple(row[["BLEU (difference)", "Runs", "Cost"]]) for row in frames]
    assert found == [
        ("+1.05", "1 of 3", "2 trainings, 360.0 of the papers' GPU-hours"),
        ("+1.05", "3 of 3", ""),
    ]
    assert "/seed{2,3}/newstest2016.beam5.bleu.json" in frames[0]["Command"]
    assert frames[1]["Command"] == ""
    # A published number has a mark.
    entries = entries_of(paper, [romanian], seeds[:1])
    published = [replace(entry, origin="theirs") for entry in entries]
    row = frame_of(paper, "table1", results([romanian], published)).iloc[1]
    assert (row["BLEU (ours)"], row["Origin"]) == ("30.50 †", "theirs")


def test_a_model_that_another_column_knows_needs_no_training(paper: Settings) -> None:
    ppl, score, _ = of_row(cells(paper, "table4"), 0)
    found = [write(path, {"validation_perplexity": 6.5}) for path in ppl.paths[:2]]
    own = entries_of(paper, [ppl], found)
    # A published ledger has no models.
    published = [replace(entry, origin="theirs") for entry in own]
    for entries, cost in ((own, "1 training"), (published, "3 trainings")):
        frame = frame_of(paper, "table4", results([ppl, score], entries))
        assert frame.iloc[0]["Cost"] == f"{cost}, hours: see preflight"


@pytest.mark.parametrize("there", [0, 2])
def test_a_failed_run_says_why(paper: Settings, romanian: Cell, there: int) -> None:
    """In place of the number, or beside the mean of the others."""
    found = [write(path, SCORED) for path in romanian.paths[:there]]
    entries = entries_of(paper, [romanian], found)
    failures = {romanian.records[2].fingerprint: "failed: no memory"}
    shown = results([romanian], entries, failures)
    row = frame_of(paper, "table1", shown).iloc[1]
    said = (row["BLEU (ours)"], row["Notes"])
    assert said == (
        ("30.50 ± 0.00", "seed3 failed: no memory")
        if there
        else ("failed: no memory", "")
    )


@pytest.mark.parametrize(
    ("overlap", "mark", "note"),
    [
        (None, "", ""),
        ({"pairs": 500, "both": 0, "source": 0, "target": 0}, "", ""),
        ({"pairs": 500, "both": 4, "source": 9, "target": 4}, ", 3", "4 of 500 pairs"),
        ({"pairs": 500, "both": 0, "source": 0, "target": 1}, ", 3", "0 of 500 pairs"),
    ],
)
def test_a_printed_table_has_the_values_and_their_footnotes(
    paper: Settings, overlap: dict[str, int] | None, mark: str, note: str
) -> None:
    measured = cells(paper, "table4")
    found = [
        write(path, bleu(after=30.0, before=20.0 + seed) | {"overlap": overlap})
        for seed, path in enumerate(measured[1].paths)
    ]
    output = Path("table4.md")
    given: dict[str, Any] = {"scores": found, "published": None, "failures": {}}
    write_table(paper, "table4", cells=measured, outputs=[output], **given)
    markdown = output.read_text("utf-8")
    row = "| 6.64 | not run | 21.7 | 21.0 ± 1.0 (-0.7) | 0.980 ± 0.000 |"
    assert f"| ConvS2S [1, 2{mark}] {row}" in markdown
    assert ("are also in the training text;" in markdown) == bool(note)
    assert note in markdown
    shared = (
        "Unless a footnote says otherwise: runs: 3 of 3; test set: wmt14_en_de_word "
    )
    assert shared in markdown
    assert "\n[1] model files, SHA-256: 0a0a0a0a0a\n" in markdown
    training = "results/wmt14_en_de_word/models/ablation/seed{1,2,3}/training.json"
    assert f"\n[2] to run it: `snakemake {training} --config scale=paper`\n" in markdown
