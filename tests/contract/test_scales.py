"""What stands in for the paper's tasks, models, test sets and runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from convs2s.config.decoding import DecodingSettings, TunedLengthPenalty
from convs2s.config.load import load
from convs2s.config.paper import Row, Table
from convs2s.config.scale import Scale
from convs2s.config.settings import Settings
from convs2s.config.task import Headline
from convs2s.paper.evidence import evidence
from tests.support.refusals import rows

SCALES = ["paper", "demo", "multi30k", "multi30k_trained", "mirror"]


def scale(**stated: object) -> Scale:
    names = {"description": "", "results_dir": "r", "downloads_dir": "d"}
    return Scale.model_validate(names | stated)


@pytest.mark.parametrize(
    ("key", "ask", "unlisted"),
    [
        ("tasks", Scale.task_for, None),
        ("models", Scale.model_for, None),
        ("tests", Scale.testset_for, "x"),
        ("phrases", Scale.phrases_for, "x"),
    ],
)
def test_what_is_listed_stands_in(
    key: str, ask: Callable[[Scale, str], str | None], unlisted: str | None
) -> None:
    """On other data, no row runs on a task or with a model that is not listed."""
    data = scale(stand_in="small", **{key: {"a": "b"}})
    assert (ask(data, "a"), ask(data, "x")) == ("b", unlisted)
    assert ask(scale(), "x") == "x"


RUNS = """
{} => seed1 ensemble8 => seed1 ensemble8
{seeds: 2} => seed1 seed2 seed3 => seed1 seed2
{seeds: 2} => ensemble8 => ensemble2
{seeds: 1} => ensemble8 ensemble10 => seed1
{seeds: 10} => ensemble8 => ensemble8
{seeds: 3, seeds_of: {t: 1}} => seed1 seed2 => seed1
{seeds: 3, seeds_of: {u: 1}} => seed1 seed2 => seed1 seed2
{seeds: 2, ensembles: {ensemble5: ensemble4}} => ensemble5 => ensemble4
{ensembles: {ensemble5: ensemble3}} => ensemble5 => ensemble3
"""


@pytest.mark.parametrize(("stated", "names", "runs"), rows(RUNS))
def test_runs_are_no_more_than_the_seeds(stated: str, names: str, runs: str) -> None:
    found = scale(**yaml.safe_load(stated)).runs_for(names.split(), "t")
    assert found == runs.split()


def test_rows_are_left_out_by_model_and_by_task() -> None:
    left_out = [
        {"models": ["m"], "because": "time"},
        {"tasks": ["t"], "because": "text"},
    ]
    own = [{"model": "m"}, {"task": "t"}, {"model": "n", "task": "u"}, {}]
    ours = [Row.model_validate({"system": "s", "kind": "ours", **one}) for one in own]
    table = Table(title="T", rows=(*ours, Row(system="s", kind="cited")))
    data = scale(left_out=left_out)
    assert data.shown_rows(table) == [2, 3, 4]
    assert [data.why_left_out(row) for row in ours[:3]] == ["time", "text", None]
    assert scale().shown_rows(table) == [0, 1, 2, 3, 4]


def test_tables_that_a_scale_leaves_out_may_be_named(copy: Path) -> None:
    """A claim of such a table says so; nothing else of it is an error."""
    with (copy / "config/scales/paper.yaml").open("a", encoding="utf-8") as file:
        file.write(
            "  - {because: no time, models: [lstm, lstm_forward]}\n"
            "without: [figure3]\nseeds_of: {lstm_figure2: 1, figure3: 1}\n"
        )
    loaded = load(copy)
    assert loaded.tables.keys() - loaded.paper.keys() >= {"lstm_figure2", "figure3"}
    assert "recipes" not in load(copy, {"scale": "demo"}).paper
    for cell in loaded.claims["states_know_word_order"].phrases:
        assert evidence(loaded, cell, {}).missing == "left out at this scale"


@pytest.mark.parametrize("name", ["demo", "multi30k", "multi30k_trained"])
def test_small_versions_differ_in_width_dropout_and_recipe_alone(
    root: Path, name: str
) -> None:
    loaded = load(root, {"scale": name})
    shrink = loaded.scale.shrink
    assert shrink is not None
    text = (root / f"config/scales/{name}.yaml").read_text("utf-8")
    made = loaded.scale.models.keys() - yaml.safe_load(text)["models"].keys()
    assert len(made) >= 20
    for paper in made:
        small = loaded.models[f"{shrink.prefix}_{paper}"]
        assert loaded.scale.models[paper] == f"{shrink.prefix}_{paper}"
        expected = loaded.models[paper].architecture.model_dump()
        for part in (expected, *expected["encoder"], *expected["decoder"]):
            for key in {"embedding", "output_embedding", "width"} & part.keys():
                part[key] //= shrink.divide_by
        recipe = shrink.training
        if paper in shrink.keep_recipe:
            threads = {"threads": recipe.threads}
            recipe = loaded.models[paper].training.model_copy(update=threads)
        elif shrink.dropout is not None:
            expected["dropout"] = shrink.dropout
        assert small.architecture.model_dump() == expected
        assert small.training == recipe


def test_a_small_version_follows_its_model_and_can_be_overridden(root: Path) -> None:
    models = {
        "ablation": {"architecture": {"positions": {"maximum": 400}}},
        "demo_ablation": {"training": {"maximum_epochs": 3}},
    }
    loaded = load(root, {"scale": "demo", "overrides": {"models": models}})
    for name, epochs in (("demo_ablation", 3), ("demo_ablation_no_position", 0.9)):
        model = loaded.models[name]
        assert model.architecture.model_dump()["positions"]["maximum"] == 400
        assert model.training.maximum_epochs == epochs


def test_headlines_have_the_seeds_and_test_sets_that_there_are(
    settings: Settings,
) -> None:
    tests = {"full": "test", "other": "test", "third": "absent"}
    data = scale(seeds=2, tests=tests, models={"m": "n"})
    for model, stand_in in (("m", "n"), ("x", "x")):
        stated = Headline(
            model=model, seeds=(1, 2, 3), tests=("full", "other", "third")
        )
        task = settings.tasks["demo_en_fr"].model_copy(update={"headline": stated})
        expected = Headline(model=stand_in, seeds=(1, 2), tests=("test", "third"))
        assert data.headline_of(task) == expected


def test_the_development_set_is_the_tasks_or_its_stand_in(settings: Settings) -> None:
    tuned = DecodingSettings(length_penalty=TunedLengthPenalty(tuned_on="newstest2015"))
    data = scale(tests={"newstest2015": "valid"})
    demo = settings.tasks["demo_en_fr"]
    german = settings.tasks["wmt14_en_de"]
    assert data.development_set(german, tuned) == "newstest2015"
    assert data.development_set(demo, tuned) == "valid"
    assert data.development_set(demo, DecodingSettings()) is None


def test_folders_are_of_one_scale_and_without_a_slash_at_their_end(root: Path) -> None:
    scales = [load(root, {"scale": name}).scale for name in SCALES]
    assert len({one.results_dir for one in scales}) == len(SCALES)
    assert len({one.downloads_dir for one in scales}) == len(SCALES)
    assert [one.stand_in is None for one in scales] == [True] + 4 * [False]
    data = scale(results_dir="./mine//", downloads_dir="~/mine/downloads/")
    assert data.results_dir == "mine"
    assert data.downloads_dir == f"{Path.home()}/mine/downloads"
    # Downloads follow the results if they are among them.
    assert data.downloads_below("c") == data.downloads_dir
    assert scale(results_dir="a/", downloads_dir="a/b").downloads_below("c") == "c/b"
