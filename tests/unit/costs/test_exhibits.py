"""What each table and figure takes: measured, expected, and as the papers state it."""

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from convs2s.config.load import load
from convs2s.config.measures import MEASURES
from convs2s.config.settings import Settings
from convs2s.costs.exhibits import PaperCosts, costs, printed_cost
from convs2s.costs.page import write_costs
from convs2s.errors import UserError
from convs2s.paper.cells import Cell
from convs2s.paper.trained import Hours
from tests.support.cells import cells
from tests.support.rules import rules

pytestmark = pytest.mark.usefixtures("in_folder")

BENCHMARK = "s\th:m:s\tmax_rss\tmean_load\tcpu_time\n{}\t0:00:36\t{}\t{}\t{}\n"


@pytest.fixture(scope="module")
def multi30k(root: Path) -> Settings:
    """The configuration of a scale with recipes that end by themselves."""
    return load(root, {"scale": "multi30k"})


def write_training(
    folder: str, *, seconds: float, tokens: int = 36_000, epochs: int = 1, gpus: int = 0
) -> None:
    """Write what a training of one thread, or of some GPUs, leaves beside its model."""
    run = Path(folder)
    run.mkdir(parents=True)
    fields = (
        "updates",
        "learning_rate",
        "train_loss",
        "valid_loss",
        "valid_perplexity",
    )
    row = dict.fromkeys(fields, 1) | {
        "tokens": tokens,
        "tokens_per_second": tokens / seconds,
    }
    machine = {"threads": 2, "workers": gpus or 1, **({"gpu": "a GPU"} if gpus else {})}
    lines = [
        {"epoch": number + 1, "machine": machine, **row} for number in range(epochs)
    ]
    written = "".join(f"{json.dumps(line)}\n" for line in [*lines, {"stop": "done"}])
    run.joinpath("history.jsonl").write_text(written, encoding="utf-8")
    run.joinpath("training.json").write_text(
        json.dumps({"manifest": machine}), encoding="utf-8"
    )


def benchmark(path: str, cpu: str, wall: str = "36.0") -> None:
    """Write a benchmark file as Snakemake does."""
    file = Path("benchmarks", path)
    file.parent.mkdir(parents=True, exist_ok=True)
    memory, load = ("NA", "NA") if cpu == "NA" else ("90.1", "99.0")
    file.write_text(BENCHMARK.format(wall, memory, load, cpu), encoding="utf-8")


def folder_of(cell: Cell, run: int = 0) -> str:
    return str(Path(cell.paths[run]).parent)


def of(settings: Settings, *names: str) -> dict[str, Sequence[Cell]]:
    return {name: cells(settings, name) for name in names}


def found(settings: Settings, *names: str) -> PaperCosts:
    return costs(settings, of(settings, *names), Path("benchmarks"))


def test_a_training_counts_in_each_table_and_once_in_the_sum(
    multi30k: Settings,
) -> None:
    ensembles = {(one.task, one.model) for one in cells(multi30k, "table2")}
    shared = next(
        c for c in cells(multi30k, "table1") if (c.task, c.model) in ensembles
    )
    write_training(folder_of(shared), seconds=1800, epochs=2)
    both = found(multi30k, "table1", "table2")
    for cost in both.exhibits.values():
        assert (cost.finished, cost.measured) == (1, Hours(cores=2.0))
    assert (both.total.finished, both.total.measured) == (1, Hours(cores=2.0))
    assert both.total.trainings < sum(cost.trainings for cost in both.exhibits.values())


def test_gpus_and_cores_are_told_apart(multi30k: Settings) -> None:
    cell = cells(multi30k, "table1")[0]
    write_training(folder_of(cell, 0), seconds=3600, gpus=8)
    write_training(folder_of(cell, 1), seconds=3600)
    Path(folder_of(cell, 1), "training.json").unlink()
    write_training(folder_of(cell, 2), seconds=3600)
    Path(folder_of(cell, 2), "history.jsonl").unlink()
    cost = found(multi30k, "table1").exhibits["table1"]
    assert cost.measured == Hours(gpus=8.0)
    # The second goes on: its history grows from its first epoch, its record comes at its end.
    assert cost.finished == 2


def test_other_seeds_tell_what_a_missing_one_takes(multi30k: Settings) -> None:
    cell = cells(multi30k, "table1")[0]
    write_training(folder_of(cell, 0), seconds=3600)
    write_training(folder_of(cell, 1), seconds=1800)
    alone = costs(multi30k, {"table1": [cell]}, Path("benchmarks")).exhibits["table1"]
    assert alone.measured == Hours(cores=3.0)
    assert (alone.to_come, alone.unknown) == (Hours(cores=1.5), 0)


def test_a_rate_of_the_same_kind_of_network_tells_what_another_model_takes(
    multi30k: Settings,
) -> None:
    first, *others = cells(multi30k, "table5")
    other = next(cell for cell in others if cell.model != first.model)
    assert first.task == other.task
    write_training(folder_of(first, 0), seconds=3600, tokens=7200)
    table = {"table5": [first, other]}
    left = costs(multi30k, table, Path("benchmarks")).exhibits["table5"].to_come
    epochs = multi30k.models[other.model].training.maximum_epochs
    assert epochs is not None
    # An epoch takes two core-hours. Of the first model's other seeds, that is what they take.
    absent = len(first.runs) - 1
    assert left is not None
    assert left.cores == pytest.approx(2.0 * absent + 2.0 * epochs * len(other.runs))
    lstm = cells(multi30k, "lstm_table1")[0]
    unknown = costs(
        multi30k, {"table5": [first], "lstm_table1": [lstm]}, Path("benchmarks")
    )
    assert unknown.exhibits["lstm_table1"].unknown == len(lstm.runs)


def test_a_training_on_cores_and_gpus_has_a_rate_for_each(multi30k: Settings) -> None:
    first, *others = cells(multi30k, "table5")
    other = next(cell for cell in others if cell.model != first.model)
    folder = folder_of(first, 0)
    write_training(folder, seconds=3600, tokens=7200, epochs=2, gpus=1)
    on_gpu, on_cores, end = (
        Path(folder, "history.jsonl").read_text("utf-8").splitlines()
    )
    row = json.loads(on_cores) | {"machine": {"threads": 2, "workers": 1}}
    Path(folder, "history.jsonl").write_text(
        f"{on_gpu}\n{json.dumps(row)}\n{end}\n", "utf-8"
    )
    table = {"table5": [first, other]}
    left = costs(multi30k, table, Path("benchmarks")).exhibits["table5"].to_come
    epochs = multi30k.models[other.model].training.maximum_epochs
    assert epochs is not None
    # An epoch takes an hour on the GPU. The other seeds of the first model take what it took.
    absent = len(first.runs) - 1
    assert left is not None
    assert left.gpus == pytest.approx(absent + epochs * len(other.runs))
    assert left.cores == pytest.approx(2.0 * absent)


def test_before_the_first_run_a_stated_figure_of_another_model_tells(
    multi30k: Settings,
) -> None:
    cell = next(c for c in cells(multi30k, "table1") if c.task == "multi30k_en_de")
    cost = costs(multi30k, {"table1": [cell]}, Path("benchmarks")).exhibits["table1"]
    known = multi30k.costs.training("multi30k_en_de", "small")
    assert known is not None
    epochs = [
        multi30k.models[name].training.maximum_epochs for name in (cell.model, "small")
    ]
    assert epochs[0] is not None
    assert epochs[1] is not None
    assert cost.to_come is not None
    assert cost.to_come.cores == pytest.approx(
        len(cell.runs) * known.hours * epochs[0] / epochs[1]
    )


def test_nothing_measured_is_not_taken_for_no_time(
    multi30k: Settings, paper: Settings
) -> None:
    cost = found(multi30k, "lstm_table1").exhibits["lstm_table1"]
    assert (cost.measured, cost.to_come, cost.unknown) == (None, None, cost.trainings)
    # The papers' own figures are of other devices.
    assert found(paper, "table1").exhibits["table1"].to_come is None


def test_decoding_and_scoring_are_those_of_the_table(multi30k: Settings) -> None:
    cell = next(c for c in cells(multi30k, "table1") if c.decoding == "beam5")
    stem = f"{cell.task}/{cell.model}/{cell.runs[0]}/{cell.testset}.beam5"
    benchmark(f"{stem}.decode.tsv", "3600.00")
    benchmark(f"{stem}.bleu.tsv", "NA")  # too short to be sampled: its time counts
    benchmark(f"{stem}.cpu.speed.tsv", "7200.00")
    benchmark(f"{cell.task}/{cell.model}/{cell.runs[0]}/train.tsv", "9000.00")
    benchmark(f"{cell.task}/align_words.tsv", "1440.00")
    benchmark(f"{cell.task}/extract_corpus/train.tsv", "360.00")
    benchmark("demo_en_fr/align_words.tsv", "3600.00")  # of a task that no table has
    table = found(multi30k, "table1")
    assert table.exhibits["table1"].jobs == pytest.approx(1.01)
    assert table.shared == pytest.approx(2.5)
    assert table.total.jobs == pytest.approx(3.51)


def test_a_benchmark_that_was_cut_is_named(multi30k: Settings) -> None:
    benchmark("paper/write_ledger.tsv", "")
    path = Path("benchmarks/paper/write_ledger.tsv")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(
        UserError, match=f"^{path}: not a benchmark of Snakemake's: remove it"
    ):
        found(multi30k, "table1")


def test_tuning_a_length_penalty_counts(multi30k: Settings) -> None:
    cell = next(c for c in cells(multi30k, "table1") if c.decoding == "beam5_en_de")
    tuned_on = multi30k.scale.development_set(
        multi30k.tasks[cell.task], multi30k.decodings["beam5_en_de"]
    )
    stem = f"{cell.task}/{cell.model}/{cell.runs[0]}/{tuned_on}.beam5_en_de"
    benchmark(f"{stem}.nbest.tsv", "3600.00")
    benchmark(f"{stem}.length_penalty.tsv", "1800.00")
    assert found(multi30k, "table1").exhibits["table1"].jobs == pytest.approx(1.5)


def test_every_job_between_a_model_and_a_number_is_known_by_its_rule(
    root: Path, multi30k: Settings
) -> None:
    every = [cell for name in multi30k.paper for cell in cells(multi30k, name)]
    assert {cell.measure for cell in every} >= {
        "bleu_rescored",
        "phrases_apart",
        "seconds_cuda",
    }
    costs(
        multi30k,
        {name: cells(multi30k, name) for name in multi30k.paper},
        Path("benchmarks"),
    )
    stated = "".join(rules(root))
    for stem in (
        "decode",
        "bleu",
        "rouge",
        "example",
        "{device}.speed",
        "nbest",
        "length_penalty",
    ):
        # A job's benchmark has the name of its log (rules/fingerprints.smk).
        path = (
            f'"<logs>/{{task}}/{{model}}/{{run}}/{{testset}}.{{decoding}}.{stem}.log"'
        )
        assert path in stated
    of_test_set = ("{testset}.scored", "{testset}.rescored", "{testset}.perplexity")
    for name in (*of_test_set, "phrases.{phrases}"):
        assert f'"<logs>/{{task}}/{{model}}/{{run}}/{name}.log"' in stated
    assert len({measure.file for measure in MEASURES.values()}) == 10


def test_the_papers_state_four_trainings_of_table_1(paper: Settings) -> None:
    stated = printed_cost(paper, ["table1"])
    assert {one.model: one.hours for one in stated.stated} == {
        "wmt14_en_de": 444,
        "wmt14_en_fr": 37 * 24 * 8,
        "wmt14_en_fr_small": 14 * 24 * 8,
        "wmt16_en_ro": 180,
    }
    ablations = printed_cost(paper, ["table4"])
    assert (ablations.stated, ablations.hours) == ([], 0)
    assert len(ablations.unstated) == 4
    both = found(paper, "table1", "table2", "table4")
    assert both.total.printed.hours == stated.hours  # each model once


def test_a_model_and_its_recipe_in_fp32_are_one_training_of_the_paper(
    paper: Settings,
) -> None:
    recipes = printed_cost(paper, ["recipes"])
    assert {run.model for run in recipes.stated} == {
        *("wmt14_en_de", "wmt14_en_fr", "wmt14_en_fr_small", "wmt16_en_ro")
    }
    assert {model for _, model in recipes.unstated} == {"ablation_own_recipe"}
    every = printed_cost(paper, ["trainings"])
    assert every.hours == found(paper, *paper.paper).total.printed.hours


def test_the_page_tells_what_is_not_known_from_nothing(multi30k: Settings) -> None:
    cell = cells(multi30k, "table1")[0]
    write_training(folder_of(cell), seconds=3600)
    benchmark(f"{cell.task}/align_words.tsv", "1800.00")
    outputs = [Path("costs.md"), Path("costs.csv")]
    names = of(multi30k, "table1", "table4")
    write_costs(multi30k, cells=names, benchmarks=Path("benchmarks"), outputs=outputs)
    frame = pd.read_csv("costs.csv", dtype=str, keep_default_na=False, index_col=0)
    assert list(frame.index) == [
        "table1",
        "table4",
        "shared by several",
        "all, each run once",
    ]
    assert frame.loc["table1", "Core-hours"] == "2.00"
    assert frame.loc["table1", "The papers' GPU-hours"] == "10416.00"
    assert frame.loc["table4", "Core-hours"] == ""
    assert frame.loc["table4", "The papers' GPU-hours"] == "not stated"
    assert frame.loc["shared by several", "Other jobs, core-hours"] == "0.5000"
    assert set(frame["Scale"]) == {"multi30k (STAND-IN DATA)"}
    page = Path("costs.md").read_text("utf-8")
    assert "**STAND-IN DATA: " in page
    assert (
        "| wmt14_en_fr | wmt14_en_fr | 7104.00 | the paper: 37 days on 8 GPUs;" in page
    )


def test_at_a_scale_where_nothing_ran_the_page_says_not_measured(
    paper: Settings,
) -> None:
    outputs = [Path("costs.csv")]
    write_costs(
        paper, cells=of(paper, "table1"), benchmarks=Path("none"), outputs=outputs
    )
    frame = pd.read_csv("costs.csv", dtype=str, keep_default_na=False, index_col=0)
    assert frame.loc["table1", "To come, GPU-hours"] == "not measured"
    row = dict(frame.loc["table1"])
    assert row["To come, trainings not measured"] == row["Trainings"]
