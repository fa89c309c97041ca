"""What a run will take, and what cannot fit."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.costs.budget import Budget, Stage, budgets, levels
from convs2s.costs.exhibits import costs
from convs2s.costs.memory import requested_memory
from convs2s.costs.preflight import Machine, refusals, report
from convs2s.costs.roofline import estimate
from tests.support.cells import cells
from tests.support.user_task import TASK
from tests.unit.config.writing import append

LARGE = Machine(results=10**13, downloads=10**13, is_one_disk=True, memory=10**11)
GIGA_FREN = "www.statmt.org/wmt10/training-giga-fren.tar"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the workflow would run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mine(copy: Path) -> Path:
    """The folder with a copy of the configuration that has a task of one's own."""
    (copy / "config/tasks/mine.yaml").write_text(TASK)
    return copy


def headline(settings: Settings, task: str) -> Budget:
    """The budget of a task's headline."""
    return budgets(settings, [task], [])[0]


def text(settings: Settings, budgets: list[Budget]) -> str:
    return report(settings, budgets, LARGE)


def test_levels_of_the_disk() -> None:
    stages = [Stage("extract", 5), Stage("clean", 4, 5), Stage("binarize", 2, 1)]
    assert [level[1:] for level in levels(stages)] == [(5, 5), (9, 4), (6, 5)]


def test_the_papers_english_french(settings: Settings) -> None:
    found = headline(settings, "wmt14_en_fr")
    assert found.pairs == 35_500_000
    assert found.downloads[GIGA_FREN] == 2_595_102_720
    assert found.downloads["www.statmt.org/wmt14/test-full.tgz"] is None
    assert found.to_train.gpus == 3 * 37 * 24 * 8
    # The bar for its preparation.
    assert 2 < sum(stage.core_hours for stage in found.stages) < 6
    (training,) = found.trainings
    assert training.work is not None
    assert training.work.parameters == pytest.approx(230e6, rel=0.02)
    said = text(settings, [found])
    assert "6.7 GB in 7 files, 1 of unknown size" in said
    assert "3 trainings: 21,312.0 GPU-hours (the paper: 37 days on 8 GPUs" in said
    assert refusals([found], LARGE) == []


def test_a_training_asks_for_the_memory_of_all_workers_of_a_node(
    settings: Settings,
) -> None:
    asked = {
        gpus: requested_memory(settings, "wmt14_en_fr", "wmt14_en_fr", gpus)
        for gpus in range(9)
    }
    assert asked[0] == asked[1] == 16_000
    assert asked[8] == pytest.approx(2 * asked[4], abs=1)
    # The outside estimate of what eight take, and a small node.
    assert 25_000 < asked[8] < 64_000
    (training,) = headline(settings, "wmt14_en_fr").trainings
    assert (
        requested_memory(settings, "wmt14_en_fr", "wmt14_en_fr", 0) * 1e6
        >= training.memory
    )
    eight = replace(settings, options=settings.options.model_copy(update={"gpus": 8}))
    (training,) = headline(eight, "wmt14_en_fr").trainings
    assert training.memory == pytest.approx(asked[8] * 1e6, rel=0.001)


def test_a_training_on_a_gpu_takes_one_if_no_number_is_stated(
    settings: Settings,
) -> None:
    memory = []
    for gpus in (None, 1):
        update = {"device": "cuda", "gpus": gpus}
        options = settings.options.model_copy(update=update)
        found = headline(replace(settings, options=options), "wmt14_en_fr")
        memory.append(found.trainings[0].memory)
    assert memory[0] == memory[1]


def test_the_papers_own_recipe_takes_the_papers_hours(settings: Settings) -> None:
    papers = settings.costs.training("wmt14_en_fr", "wmt14_en_fr")
    assert settings.costs.training("wmt14_en_fr", "wmt14_en_fr_fp32") == papers
    assert papers is not None
    assert papers.printed
    measured = settings.costs.trainings[0].model_copy(
        update={"text": "mine", "model": "small", "printed": False}
    )
    costs = settings.costs.model_copy(update={"trainings": (measured,)})
    assert costs.training("mine", "small") == measured
    assert costs.training("mine", "small_fp32") is None  # of another precision


@pytest.mark.parametrize(
    ("place", "fetched"), [("results", 0), ("https://a.example", 2)]
)
def test_models_that_a_task_begins_with_are_downloaded(
    mine: Path, place: str, fetched: int
) -> None:
    """Of local files none is missed: the workflow may make it, and its plan says if it cannot."""
    start = f"{{from: {place}/start.safetensors, as: initialise}}"
    models, task = mine / "config/models.yaml", mine / "config/tasks/mine.yaml"
    append(models, f"mine: {{extends: small, training: {{start: {start}}}}}\n")
    append(
        task, f"vocabulary_of: {place}/words.safetensors\nheadline: {{model: mine}}\n"
    )
    found = headline(load(mine, {}), "mine")
    names = ["a.example/start.safetensors", "a.example/words.safetensors"]
    assert sorted(found.downloads) == names[:fetched]
    assert not [path for path in found.missing if path.endswith(".safetensors")]


def test_a_file_that_is_there_is_not_to_be_downloaded(
    settings: Settings, here: Path
) -> None:
    place = here / "results/downloads" / GIGA_FREN
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")
    assert GIGA_FREN not in headline(settings, "wmt14_en_fr").downloads


def test_the_size_of_a_file_is_known_by_http_and_by_https(copy: Path) -> None:
    stated = f"http://{GIGA_FREN}"
    (copy / "config/tasks/mine.yaml").write_text(
        TASK.replace("train.en", f"https://{GIGA_FREN}#a")
    )
    settings = load(copy, {})
    assert stated in settings.downloads
    assert headline(settings, "mine").downloads[GIGA_FREN] == 2_595_102_720


def test_tables_add_their_trainings_and_share_those_of_the_headline(
    settings: Settings,
) -> None:
    wanted = [
        cell
        for table in ("table1", "table2", "table5")
        for cell in cells(settings, table)
    ]
    words, tokens = budgets(settings, ["wmt14_en_de_word", "wmt14_en_de"], wanted)
    runs = {one.model: one.runs for one in words.trainings}
    assert runs["ablation"] == 3
    assert runs["ablation_attention_1"] == 3
    # An ensemble of 8, seeds 1 to 3 in it.
    assert [one.runs for one in tokens.trainings] == [8]
    assert "30 trainings: hours neither measured nor in the paper" in text(
        settings, [words]
    )


def test_pairs_of_other_text_follow_from_its_size(mine: Path) -> None:
    settings = load(mine, {})
    assert headline(settings, "mine").pairs is None
    for pair in settings.tasks["mine"].file_pairs("train"):
        for side in pair:
            path = mine / side
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(138_000))
    assert headline(settings, "mine").pairs == 1000


def test_pairs_of_plain_text_are_counted(mine: Path) -> None:
    settings = load(mine, {})
    ((source, target),) = settings.tasks["mine"].file_pairs("train")
    (mine / source).write_text("Go.\n" * 1313)
    (mine / target).write_text("Va !\n" * 1313)
    assert headline(settings, "mine").pairs == 1313


def test_pairs_of_json_lines_are_counted(mine: Path) -> None:
    """Both sides are fields of one file, whose other fields are no text of the task."""
    task = mine / "config/tasks/mine.yaml"
    fields = "source: train.jsonl.gz#first, target: train.jsonl.gz#title"
    task.write_text(
        task.read_text().replace("source: train.en, target: train.fr", fields)
    )
    record = b'{"first": "Go.", "title": "Va !", "article": "' + bytes(5_000) + b'"}\n'
    (mine / "train.jsonl.gz").write_bytes(gzip.compress(record * 1313))
    assert headline(load(mine, {}), "mine").pairs == 1313


def test_pairs_of_compressed_text_are_counted(mine: Path) -> None:
    task = mine / "config/tasks/mine.yaml"
    task.write_text(task.read_text().replace("train.en", "train.en.gz"))
    settings = load(mine, {})
    ((source, target),) = settings.tasks["mine"].file_pairs("train")
    (mine / source).write_bytes(gzip.compress(b"Go.\n" * 1313))
    (mine / target).write_text("Va !\n" * 1313)
    assert headline(settings, "mine").pairs == 1313


def test_memory_of_a_training_is_that_of_its_process(settings: Settings) -> None:
    """The demo's held 0.59 GB at most; that of the paper's largest in bf16 4.8 GB on a CPU."""
    assert (
        0.4e9
        < max(one.memory for one in headline(settings, "demo_en_fr").stages)
        < 0.8e9
    )
    assert (
        4e9
        < max(one.memory for one in headline(settings, "wmt14_en_fr").trainings)
        < 7e9
    )


def test_at_another_scale_files_are_those_of_the_mirror(mine: Path) -> None:
    settings = load(mine, {"scale": "mirror"})
    assert headline(settings, "wmt14_en_fr").pairs is None
    mirrored = mine / "results/scales/mirror/archives" / GIGA_FREN
    mirrored.parent.mkdir(parents=True)
    mirrored.write_bytes(bytes(1000))
    assert headline(settings, "wmt14_en_fr").downloads[GIGA_FREN] == 1000


def test_shared_text_is_prepared_once(settings: Settings) -> None:
    words, tokens = budgets(settings, ["wmt14_en_fr_word", "wmt14_en_fr"], [])
    assert "extract and cut into parts" in [stage.name for stage in words.stages]
    assert "extract and cut into parts" not in [stage.name for stage in tokens.stages]


def test_a_folder_that_is_there_is_counted_once(settings: Settings, here: Path) -> None:
    text = here / "results/wmt14_en_fr/corpus/text"
    text.parent.mkdir(parents=True)
    text.write_bytes(bytes(10**6))
    names = ["wmt14_en_fr_word", "wmt14_en_fr"]
    both = [
        [one.present for one in budgets(settings, order, [])]
        for order in (names, names[::-1])
    ]
    assert [sum(present) for present in both] == [10**6] * 2


def test_words_are_aligned_in_memory(settings: Settings) -> None:
    memory = {
        stage.name: stage.memory
        for stage in headline(settings, "wmt14_en_fr_word").stages
    }
    assert memory["align"] == 5_000_000 * settings.costs.align_bytes.value


def test_text_in_parts_is_on_the_disk_twice_for_a_while(
    root: Path, settings: Settings
) -> None:
    at_once = load(root, {"scatter_above": 10**6})
    steps = [
        {stage.name: stage for stage in headline(given, "wmt14_en_de").stages}
        for given in (settings, at_once)
    ]
    parts, whole = (
        steps[0]["join the parts"],
        steps[1]["extract, normalize, tokenize, filter"],
    )
    assert parts.written == parts.freed == whole.written
    assert whole.freed == 0
    assert len(steps[0]) == len(steps[1]) + 2


def test_of_a_training_that_has_ended_its_model_is_there_twice(
    settings: Settings,
) -> None:
    found = headline(settings, "wmt14_en_de")
    (_, _, before), (_, during, after) = list(levels(found.stages))[-2:]
    (training,) = found.trainings
    assert training.runs == 3
    assert training.work is not None
    assert after - before == 3 * 2 * 4 * training.work.parameters  # of four bytes each
    assert during - after == 2 * training.state_bytes  # of the one that runs


def test_text_that_one_has_to_bring_is_named(settings: Settings) -> None:
    found = headline(settings, "gigaword")
    (reason,) = refusals([found], LARGE)
    assert reason.startswith("gigaword needs data/gigaword/train.article.txt, ")
    assert "config/tasks/gigaword.yaml" in reason
    assert "MISSING: data/gigaword/train.article.txt" in text(settings, [found])


def test_what_does_not_fit_is_refused(settings: Settings) -> None:
    found = headline(settings, "wmt14_en_fr_word")
    small = Machine(results=10**9, downloads=10**9, is_one_disk=False, memory=10**9)
    results, downloads, memory = refusals([found], small)
    assert results.startswith("results take ")
    assert "1.0 GB are free" in results
    assert downloads.startswith("downloads take 6.7 GB of disk")
    assert "this machine has 1.0 GB" in memory
    elsewhere = Machine(results=10**13, downloads=10**13, is_one_disk=True, memory=None)
    assert refusals([found], elsewhere) == []


def test_what_is_there_already_needs_no_more_space(settings: Settings) -> None:
    found = headline(settings, "wmt14_en_de")
    needed = Machine(int(found.disk) + 2 * 10**9, 0, True, None)
    assert refusals([found], needed) == []
    assert refusals([found], Machine(int(found.disk), 0, True, None))


def test_several_tasks_share_their_downloads(settings: Settings) -> None:
    both = budgets(settings, ["wmt14_en_de", "wmt14_en_fr"], [])
    assert (
        "to download: 6.7 GB in 8 files"
        in text(settings, both).rpartition("in all, at")[2]
    )


def test_what_is_not_measured_is_no_expectation(settings: Settings, here: Path) -> None:
    tables = {name: cells(settings, name) for name in ("table1", "table2", "table4")}
    found = costs(settings, tables, here / "benchmarks")
    every = [cell for measured in tables.values() for cell in measured]
    tasks = budgets(settings, ["wmt14_en_de"], every)
    said = report(settings, tasks, LARGE, found)
    lines = said.partition("\nto come: ")[0].splitlines()
    rows = {line.split("  ")[0]: line.split()[-4:] for line in lines}
    assert rows["table1"] == ["18", "0", "18", "10,416.0"]  # no hours to come
    assert rows["table4"][-3:] == ["12", "0", "12"]  # and none in the paper
    assert rows["all, each training once"][-1] == "10,416.0"
    assert f"{found.total.unknown} trainings in addition: hours not known" in said
    assert "neither measured nor in the paper" not in said


def test_a_released_model_is_not_trained(settings: Settings) -> None:
    found = headline(settings, "wmt14_en_fr_released")
    assert "released model: nothing is trained" in text(settings, [found])
    assert (found.disk, found.to_train.gpus) == (0, 0)


def test_the_papers_english_french_on_gpus_of_today(settings: Settings) -> None:
    (training,) = headline(settings, "wmt14_en_fr").trainings
    work, known = training.work, training.known
    assert work is not None
    assert known is not None
    # FLOP a token, counted elsewhere.
    assert 6 * work.weights == pytest.approx(1.11e9, rel=0.02)
    rates: dict[tuple[str, str, bool], float] = {}
    for gpu in settings.costs.gpus:
        for precision, compiled in (("fp32", False), ("bf16", False), ("bf16", True)):
            changes = {"precision": precision, "compile": compiled}
            recipe = work.recipe.model_copy(update=changes)
            found = estimate(replace(work, recipe=recipe), known, gpu, settings.costs)
            if found:
                # In all as many.
                assert found.rate * found.hours == pytest.approx(10.9e6, rel=0.02)
                rates[gpu.name, found.precision, recipe.compile] = found.rate
    assert rates["H100", "tf32", False] == pytest.approx(100_000, rel=0.05)
    assert 165_000 < rates["H100", "bf16", True] < 230_000
    assert rates["A100", "tf32", False] > 5 * rates["V100", "fp32", False]
    assert ("V100", "bf16", False) not in rates  # a GPU without bf16
    whole = work.recipe.batch.model_copy(update={"micro_batch_tokens": None})
    recipe = work.recipe.model_copy(
        update={"batch": whole, "precision": "bf16", "compile": False}
    )
    gpu = next(gpu for gpu in settings.costs.gpus if gpu.name == "H100")
    tiny = replace(work, recipe=recipe, weights=1, parameters=1, widths=1, types=1)
    found = estimate(tiny, known, gpu, settings.costs)
    assert found is not None
    assert found.rate < 1e9, "an update has operations to start"


def test_hours_of_gpus_are_marked_as_an_estimate(settings: Settings) -> None:
    estimate = "estimate, not measured: one training on one GPU, by its peak rates"
    said = text(settings, [headline(settings, "wmt14_en_fr")]).splitlines()
    assert said[-6] == estimate
    assert [line.split()[:3] for line in said[-3:]] == [
        ["wmt14_en_fr", "H100", "bf16"],
        ["wmt14_en_fr", "A100", "bf16"],
        ["wmt14_en_fr", "V100", "has"],
    ]
    assert estimate not in text(settings, [headline(settings, "demo_en_fr")])
    of_summaries = text(settings, [headline(settings, "gigaword")]).splitlines()[-3:]
    assert all(0 < float(line.split()[-2]) < 10 for line in of_summaries)
