"""What stands in for the paper's tasks, models, test sets and runs."""

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from convs2s.config.decoding import DecodingSettings, TunedLengthPenalty
from convs2s.config.load import load
from convs2s.config.paper import Row, Table
from convs2s.config.scale import Scale
from convs2s.config.settings import Settings
from convs2s.config.task import Headline
from convs2s.errors import UserError
from convs2s.paper.evidence import evidence

NAMES = {"description": "", "results_dir": "r", "downloads_dir": "d"}


def scale(**stated: object) -> Scale:
    return Scale.model_validate(NAMES | stated)


def test_what_is_not_listed_stands_for_itself_but_a_model_on_other_data() -> None:
    data = scale(
        stand_in="small", tasks={"a": "b"}, models={"m": "n"}, tests={"t": "u"}
    )
    assert (data.task_for("a"), data.task_for("x")) == ("b", None)
    assert scale().task_for("x") == "x"
    assert (data.testset_for("t"), data.testset_for("x")) == ("u", "x")
    assert (data.model_for("m"), data.model_for("x")) == ("n", None)
    assert scale().model_for("x") == "x"


@pytest.mark.parametrize(
    ("seeds", "names", "runs"),
    [
        (None, ["seed1", "ensemble8"], ["seed1", "ensemble8"]),
        (2, ["seed1", "seed2", "seed3"], ["seed1", "seed2"]),
        (2, ["ensemble8"], ["ensemble2"]),
        (1, ["ensemble8", "ensemble10"], ["seed1"]),
        (10, ["ensemble8"], ["ensemble8"]),
    ],
)
def test_runs_are_no_more_than_the_seeds(
    seeds: int | None, names: list[str], runs: list[str]
) -> None:
    assert scale(seeds=seeds).runs_for(names, "t") == runs


def test_a_table_may_have_seeds_of_its_own() -> None:
    data = scale(seeds=3, seeds_of={"t": 1})
    assert data.runs_for(["seed1", "seed2"], "t") == ["seed1"]
    assert data.runs_for(["seed1", "seed2"], "u") == ["seed1", "seed2"]


def test_rows_are_left_out_by_model_and_by_task() -> None:
    data = scale(
        left_out=[
            {"models": ["m"], "because": "no time"},
            {"tasks": ["t"], "because": "no text"},
        ]
    )
    own = [{"model": "m"}, {"task": "t"}, {"model": "n", "task": "u"}, {}]
    rows = [Row.model_validate({"system": "s", "kind": "ours", **one}) for one in own]
    cited = Row(system="s", kind="cited")
    table = Table(title="T", rows=(*rows, cited))
    assert data.shown_rows(table) == [2, 3, 4]
    assert [data.why_left_out(row) for row in table.rows[:3]] == [
        "no time",
        "no text",
        None,
    ]
    assert scale().shown_rows(table) == [0, 1, 2, 3, 4]


def test_tables_that_a_scale_leaves_out_may_be_named(copy: Path) -> None:
    """A claim of such a table says so; nothing else of it is an error."""
    left_out = "  - {because: no time, models: [lstm, lstm_forward]}\n"
    more = "without: [figure3]\nseeds_of: {lstm_figure2: 1, figure3: 1}\n"
    with (copy / "config/scales/paper.yaml").open("a", encoding="utf-8") as file:
        file.write(left_out + more)
    loaded = load(copy)
    assert loaded.tables.keys() - loaded.paper.keys() >= {"lstm_figure2", "figure3"}
    for cell in loaded.claims["states_know_word_order"].phrases:
        assert evidence(loaded, cell, {}).missing == "left out at this scale"


@pytest.mark.parametrize("name", ["demo", "multi30k", "multi30k_trained"])
def test_small_versions_differ_in_width_and_dropout_alone(
    root: Path, name: str
) -> None:
    loaded = load(root, {"scale": name})
    shrink = loaded.scale.shrink
    assert shrink is not None
    stated = yaml.safe_load((root / f"config/scales/{name}.yaml").read_text("utf-8"))[
        "models"
    ]
    made = {
        paper: small
        for paper, small in loaded.scale.models.items()
        if paper not in stated
    }
    assert len(made) >= 20
    for paper, small in made.items():
        assert small == f"{shrink.prefix}_{paper}"
        large, own = (loaded.models[one].architecture for one in (paper, small))
        assert large.kind == own.kind == "convs2s"
        for many, few in ((large.encoder, own.encoder), (large.decoder, own.decoder)):
            assert [(one.layers, one.kernel) for one in many] == [
                (one.layers, one.kernel) for one in few
            ]
            assert {
                one.width // two.width for one, two in zip(many, few, strict=True)
            } == {shrink.divide_by}
        differing = {"embedding", "output_embedding", "encoder", "decoder", "dropout"}
        assert large.model_dump(exclude=differing) == own.model_dump(exclude=differing)
        keeps = paper in shrink.keep_recipe
        assert own.dropout == (
            large.dropout if keeps or shrink.dropout is None else shrink.dropout
        )
        recipe = shrink.training
        if keeps:
            recipe = loaded.models[paper].training.model_copy(
                update={"threads": recipe.threads}
            )
        assert loaded.models[small].training == recipe


def test_a_small_version_follows_its_model_and_can_be_overridden(root: Path) -> None:
    models = {
        "ablation": {"architecture": {"positions": {"maximum": 400}}},
        "demo_ablation": {"training": {"maximum_epochs": 3}},
    }
    loaded = load(root, {"scale": "demo", "overrides": {"models": models}})
    small = [
        loaded.models[name].architecture
        for name in ("demo_ablation", "demo_ablation_no_position")
    ]
    assert [one.positions.maximum for one in small if one.kind == "convs2s"] == [
        400,
        400,
    ]
    assert loaded.models["demo_ablation"].training.maximum_epochs == 3
    assert loaded.models["demo_ablation_no_position"].training.maximum_epochs == 0.9
    with pytest.raises(UserError, match="unknown model 'small_ablation'"):
        load(root, {"scale": "demo", "overrides": {"models": {"small_ablation": {}}}})


def test_an_ensemble_that_is_listed_has_its_own_number_of_models() -> None:
    data = scale(seeds=2, ensembles={"ensemble5": "ensemble4"})
    assert data.runs_for(["ensemble5"], "t") == ["ensemble4"]
    assert data.runs_for(["ensemble8"], "t") == ["ensemble2"]
    unlimited = scale(ensembles={"ensemble5": "ensemble3"})
    assert unlimited.runs_for(["ensemble5"], "t") == ["ensemble3"]


def test_a_scale_may_be_without_a_table(copy: Path) -> None:
    tables = load(copy, {"scale": "paper"}).paper
    assert "trainings" in tables
    assert "recipes" not in tables  # as all of its rows are left out
    assert "trainings" not in load(copy, {"scale": "demo"}).paper
    file = copy / "config/scales/demo.yaml"
    text = file.read_text("utf-8").replace("[recipes, trainings]", "[training]")
    file.write_text(text, "utf-8")
    with pytest.raises(
        UserError, match=r"demo\.yaml: without: unknown table 'training'"
    ):
        load(copy, {"scale": "demo"})


def test_a_model_that_keeps_its_recipe_is_one_that_is_known(copy: Path) -> None:
    file = copy / "config/scales/demo.yaml"
    stated = yaml.safe_load(file.read_text("utf-8"))
    stated["shrink"]["keep_recipe"] = ["abblation"]
    file.write_text(yaml.safe_dump(stated), "utf-8")
    said = r"demo\.yaml: shrink\.keep_recipe: unknown model 'abblation'; did you mean 'ablation'"
    with pytest.raises(UserError, match=said):
        load(copy, {"scale": "demo"})


def test_phrases_have_stand_ins() -> None:
    data = scale(phrases={"voice": "own_voice"})
    assert (data.phrases_for("voice"), data.phrases_for("x")) == ("own_voice", "x")


def test_headlines_have_the_seeds_and_test_sets_that_there_are(
    settings: Settings,
) -> None:
    tests = {"full": "test", "other": "test", "third": "absent"}
    data = scale(seeds=2, tests=tests, models={"m": "n"})
    stated = Headline(model="m", seeds=(1, 2, 3), tests=("full", "other", "third"))
    task = settings.tasks["demo_en_fr"].model_copy(update={"headline": stated})
    assert data.headline_of(task) == Headline(
        model="n", seeds=(1, 2), tests=("test", "third")
    )
    stated = stated.model_copy(update={"model": "x"})
    assert data.headline_of(task.model_copy(update={"headline": stated})).model == "x"


def test_the_development_set_is_the_tasks_or_its_stand_in(settings: Settings) -> None:
    tuned = DecodingSettings(length_penalty=TunedLengthPenalty(tuned_on="newstest2015"))
    data = scale(tests={"newstest2015": "valid"})
    german, demo = settings.tasks["wmt14_en_de"], settings.tasks["demo_en_fr"]
    assert data.development_set(german, tuned) == "newstest2015"
    assert data.development_set(demo, tuned) == "valid"
    assert data.development_set(demo, DecodingSettings()) is None


@pytest.mark.parametrize("folder", ["x", "x/results/", "-x", "./"])
def test_results_are_no_downloads_and_no_options(copy: Path, folder: str) -> None:
    file = copy / "config/scales/demo.yaml"
    stated = yaml.safe_load(file.read_text("utf-8"))
    file.write_text(
        yaml.safe_dump(stated | {"results_dir": folder, "downloads_dir": "x/"})
    )
    with pytest.raises(
        UserError, match=r"demo\.yaml: results_dir: expected a folder outside"
    ):
        load(copy, {"scale": "demo"})


def test_folders_have_no_slash_at_their_end() -> None:
    data = scale(results_dir="./mine//", downloads_dir="~/mine/downloads/")
    assert (data.results_dir, data.downloads_dir) == (
        "mine",
        f"{Path.home()}/mine/downloads",
    )
    assert scale(results_dir="a/", downloads_dir="a/b").downloads_below("c") == "c/b"
    with pytest.raises(ValidationError, match="~NAME with a user of this machine"):
        scale(results_dir="~nobody at all/x")
