"""What a table says of runs that are not there: the command, its cost, why they failed."""

import pytest

from convs2s.config.settings import Settings
from convs2s.paper.results import entries_of, results
from tests.support.cells import bleu, cells, frame_of, of_row, table, write

pytestmark = pytest.mark.usefixtures("in_folder")


def test_what_is_not_run_says_how_to_and_what_it_takes(paper: Settings) -> None:
    frame = table(paper, "table1", [])
    ours = frame[frame["BLEU (ours)"] == "not run"]
    seeds = "results/wmt16_en_ro/models/wmt16_en_ro/seed{1,2,3}/newstest2016.beam5.bleu.json"
    assert ours["Command"].iloc[1] == f"snakemake {seeds} --config scale=paper"
    assert list(ours["Cost"])[1:3] == [
        "3 trainings, 540.0 GPU-hours",
        "3 trainings, 1,332.0 GPU-hours",
    ]
    assert set(table(paper, "table4", [])["Cost"]) == {
        "3 trainings, hours: see preflight"
    }
    ensemble = table(paper, "table2", [])["Command"].iloc[2]
    assert "/ensemble8/newstest2014_filtered.beam5_en_de.bleu.json --config" in ensemble
    assert (
        table(paper, "table2", [])["Cost"].iloc[2] == "8 trainings, 3,552.0 GPU-hours"
    )


def test_the_command_names_what_is_missing_alone(paper: Settings) -> None:
    cell = of_row(cells(paper, "table1"), 1)[0]
    row = table(
        paper, "table1", [write(cell.paths[1], bleu(after=30.0, before=20.0))]
    ).iloc[1]
    assert row["BLEU (ours)"] == "30.50"
    assert row["BLEU (difference)"] == "+1.05"
    assert "/seed{1,3}/newstest2016.beam5.bleu.json" in row["Command"]
    assert (row["Runs"], row["Cost"]) == ("1 of 3", "2 trainings, 360.0 GPU-hours")


def test_a_model_that_another_column_knows_needs_no_training(paper: Settings) -> None:
    perplexity, *_ = of_row(cells(paper, "table4"), 0)
    assert perplexity.address.column == "ppl"
    found = [
        write(path, {"validation_perplexity": 6.5}) for path in perplexity.paths[:2]
    ]
    row = table(paper, "table4", found).iloc[0]
    assert row["Cost"] == "1 training, hours: see preflight"
    assert row["Command"].count("snakemake") == 1


def test_what_is_not_there_is_no_run_of_a_test_set(paper: Settings) -> None:
    """A row without a number has none of the footnotes that say how numbers came about."""
    row = table(paper, "table2", []).iloc[2]
    assert row["BLEU (ours)"] == "not run"
    assert set(row[["Runs", "Test set", "Metric", "Processor"]]) == {""}


def test_a_speed_of_training_is_of_no_test_set(paper: Settings) -> None:
    measured = of_row(cells(paper, "table5"), 0)
    (speed,) = (one for one in measured if "speed" in one.measure)
    (score,) = (one for one in measured if "bleu" in one.measure)
    rate = {"score": 9000.0, "signature": "median over 3 epochs, a processor"}
    found = [
        write(speed.paths[0], {"target_tokens_per_second": rate}),
        write(score.paths[0], bleu(after=30.0, before=20.0)),
    ]
    stated = table(paper, "table5", found).iloc[0]["Test set"]
    assert stated.startswith("wmt14_en_de_word newstest2014")
    assert "speed" not in stated


def test_runs_that_do_not_compare_have_no_mean(paper: Settings) -> None:
    """Of times on two machines, or of two versions of a metric, a mean says nothing."""
    (speed,) = (
        one for one in of_row(cells(paper, "table5"), 0) if "speed" in one.measure
    )
    found = [
        write(
            path, {"target_tokens_per_second": {"score": score, "signature": machine}}
        )
        for path, score, machine in zip(
            speed.paths,
            (1303.0, 9450.0, 9421.0),
            ("one machine", "another", "another"),
            strict=True,
        )
    ]
    row = table(paper, "table5", found).iloc[0]
    name = "Training speed (target words/s)"
    assert row[f"{name} (ours)"] == "seed1 1303; seed2 9450; seed3 9421"
    assert row[f"{name} (difference)"] == ""
    assert "one machine another" in row["Metric"]


def test_what_is_there_has_no_command(paper: Settings) -> None:
    cell = of_row(cells(paper, "table1"), 1)[0]
    found = [write(path, bleu(after=30.0, before=20.0)) for path in cell.paths]
    row = table(paper, "table1", found).iloc[1]
    assert (row["Runs"], row["Command"], row["Cost"]) == ("3 of 3", "", "")


def test_text_that_is_no_number_has_no_difference(paper: Settings) -> None:
    frame = table(paper, "lstm_table2", [])
    assert frame["BLEU (paper)"].iloc[-2] == "~45"
    assert set(frame["BLEU (difference)"]) == {""}


def test_a_failed_run_says_why(paper: Settings) -> None:
    cell = of_row(cells(paper, "table1"), 1)[0]
    failed_runs = (record.fingerprint for record in cell.records[1:])
    why = dict.fromkeys(failed_runs, "failed: the loss is not finite")
    failed = frame_of(paper, "table1", results([cell], [], failures=why)).iloc[1]
    assert failed["BLEU (ours)"] == "failed: the loss is not finite"


def test_a_failed_seed_is_named_beside_the_mean_of_the_others(paper: Settings) -> None:
    cell = of_row(cells(paper, "table1"), 1)[0]
    there = [write(path, bleu(after=30.0, before=20.0)) for path in cell.paths[:2]]
    entries = entries_of(paper, [cell], there)
    found = results(
        [cell], entries, failures={cell.records[2].fingerprint: "failed: no memory"}
    )
    row = frame_of(paper, "table1", found).iloc[1]
    assert row["BLEU (ours)"] == "30.50 ± 0.00"
    assert row["Notes"] == "seed3 failed: no memory"
    assert row["Runs"] == "2 of 3"
