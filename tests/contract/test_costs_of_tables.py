"""What each table and figure takes: measured, and as the papers state it."""

import re
from pathlib import Path

import pandas as pd
import pytest

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.costs.exhibits import PaperCosts, costs, printed_cost
from convs2s.costs.page import write_costs
from convs2s.files.text import write_lines
from convs2s.paper.cells import Cell, cells
from convs2s.paper.trained import Hours
from tests.support.refusals import rows, says

pytestmark = pytest.mark.usefixtures("in_folder")

BENCHMARKS = Path("benchmarks")
EPOCH = (
    '{"epoch": %d, "updates": 1, "learning_rate": 1, "train_loss": 1, "valid_loss": 1, '
    '"valid_perplexity": 1, "tokens": 7200, "tokens_per_second": %f, "machine": {"threads": 2%s}}'
)


@pytest.fixture(scope="module")
def multi30k(root: Path) -> Settings:
    """The configuration of a scale with recipes that end by themselves."""
    return load(root, {"scale": "multi30k"})


def train(cell: Cell, run: int, *, hours: float, gpus: tuple[int, ...] = (0,)) -> Path:
    """Write what a training leaves: each epoch on two threads or on GPUs, 7,200 tokens."""
    folder = Path(cell.paths[run]).parent
    history = []
    for number, count in enumerate(gpus, start=1):
        gpu = f', "workers": {count}, "gpu": "a GPU"' if count else ', "workers": 1'
        history.append(EPOCH % (number, 2 / hours, gpu))
    write_lines(folder / "history.jsonl", [*history, '{"stop": "done"}'])
    write_lines(folder / "training.json", ['{"manifest": {"threads": 2}}'])
    return folder


def benchmark(path: str, cpu_seconds: str) -> None:
    lines = ["s\th:m:s\tcpu_time", f"36.0\t0:00:36\t{cpu_seconds}"]
    write_lines(BENCHMARKS / path, lines)


def found(settings: Settings, *names: str) -> PaperCosts:
    return costs(settings, {name: cells(settings, name) for name in names}, BENCHMARKS)


def test_a_training_counts_in_each_table_and_once_in_the_sum(
    multi30k: Settings,
) -> None:
    ensembles = {(one.task, one.model) for one in cells(multi30k, "table2")}
    table1 = cells(multi30k, "table1")
    shared = next(cell for cell in table1 if (cell.task, cell.model) in ensembles)
    train(shared, 0, hours=0.5, gpus=(0, 0))
    both = found(multi30k, "table1", "table2")
    counted = [*both.exhibits.values(), both.total]
    assert {(cost.finished, cost.measured) for cost in counted} == {(1, Hours(cores=2))}
    assert both.total.trainings < sum(cost.trainings for cost in counted[:2])


def test_gpus_and_cores_are_told_apart(multi30k: Settings) -> None:
    cell = cells(multi30k, "table1")[0]
    assert found(multi30k, "table1").total.measured is None
    train(cell, 0, hours=1, gpus=(8, 0))
    # The second goes on; of the third the time is not recorded.
    (train(cell, 1, hours=1) / "training.json").unlink()
    (train(cell, 2, hours=1) / "history.jsonl").unlink()
    cost = found(multi30k, "table1").total
    assert (cost.measured, cost.finished) == (Hours(gpus=8, cores=2), 2)


def test_decoding_scoring_and_tuning_are_the_tables_and_the_rest_is_shared(
    multi30k: Settings,
) -> None:
    of_search = {cell.decoding: cell for cell in cells(multi30k, "table1")}
    cell, tuned = of_search["beam5"], of_search["beam5_en_de"]
    run = f"{cell.task}/{cell.model}/{cell.runs[0]}"
    tuning = f"{tuned.task}/{tuned.model}/{tuned.runs[0]}/valid.beam5_en_de"
    # Of a job that was too short, its time counts; what a training took, its history tells; and no
    # table has the last task.
    for path, cpu_seconds in rows(f"""
        {run}/{cell.testset}.beam5.decode => 3600.00
        {run}/{cell.testset}.beam5.bleu => NA
        {tuning}.nbest => 3600.00
        {tuning}.length_penalty => 1800.00
        {run}/{cell.testset}.beam5.cpu.speed => 7200.00
        {cell.task}/align_words => 1440.00
        {cell.task}/extract_corpus/train => 360.00
        {run}/train => 9000.00
        demo_en_fr/align_words => 3600.00
    """):
        benchmark(f"{path}.tsv", cpu_seconds)
    table = found(multi30k, "table1")
    assert table.exhibits["table1"].jobs == pytest.approx(1.01 + 1.5)
    assert table.shared == pytest.approx(2.5)
    assert table.total.jobs == pytest.approx(1.01 + 1.5 + 2.5)


def test_every_job_between_a_model_and_a_number_is_known_by_its_rule(
    root: Path, multi30k: Settings
) -> None:
    rules = "".join(path.read_text("utf-8") for path in root.glob("rules/*.smk"))
    logs = re.findall(r'"<logs>/(.*)\.log"', rules)
    # A job's benchmark has the name of its log (rules/fingerprints.smk).
    known = re.compile("|".join(re.sub(r"{\w+}", "[^/]+", log) for log in logs))
    count = 0
    for name in multi30k.paper:
        for cell in cells(multi30k, name):
            for job in cell.jobs:
                assert known.fullmatch(f"{cell.task}/{cell.model}/seed1/{job}"), job
                count += 1
    assert count


def test_a_training_that_the_papers_state_counts_once(paper: Settings) -> None:
    stated = printed_cost(paper, ["table1"])
    hours = [one.hours for one in stated.stated]
    assert sorted(hours) == [180, 444, 14 * 24 * 8, 37 * 24 * 8]
    # Models in fp32, as the paper trained them, are no others.
    assert printed_cost(paper, ["recipes"]).hours == stated.hours
    both = found(paper, "table1", "table2", "table4")
    assert both.total.printed.hours == stated.hours


def test_the_page_has_what_is_measured_and_what_is_stated(multi30k: Settings) -> None:
    names = "table1", "lstm_table1", "table4"
    tables = {name: cells(multi30k, name) for name in names}
    cell = tables["table1"][0]
    train(cell, 0, hours=1)
    benchmark(f"{cell.task}/align_words.tsv", "1800.00")
    page, table = outputs = [Path("costs.md"), Path("costs.csv")]
    write_costs(multi30k, cells=tables, benchmarks=BENCHMARKS, outputs=outputs)
    frame = pd.read_csv(table, dtype=str, keep_default_na=False, index_col=0)
    assert list(frame.index[-2:]) == ["shared by several", "all, each run once"]
    columns = ["Core-hours", "The papers' GPU-hours", "Other jobs, core-hours"]
    assert frame[columns].to_numpy().tolist() == rows("""
        2.00 => 10416.00 => 0.00
        => 3840.00 => 0.00
        => not stated => 0.00
        => => 0.5000
        2.00 => 14256.00 => 0.5000
    """)
    assert set(frame["Scale"]) == {"multi30k (STAND-IN DATA)"}
    stated = "| wmt14_en_fr | wmt14_en_fr | 7104.00 | the paper: 37 days"
    says(page.read_text("utf-8"), "**STAND-IN DATA: ", stated)
