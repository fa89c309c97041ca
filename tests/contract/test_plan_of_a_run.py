"""What a run makes, shows and leaves out: planned without a job, by which files there are."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.errors import UserError
from convs2s.layout import Layout
from convs2s.paper.cells import Cell
from convs2s.paper.failures import STOPPED
from convs2s.pipeline.plan import Plan

pytestmark = pytest.mark.usefixtures("in_folder")

TASK = "results/scales/demo/demo_en_fr"
DEMO = f"{TASK}/models/demo"
LISTED = f"{TASK}_word/models/demo_wmt16_en_ro/seed1/test.list20.nbest.zst"


def plan(
    settings: Settings, there: Iterable[str] = (), asked: Iterable[str] = ()
) -> Plan:
    """Plan where these files are there, and these targets are asked for."""
    layout = Layout(settings.scale.results_dir, settings.scale.downloads_dir)
    is_there = frozenset(there).__contains__
    return Plan(settings, layout, f"{layout.results}/logs", is_there, list(asked))


def paths(cells: Iterable[Cell]) -> list[str]:
    return list(dict.fromkeys(path for cell in cells for path in cell.paths))


FILES = f"""
{TASK}/dataset/train.json {TASK}/dataset/valid.json
{TASK}/corpus/clean/train.source.zst {TASK}/corpus/clean/train.target.zst
{TASK}/corpus/raw/valid.source.zst {TASK}/corpus/raw/valid.target.zst
{TASK}/corpus/raw/test.source.zst {TASK}/corpus/raw/test.target.zst
""".split()


def test_what_is_asked_for_decides_whether_a_table_starts_anything(
    demo: Settings,
) -> None:
    every = paths(plan(demo).planned["table1"])
    assert len(every) > 2
    for there, asked, expected in (
        ([], [], []),
        (every[1:2], [], every[1:2]),
        ([], ["tables"], []),
        ([], ["paper"], every),
        ([], ["speed"], []),
    ):
        assert plan(demo, there, asked).scores("table1") == expected
    timed = plan(demo, asked=["speed"])
    assert timed.scores("table3") == paths(timed.planned["table3"])
    assert timed.scores("table3", "table1") == []  # as of a ledger of several


def test_the_history_of_a_training_that_goes_on_is_not_shown(demo: Settings) -> None:
    both = [f"{DEMO}/seed1/history.jsonl", f"{DEMO}/seed1/test.beam5.bleu.json"]
    history, score = both
    assert plan(demo, there=both).finished(both) == [score]
    record = f"{DEMO}/seed1/training.json"
    assert plan(demo, there=[history, record]).finished(both) == [history]
    assert plan(demo, asked=["paper"]).finished(both) == both


def test_a_table_is_made_of_its_cells_and_of_what_failed(demo: Settings) -> None:
    cell = plan(demo).cells["table2"][0]
    log = Path(f"results/scales/demo/logs/{cell.task}/{cell.model}/seed1/train.log")
    log.parent.mkdir(parents=True)
    log.write_text("convs2s: SIGTERM was received: run it again\n")
    contents = plan(demo).contents("table2")
    assert contents["failures"][cell.records[0].fingerprint] == STOPPED
    assert contents["above"]["stand_in"] == demo.scale.stand_in
    runs = [record for one in plan(demo).cells["table2"] for record in one.records]
    assert contents["runs"] == {record.file: record.fingerprint for record in runs}


def test_data_is_counted_unless_only_its_models_are_left(demo: Settings) -> None:
    counts = f"{TASK}/dataset/counts.json"
    model = f"{DEMO}/seed1/model.safetensors"
    for there in ([], [model, *FILES], [model, counts]):
        assert plan(demo, there).dataset_counts("demo_en_fr") == [counts]
    for text in (FILES[:-1], FILES[1:]):
        assert plan(demo, [model, *text]).dataset_counts("demo_en_fr") == []
    released = next(name for name, task in demo.tasks.items() if task.released)
    assert plan(demo).dataset_counts(released) == []


def test_times_of_a_gpu_are_taken_where_one_is_asked_for(
    root: Path, demo: Settings
) -> None:
    def timed(one: Plan) -> list[str]:
        cells = one.planned["table3"]
        return paths(cell for cell in cells if cell.measure == "seconds_cuda")

    assert timed(plan(demo)) == []
    (first, *_) = timed(plan(load(root, {"scale": "demo", "device": "cuda"})))
    assert timed(plan(demo, there=[first])) == [first]


def test_a_task_waits_for_the_files_that_a_user_has_to_bring(paper: Settings) -> None:
    gigaword = paper.tasks["gigaword"]
    needed = gigaword.references(gigaword.splits)
    assert "data/duc2004/input.txt" in needed
    for there, is_made in ((needed[1:], False), (needed, True)):
        planned = plan(paper, there)
        assert ("gigaword" in planned.tasks) == is_made
        assert bool(planned.planned["table6"]) == is_made
        assert len(planned.cells["table6"]) == 6


def test_anothers_list_is_rescored_where_a_user_has_it_or_a_model_makes_it(
    paper: Settings, demo: Settings
) -> None:
    listed = "data/wmt14_en_fr/newstest2014.1000best.gz"
    assert plan(paper).planned["lstm_table2"] == []
    assert len(plan(paper, there=[listed]).planned["lstm_table2"]) == 5
    assert plan(paper).baseline_list("wmt14_en_fr_word", "newstest2014") == listed
    with pytest.raises(UserError, match="wmt14_en_fr_word"):
        plan(paper).baseline_list("wmt14_en_fr_word", "valid")
    assert plan(demo).baseline_list("demo_en_fr_word", "test") == LISTED


def test_published_runs_are_not_made_again_and_those_here_count_before_them(
    root: Path, demo: Settings
) -> None:
    ledger = str(root / "docs/results/multi30k.ledger.jsonl")
    published = load(root, {"scale": "multi30k", "published": ledger})
    alone = plan(load(root, {"scale": "multi30k"}))
    assert alone.planned["table1"] == alone.cells["table1"]
    assert alone.published == []
    beside = plan(published)
    assert beside.published == [ledger]
    assert beside.planned["table1"] == []
    assert len(beside.runs) < len(alone.runs) / 4
    score = beside.cells["table1"][0].paths[1]
    here = plan(published, there=[score])
    assert here.planned["table1"][0].paths == (score,)
    assert here.scores("table1") == [score]
    # Of figures, the first one is drawn from scores.
    assert beside.figures == ["figure2", "lstm_figure2"]
    with pytest.raises(UserError, match=r"^figure3.svg: no model .*; figure3.md has "):
        beside.drawn_cells("figure3")
    with pytest.raises(UserError, match=r"^lstm_figure3\.svg: no model"):
        beside.curves()
    assert plan(demo).figures == ["figure2", "figure3", "lstm_figure2", "lstm_figure3"]


def test_plots_are_of_our_own_runs_and_of_a_model_with_attention(
    root: Path, demo: Settings
) -> None:
    seeds = [f"{DEMO}/seed{seed}/curve.svg" for seed in (1, 2)]
    assert plan(demo).plots_of("demo_en_fr")[:2] == seeds
    assert "curve" not in "".join(plan(demo).plots_of("wmt14_en_de_released"))
    of_lstm = {"headline": {"model": "demo_lstm", "decoding": "lstm_beam2"}}
    lstm = load(
        root, {"scale": "demo", "overrides": {"tasks": {"demo_en_fr": of_lstm}}}
    )
    assert "attention" not in "".join(plan(lstm).plots_of("demo_en_fr"))


def test_a_training_starts_from_a_model_that_is_there_or_will_be(root: Path) -> None:
    model = f"{DEMO}/seed2/model.safetensors"
    training = {"start": {"from": model, "as": "initialise"}}
    changes = {"models": {"demo": {"training": training}}}
    settings = load(root, {"scale": "demo", "overrides": changes})
    for there in ([], [model]):
        assert plan(settings, there).start_of("demo") == [model]
