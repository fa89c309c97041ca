"""What a run will take, as preflight prints it before the run starts."""

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.costs import measured
from convs2s.costs.budget import Budget, budgets, levels
from convs2s.costs.exhibits import costs
from convs2s.costs.measured import MeasuredSpeed
from convs2s.costs.memory import requested_memory
from convs2s.costs.preflight import (
    Machine,
    preflight,
    refusals,
    report,
    training_rows,
)
from convs2s.costs.roofline import CalculatedSpeed, Update, Work
from convs2s.paper.cells import cells
from tests.support import tiny
from tests.support.own_pair import TASK
from tests.support.refusals import rows

GOLDEN = Path(__file__).with_name("data") / "preflight.txt"
LARGE = Machine(results=10**13, downloads=10**13, is_one_disk=True, memory=10**11)
GIGA_FREN = "www.statmt.org/wmt10/training-giga-fren.tar"

MINE = Path("config/tasks/mine.yaml")


@pytest.fixture(autouse=True)
def mine(copy: Path, in_folder: None) -> None:
    """A copy of the configuration has a task of one's own."""
    MINE.write_text(TASK)


def headline(settings: Settings, task: str = "mine") -> Budget:
    """The budget of a headline, of the task of one's own unless another is named."""
    return budgets(settings, [task], [])[0]


def with_small(training: str) -> Settings:
    """The configuration with another recipe of the model small."""
    recipe = yaml.safe_load(f"models: {{small: {{training: {{{training}}}}}}}")
    return load(Path(), {"overrides": recipe})


def write_training_text(pairs: int) -> None:
    for side in ("train.en", "train.fr"):
        Path(side).write_text("Go.\n" * pairs)


def test_the_budget_of_some_tasks_is_as_recorded(settings: Settings) -> None:
    """After a meant change of a figure: write what is printed into the file."""
    tasks = "wmt14_en_fr wmt14_en_fr_word wmt14_en_de wmt14_en_de_word gigaword"
    # Ensembles of 8 with the headline's seeds among them, and ablations.
    wanted = [*cells(settings, "table2"), *cells(settings, "table5")]
    found = budgets(settings, [*tasks.split(), "wmt14_en_fr_released"], wanted)
    h100 = CalculatedSpeed(settings.costs.gpus[0], settings.costs)
    said = report(settings, found, LARGE, h100)
    # Of tables hours stand once, as they say what they take; table 4 has none in the paper.
    tables = {name: cells(settings, name) for name in ("table1", "table4")}
    of_text = budgets(settings, ["wmt14_en_fr"], [])
    of_tables = costs(settings, tables, Path("benchmarks"))
    said += report(settings, of_text, LARGE, h100, of_tables)
    assert said == GOLDEN.read_text("utf-8")


def test_the_papers_english_french(root: Path, settings: Settings) -> None:
    found = headline(settings, "wmt14_en_fr")
    (training,) = found.trainings
    assert training.work.parameters == pytest.approx(230e6, rel=0.02)
    (_, _, before), (_, during, after) = list(levels(found.stages))[-2:]
    # A model and what it is exported from, of four bytes a parameter; two states while one runs.
    assert after - before == 3 * 2 * 4 * training.work.parameters
    assert during - after == 2 * training.state_bytes
    # The demo ends before its schedule would: its last states stay, for more epochs.
    demo, *_ = headline(settings, "demo_en_fr").trainings
    assert demo.kept_bytes == 2 * demo.state_bytes
    # The page states disk and downloads.
    page = (root / "docs/preflight.md").read_text("utf-8")
    incoming = sum(size or 0 for size in found.downloads.values()) / 1e9
    row = rf"^\| `wmt14_en_fr` \| {incoming:.1f}.* \| {found.disk / 1e9:.0f} GB \|$"
    assert re.search(row, page, re.MULTILINE)


def test_a_training_asks_for_the_memory_of_all_workers_of_a_node(
    settings: Settings,
) -> None:
    none, one, four, eight = (
        requested_memory(settings, "wmt14_en_fr", "wmt14_en_fr", gpus)
        for gpus in (0, 1, 4, 8)
    )
    assert none == one == 16_000
    assert eight == pytest.approx(2 * four, abs=1)
    # The outside estimate of what eight take, and a small node.
    assert 25_000 < eight < 64_000
    options = settings.options.model_copy(update={"device": "cuda", "gpus": 8})
    (training,) = headline(replace(settings, options=options), "wmt14_en_fr").trainings
    assert training.memory == pytest.approx(eight * 1e6, rel=0.001)


def test_models_that_a_task_begins_with_are_downloaded() -> None:
    """Of local files none is missed: the workflow may make it, and its plan says if it cannot."""
    for place, fetched in (("https://a.example", 2), ("results", 0)):
        MINE.write_text(f"{TASK}vocabulary_of: {place}/words.safetensors\n")
        start = f"{{from: {place}/start.safetensors, as: initialise}}"
        found = headline(with_small(f"start: {start}"))
        assert len(found.downloads) == fetched
        assert "safetensors" not in "".join(found.missing)


def test_a_download_has_its_size_by_http_and_by_https_until_it_is_there() -> None:
    MINE.write_text(TASK.replace("train.en", f"https://{GIGA_FREN}#a"))
    settings = load(Path())
    assert f"http://{GIGA_FREN}" in settings.downloads
    assert headline(settings).downloads == {GIGA_FREN: 2_595_102_720}
    place = Path("results/downloads", GIGA_FREN)
    place.parent.mkdir(parents=True)
    place.touch()
    assert headline(settings).downloads == {}


def test_pairs_follow_from_the_text() -> None:
    settings = load(Path())
    assert headline(settings).pairs is None
    for side in ("train.en", "train.fr"):
        Path(side).write_bytes(bytes(138_000))
    assert headline(settings).pairs == 1000  # by its size
    write_training_text(1313)
    assert headline(settings).pairs == 1313
    # Both sides are fields of one file, whose other fields are no text of the task.
    fields = "source: t.jsonl.gz#first, target: t.jsonl.gz#title"
    MINE.write_text(TASK.replace("source: train.en, target: train.fr", fields))
    record = b'{"first": "Go.", "title": "Va !", "article": "' + bytes(5_000) + b'"}\n'
    Path("t.jsonl.gz").write_bytes(gzip.compress(record * 31))
    assert headline(load(Path())).pairs == 31


FITS = """
wmt14_en_fr_word => {} => nothing
wmt14_en_fr_word => {memory: 1_000_000_000} => but this machine has 1.0 GB
wmt14_en_fr_word => {results: 27_000_000_000} => nothing
wmt14_en_fr_word => {results: 26_000_000_000} => results take 26.7 GB of
wmt14_en_fr_word => {downloads: 1_000_000_000} => downloads take 6.7 GB of
wmt14_en_de => {is_one_disk: true, results: 9_000_000_000} => take 9.9 GB of
wmt14_en_de => {is_one_disk: true, downloads: 0, memory: null} => nothing
gigaword => {} => gigaword needs data/gigaword/train.article.txt,
"""


def test_what_does_not_fit_is_refused(settings: Settings) -> None:
    for task, changes, reason in rows(FITS):
        machine = replace(LARGE, **{"is_one_disk": False, **yaml.safe_load(changes)})
        reasons = refusals([headline(settings, task)], machine)
        assert len(reasons) == (reason != "nothing")
        assert reason in "".join(reasons or ["nothing"])
    # Results that are there need no more space.
    found = headline(settings, "wmt14_en_fr_word")
    tight = replace(LARGE, is_one_disk=False, results=int(found.disk) - 10**6)
    for present in (0, 10**6 + 1):
        reasons = refusals([replace(found, present=present)], tight)
        assert bool(reasons) == (present == 0)


def test_a_measured_machine_takes_the_hours_of_its_cores_for_what_is_not_finished() -> (
    None
):
    """Of a CPU on which each update takes half a second."""
    write_training_text(12_000)
    settings = with_small("threads: 2")
    found = headline(settings)
    seconds = 12_000 / 140_000 + 12_000 / 8_700  # the text is read once, and prepared
    assert found.stages[0].core_hours == pytest.approx(seconds / 3600)
    cpu = Mock(device="a CPU", is_gpu=False, gpu=None)
    cpu.update.return_value = Update(0.5, "fp32", None)
    (row,) = training_rows(found, cpu)
    hours = 6 * 12_000 * 30 / (2000 / 0.5) / 3600
    assert (row.hours, row.device_hours) == pytest.approx((hours, 2 * hours))
    (before,) = found.trainings
    assert (before.epochs, before.epoch_tokens) == (6, 30 * 12_000)
    model = Path("results/mine/models/small/seed1/model.safetensors")
    model.parent.mkdir(parents=True)
    model.touch()
    (after,) = headline(settings).trainings
    assert (before.missing, after.missing, after.runs) == (1, 0, 1)


def test_updates_are_measured_where_jobs_run_here(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each network: what is kept is used for larger ones."""
    monkeypatch.setattr(measured, "_SECONDS", 0)
    log = Path("preflight.log")
    preflight(
        load(Path(), {"device": "cpu", "cores": 1}),
        tasks=["demo_en_fr"],
        cells={},
        benchmarks=Path("benchmarks"),
        is_local=True,
        log=log,
    )
    assert re.search("^demo +2 +1 CPU thread +fp32 ", log.read_text(), re.MULTILINE)
    model = tiny.settings({"positions": {"maximum": 64}}, batch={"sentences": 8})
    small = Work(model.architecture, model.training, (50, 50), tokens=240, threads=1)
    wider = model.architecture.model_copy(update={"embedding": 64})
    works = [replace(small, architecture=wider), small]
    kept = Path("kept.json")
    first = MeasuredSpeed(works, settings.costs, "cpu", kept)
    assert first.update(small, 240).seconds > 0
    # The smallest network alone was measured.
    ((key, figures),) = json.loads(kept.read_text("utf-8")).items()
    assert len(figures) == 2
    kept.write_text(json.dumps({key: [2, 0.5]}))
    again = MeasuredSpeed(works, settings.costs, "cpu", kept)
    assert again.update(small, 10).seconds == 2 + 0.5 * 10
    ratio = works[0].weights / small.weights
    assert again.update(works[0], 10).seconds == pytest.approx(7 * ratio)
