"""What stands in for the paper's tasks, models, test sets and runs."""

import json
import re
from pathlib import Path

import yaml

from convs2s.config.load import load
from convs2s.config.paper import Table
from convs2s.config.scale import Scale
from convs2s.config.settings import Settings
from convs2s.config.task import Headline
from convs2s.paper.evidence import evidence
from tests.support.refusals import rows


def scale(stated: str = "{}") -> Scale:
    names = yaml.safe_load("{description: '', results_dir: r, downloads_dir: d}")
    return Scale.model_validate(names | yaml.safe_load(stated))


LISTED = """
stand_in: small
tasks: {a: b}
models: {a: b}
tests: {a: b}
phrases: {a: b}
"""


def test_what_is_listed_stands_in() -> None:
    """On other data, no row runs on a task or with a model that is not listed."""
    data = scale(LISTED)
    for name, only_listed in (("a", "b"), ("x", None)):
        assert data.task_for(name) == data.model_for(name) == only_listed
    for name, found in (("a", "b"), ("x", "x")):
        assert data.testset_for(name) == data.phrases_for(name) == found
    assert scale().task_for("x") == scale().model_for("x") == "x"


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


def test_runs_are_no_more_than_the_seeds() -> None:
    for stated, names, runs in rows(RUNS):
        assert scale(stated).runs_for(names.split(), "t") == runs.split(), stated


ROWS = """
title: T
rows:
  - {system: s, kind: ours, model: m}
  - {system: s, kind: ours, task: t}
  - {system: s, kind: ours, model: n, task: u}
  - {system: s, kind: ours}
  - {system: s, kind: cited}
"""
LEFT_OUT = "left_out: [{models: [m], because: time}, {tasks: [t], because: text}]"


def test_rows_are_left_out_by_model_and_by_task() -> None:
    table = Table.model_validate(yaml.safe_load(ROWS))
    data = scale(LEFT_OUT)
    assert data.shown_rows(table) == [2, 3, 4]
    assert [data.why_left_out(row) for row in table.rows[:3]] == ["time", "text", None]
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


def test_small_versions_differ_in_width_dropout_and_recipe_alone(
    root: Path, demo: Settings
) -> None:
    shrink = demo.scale.shrink
    assert shrink is not None
    text = (root / "config/scales/demo.yaml").read_text("utf-8")
    made = demo.scale.models.keys() - yaml.safe_load(text)["models"].keys()
    assert len(made) >= 20

    def smaller(width: re.Match[str]) -> str:
        return width[1] + str(int(width[2]) // shrink.divide_by)

    for paper in made:
        name = demo.scale.models[paper]
        assert name == f"{shrink.prefix}_{paper}"
        small = demo.models[name]
        stated = demo.models[paper].architecture.model_dump_json()
        widths = r'("(?:embedding|output_embedding|width)":)(\d+)'
        expected = json.loads(re.sub(widths, smaller, stated))
        recipe = shrink.training
        if paper in shrink.keep_recipe:
            threads = {"threads": recipe.threads}
            recipe = demo.models[paper].training.model_copy(update=threads)
        else:
            expected["dropout"] = shrink.dropout
        assert json.loads(small.architecture.model_dump_json()) == expected
        assert small.training == recipe


def test_a_small_version_follows_its_model_and_can_be_overridden(root: Path) -> None:
    models = """
    ablation: {architecture: {positions: {maximum: 400}}}
    demo_ablation: {training: {maximum_epochs: 3}}
    """
    overrides = {"models": yaml.safe_load(models)}
    loaded = load(root, {"scale": "demo", "overrides": overrides})
    for name, epochs in (("demo_ablation", 3), ("demo_ablation_no_position", 0.9)):
        model = loaded.models[name]
        assert model.architecture.model_dump()["positions"]["maximum"] == 400
        assert model.training.maximum_epochs == epochs


SMALL = """
seeds: 2
models: {m: n}
tests: {full: test, other: test, third: absent}
"""


def test_headlines_have_the_seeds_and_test_sets_that_there_are(demo: Settings) -> None:
    data = scale(SMALL)
    stated = Headline(model="m", seeds=(1, 2, 3), tests=("full", "other", "third"))
    task = demo.tasks["demo_en_fr"].model_copy(update={"headline": stated})
    expected = Headline(model="n", seeds=(1, 2), tests=("test", "third"))
    assert data.headline_of(task) == expected


def test_the_development_set_is_the_tasks_or_its_stand_in(settings: Settings) -> None:
    tuned = settings.decodings["beam5_en_de"]
    data = scale("tests: {newstest2015: valid}")
    demo = settings.tasks["demo_en_fr"]
    assert data.development_set(settings.tasks["wmt14_en_de"], tuned) == "newstest2015"
    assert data.development_set(demo, tuned) == "valid"
    assert data.development_set(demo, settings.decodings["beam5"]) is None


def test_folders_are_of_one_scale_and_without_a_slash_at_their_end(root: Path) -> None:
    files = [path.read_text("utf-8") for path in root.glob("config/scales/*.yaml")]
    for key in ("results_dir", "downloads_dir"):
        folders = re.findall(rf"^{key}: (\S+)", "\n".join(files), re.MULTILINE)
        assert len(set(folders)) == len(files)
    data = scale("{results_dir: ./mine//, downloads_dir: ~/mine/downloads/}")
    assert data.results_dir == "mine"
    assert data.downloads_dir == f"{Path.home()}/mine/downloads"
    # Downloads follow the results if they are among them.
    assert data.downloads_below("c") == data.downloads_dir
    assert scale("{results_dir: a/, downloads_dir: a/b}").downloads_below("c") == "c/b"
