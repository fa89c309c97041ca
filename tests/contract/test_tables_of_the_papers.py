"""The papers' tables and the page of results: which runs a cell needs, what is shown of them."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.layout import Layout
from convs2s.paper.cells import Cell, cells
from convs2s.paper.charts import padded
from convs2s.paper.results import entries_of, results
from convs2s.paper.results_page import write_results_page
from convs2s.paper.tables import sheet, write_table
from convs2s.paper.trends import trend_panels
from tests.contract.documents import svg_texts
from tests.contract.score_files import read, scored_rouge
from tests.contract.shown_tables import frame_of, table
from tests.support.cells import bleu, write
from tests.support.refusals import refusal, refuses, rows, says

SCORED = bleu(after=30.0, before=20.0)

pytestmark = pytest.mark.usefixtures("in_folder")


OF_OTHER_TABLES = {"further_rows", "lstm_text", "opponents", "trainings"}


def of_row(settings: Settings, table: str, row: int) -> list[Cell]:
    return [cell for cell in cells(settings, table) if cell.address.row == row]


def test_a_model_file_stands_for_one_model(root: Path) -> None:
    """Not so in tables whose rows show models that other tables train."""
    for scale in ("paper", "multi30k", "multi30k_trained", "demo"):
        settings = load(root, {"scale": scale})
        papers: dict[str, object] = {}
        for name in settings.paper.keys() - OF_OTHER_TABLES:
            for cell in cells(settings, name):
                row = settings.paper[name].rows[cell.address.row]
                shown = row.task, row.model
                files = Layout("r", "d").task(cell.task)
                for run in cell.runs:
                    for file in files.models(cell.model, run):
                        assert papers.setdefault(file, shown) == shown
        assert papers


def said(settings: Settings, name: str, row: int, scores: Sequence[str]) -> str:
    """Return what a row of a table says: a line for each column that is not empty."""
    texts = table(settings, name, scores).iloc[row]
    return "".join(f"{heading}: {text}\n" for heading, text in texts.items() if text)


NO_SOURCE_POSITION = """\
System: -source position
Validation perplexity (paper): 6.69
Validation perplexity (ours): 6.65
Validation perplexity (difference): -0.04
Validation perplexity (mean): 6.65
Validation perplexity (each): seed1 6.65
BLEU (paper): 21.3
BLEU (ours): 21.5 ± 0.7
BLEU (difference): +0.2
BLEU (mean): 21.5
BLEU (deviation): 0.7
BLEU (each): seed1 21.0; seed3 22.0
Length ratio (ours): 0.980 ± 0.000
Length ratio (mean): 0.980
Length ratio (deviation): 0.000
Length ratio (each): seed1 0.980; seed3 0.980
Lines: 2737
Scale: paper
Runs: Validation perplexity: 1 of 3; BLEU: 2 of 3; Length ratio: 2 of 3
Test set: wmt14_en_de_word newstest2014_filtered (2,737 lines)
Metric: Validation perplexity: perplexity of the validation data; BLEU: tokenized BLEU before \
unknown word replacement nrefs:1|tok:none; Length ratio: words divided by the references'
Processor: a processor
Date: Validation perplexity: 1970-01-03; BLEU: 1970-01-01 to 1970-01-02; Length ratio: 1970-01-01 \
to 1970-01-02
Model files: 0a0a0a0a0a
Command: snakemake RUNS/seed{2,3}/training.json RUNS/seed2/newstest2014_filtered.beam5.bleu.json \
--config scale=paper
Cost: 1 training, hours: see preflight
"""


def test_a_cell_is_mean_and_deviation_over_the_runs_found(paper: Settings) -> None:
    """What is missing can be run, and a training is made for both of its numbers."""
    ppl, score, _ = of_row(paper, "table4", 1)
    found = [
        write(score.paths[0], bleu(after=30.0, before=21.0, lines=2737)),
        write(score.paths[2], bleu(after=30.0, before=22.0, lines=2737)),
        write(ppl.paths[0], {"validation_perplexity": 6.654}),
    ]
    for day, path in enumerate(found):
        os.utime(path, times=(86400 * day, 86400 * day))
    row = said(paper, "table4", 1, found)
    runs = "results/wmt14_en_de_word/models/ablation_no_source_position"
    assert row.replace(runs, "RUNS") == NO_SOURCE_POSITION


def test_runs_that_do_not_compare_have_no_mean(paper: Settings) -> None:
    """Such as those of two versions of a metric, or times on two machines."""
    first, second, _ = of_row(paper, "table1", 1)[0].paths
    other = json.loads(json.dumps(SCORED).replace("nrefs:1", "nrefs:2"))
    found = [write(first, SCORED), write(second, other)]
    row = said(paper, "table1", 1, found)
    says(row, "BLEU (ours): seed1 30.50; seed2 30.50\n", "nrefs:1|tok", "nrefs:2|tok")
    assert "BLEU (mean)" not in row
    assert "BLEU (difference)" not in row


ROMANIAN = """
BLEU (difference): +0.48
Runs: 1 of 3
Metric: BLEU: detokenized BLEU nrefs:1|tok:13a; Length ratio: words divided by the references'
Command: snakemake RUNS/seed{2,3}/newstest2016.beam5.bleu.json --config scale=paper
Cost: 2 trainings, 360.0 of the papers' GPU-hours
Notes: arXiv v1: BLEU 29.88
"""


def test_romanian_is_scored_on_text_and_german_on_tokens(paper: Settings) -> None:
    found = [
        write(path, SCORED)
        for cell in cells(paper, "table1")
        for path in cell.paths[:1]
    ]
    scores = [score for score in table(paper, "table1", found)["BLEU (ours)"] if score]
    assert scores == ["30.50", "30.50", *["30.00"] * 5]
    row = said(paper, "table1", 2, found)
    row = row.replace("results/wmt16_en_ro/models/wmt16_en_ro", "RUNS")
    assert set(ROMANIAN.split("\n")) <= set(row.split("\n"))
    # What was not given is not read.
    assert "30.00" not in list(table(paper, "table1", [])["BLEU (ours)"])


def test_table_6_shows_what_an_evaluation_says(paper: Settings) -> None:
    scored = read(scored_rouge(Path(), "rouge.json"))
    found = [
        write(path, scored) for one in cells(paper, "table6") for path in one.paths
    ]
    for row, testset, measure in ((3, "duc2004", "recall"), (7, "gigaword", "f1")):
        score = scored["rouge"]["rouge_1"][measure]["score"]
        text = said(paper, "table6", row, found)
        test_set = f"Runs: 3 of 3\nTest set: gigaword {testset} (3 lines)\n"
        says(text, f"RG-1 (ours): {score:.2f} ± 0.00\n", test_set)
        assert not re.search("Cost|Command", text)  # all runs are there


def test_a_list_stands_beside_the_score_of_a_choice_from_it(demo: Settings) -> None:
    choices = {}
    for name, score in (("first", 20.0), ("average", 25.0), ("oracle", 40.0)):
        choices[name] = {"tokenized": {"score": score, "signature": "nrefs:1"}}
    paths = {path for cell in cells(demo, "lstm_table2") for path in cell.paths}
    found = [write(path, SCORED | {"bleu": choices}) for path in sorted(paths)]
    # The model of a row's folder chooses; the list and what is best in it are another one's.
    for row, score, has_model in ((1, 20, False), (4, 25, True), (8, 40, False)):
        text = said(demo, "lstm_table2", row, found)
        listed = (
            "demo_en_fr_word test (500 lines), list of demo_wmt16_en_ro seed1, list20"
        )
        says(text, f"BLEU (ours): {score}.00\n", listed)
        assert ("Model files: " in text) == has_model


def test_what_a_scale_leaves_out_or_puts_in_place_is_said(
    root: Path, demo: Settings, paper: Settings
) -> None:
    says(
        "\n".join(sheet(demo, "figure2", []).headings),
        "Figure 2: ",
        "\nSTAND-IN DATA: generated sentences",
        "runs the depths in between: encoder 2, 3, 4, 6, ",
        "; decoder 4, 6, 8, ",
    )
    assert "STAND-IN" not in "".join(sheet(paper, "table1", []).headings)
    # Nor is a difference to the paper printed on such data.
    (cell,) = of_row(demo, "table2", 2)
    row = said(demo, "table2", 2, [write(cell.paths[0], SCORED)])
    assert "BLEU (ours): 30.00\n" in row
    assert "difference" not in row
    values = list(table(load(root, {"scale": "mirror"}), "table5", [])["BLEU (ours)"])
    assert values == ["not run", *["no stand-in"] * 9]


# ---- runs that are not there ----

# What a row of a table says.
NOT_RUN = """
table1 => 2 => Command: snakemake RUNS/seed{1,2,3}/newstest2016.beam5.bleu.json --config scale=paper
table1 => 7 => Cost: 3 trainings, 1,332.0 of the papers' GPU-hours
table2 => 2 => Cost: 8 trainings, 3,552.0 of the papers' GPU-hours
table2 => 2 => /ensemble8/newstest2014_filtered.beam5_en_de.bleu.json --config scale=paper
"""


def test_what_is_not_run_says_how_to_and_what_it_takes(paper: Settings) -> None:
    for name, row, words in rows(NOT_RUN):
        text = said(paper, name, int(row), [])
        runs = "results/wmt16_en_ro/models/wmt16_en_ro"
        says(text.replace(runs, "RUNS"), "BLEU (ours): not run\n", f"{words}\n")
    assert "speed" not in table(paper, "figure3", [])


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


def test_a_failed_run_says_why(paper: Settings) -> None:
    """In place of the number, or beside the mean of the others."""
    romanian = of_row(paper, "table1", 1)[0]
    found = [write(path, SCORED) for path in romanian.paths[:2]]
    failures = {romanian.records[2].fingerprint: "failed: no memory"}
    for there, value, note in (
        ([], "failed: no memory", ""),
        (found, "30.50 ± 0.00", "seed3 failed: no memory"),
    ):
        shown = results([romanian], entries_of(paper, [romanian], there), failures)
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
        found = []
        for path, score in zip(measured[1].paths, (20.0, 21.0, 22.0), strict=True):
            scored = bleu(after=30.0, before=score) | {"overlap": overlap}
            found.append(write(path, scored))
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


# ---- trends ----


def test_on_stand_in_data_each_side_has_an_axis_of_its_own(paper: Settings) -> None:
    paths = [
        path for row in (0, 1) for path in of_row(paper, "table7", row)[0].paths[:2]
    ]
    scored = zip(paths, (40.0, 41.0, 41.0, 42.0), strict=True)
    found = [write(path, bleu(after=50.0, before=score)) for path, score in scored]
    measured = cells(paper, "table7")
    shown = results(measured, entries_of(paper, measured, found))
    printed = [float(str(row.paper["bleu"])) for row in paper.paper["table7"].rows]
    ours = [40.5 - 0.5**0.5, 41.5 + 0.5**0.5]
    scale = paper.scale.model_copy(update={"stand_in": "captions"})
    other = replace(paper, scale=scale)
    for theirs, is_small, channel in ((printed[:2], True, "y"), (printed, False, "x")):
        for settings, expected in (
            (paper, [padded([*theirs, *ours])] * 2),
            (other, [padded(theirs), padded(ours)]),
        ):
            axes = []
            for panel in trend_panels(settings, "table7", shown, is_small=is_small)[0]:
                encodings = panel["encoding"] | panel["layer"][-1].get("encoding", {})
                axes.append(encodings[channel]["scale"]["domain"])
            assert axes == expected


# ---- columns of further metrics ----

OPTIONS = """
scale: demo
extensions: [examples/word_error_rate.py]
overrides: {tasks: {demo_en_fr: {metrics: [WER]}}}
"""
COLUMNS = """
- {key: chrf, name: chrF, measure: chrf}
- {key: wer, name: Errors, measure: WER, digits: 1}
"""


def with_columns(root: Path, columns: str) -> Settings:
    """The demo's configuration with further columns of table 1, and an extension's metric."""
    content = yaml.safe_load((root / "config/paper.yaml").read_text("utf-8"))
    content["table1"]["columns"] += yaml.safe_load(columns)
    Path("config/paper.yaml").write_text(yaml.safe_dump(content), "utf-8")
    return load(Path(), yaml.safe_load(OPTIONS))


def test_a_column_names_a_metric_and_shows_its_scores(root: Path, copy: Path) -> None:
    Path("examples").symlink_to(root / "examples")
    settings = with_columns(root, COLUMNS)
    scored = [
        cell for cell in cells(settings, "table1") if cell.address.column == "bleu"
    ]
    further = """
    chrf: {score: 51.5, signature: "nrefs:1|nc:6"}
    further: {WER: {score: 33.33, signature: "WER|code:0a"}}
    """
    written = bleu(27.0, 26.0) | yaml.safe_load(further)
    assert scored
    paths = [write(path, written) for cell in scored for path in cell.paths]
    shown = table(settings, "table1", paths)
    numbers = settings.scale.shown_rows(settings.paper["table1"])
    for cell in scored:
        row = shown.iloc[numbers.index(cell.address.row)]
        assert row["chrF (ours)"].startswith("51.50")
        assert "chrF: chrF nrefs:1|nc:6" in row["Metric"]
        expected = "33.3" if cell.task == "demo_en_fr" else "not measured"
        assert row["Errors (ours)"].startswith(expected)
    message = refusal(with_columns, root, COLUMNS.replace("WER", "WRE"))
    says(message, "paper.yaml: table1: column wer ... 'WRE'; did you mean 'WER'?")


# ---- the page of results ----

TITLES = re.compile(r"^(#+ .*?)(?::| and| at| of|$)", re.MULTILINE)


def test_the_page_shows_what_was_run_alone(demo: Settings) -> None:
    """All runs but the last row's of table 1."""
    Path("page").mkdir()
    measured = [
        cell for name in ("table1", "table7", "figure2") for cell in cells(demo, name)
    ]
    scores = [
        write(cell.paths[0], SCORED)
        for cell in measured
        if (cell.address.table, cell.address.row) != ("table1", 14)
    ]
    entries = entries_of(demo, measured, scores)
    output = Path("page.md")
    write_results_page(
        demo, entries, ledger="a.jsonl", discussion="## Discussion\n", output=output
    )
    page = output.read_text("utf-8")
    tables = Path("page/tables.md").read_text("utf-8")
    claims = Path("page/claims.md").read_text("utf-8")
    # Nothing of table 2 was run, and no claim has a verdict.
    assert TITLES.findall(page)[1:] == ["## Table 1", "## Discussion"]
    assert all(claim.says in page for claim in demo.claims.values())
    assert TITLES.findall(claims) == ["# Claims", "## Comparisons"]
    title, *parts = TITLES.findall(tables)
    assert title == "# Every table"
    assert {f"## Table {number}" for number in range(1, 9)} <= set(parts)
    links = re.findall(r"\]\((page/[^)]*)\)", page)
    assert sorted(set(links)) == sorted(map(str, Path("page").iterdir()))
    assert "| not run [" in claims
    trends = svg_texts(Path("page/trends.svg"))
    assert {"Table 1", "Table 7", "paper: BLEU", "ours: BLEU"} <= trends


def test_what_makes_no_page_is_refused(demo: Settings) -> None:
    Path("file").touch()
    for output, words in (
        ("page", "page: ... ends in .md"),
        ("page.md", "a: has no run of scale demo ... --scale"),
        ("file.md", "file.md: ... no file named file"),
    ):
        stated = {"ledger": "a", "discussion": "", "output": Path(output)}
        refuses(words, write_results_page, demo, [], **stated)
    assert not Path("page").exists()
