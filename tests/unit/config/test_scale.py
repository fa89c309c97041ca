"""What stands in for the paper's tasks, models, test sets and runs."""

import pytest

from convs2s.config.decoding import DecodingSettings, TunedLengthPenalty
from convs2s.config.runs import members
from convs2s.config.scale import Scale
from convs2s.config.settings import Settings

NAMES = {"description": "", "results_dir": "r", "downloads_dir": "d"}


def scale(**stated: object) -> Scale:
    return Scale.model_validate(NAMES | stated)


def test_members() -> None:
    assert members("seed3") == ["seed3"]
    assert members("released") == ["released"]
    assert members("ensemble3") == ["seed1", "seed2", "seed3"]


def test_what_is_not_listed_stands_for_itself_but_a_model_on_other_data() -> None:
    data = scale(stand_in="small", tasks={"a": "b"}, models={"m": "n"}, tests={"t": "u"})
    assert (data.task_for("a"), data.task_for("x")) == ("b", "x")
    assert (data.testset_for("t"), data.testset_for("x")) == ("u", "x")
    assert (data.model_for("m"), data.model_for("x")) == ("n", None)
    assert (data.headline_model("m"), data.headline_model("x")) == ("n", "x")
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
    assert scale(seeds=seeds).runs(names) == runs


def test_an_ensemble_that_is_listed_has_its_own_number_of_models() -> None:
    data = scale(seeds=2, ensembles={"ensemble5": "ensemble4"})
    assert data.runs(["ensemble5"]) == ["ensemble4"]
    assert data.runs(["ensemble8"]) == ["ensemble2"]
    assert scale(ensembles={"ensemble5": "ensemble3"}).runs(["ensemble5"]) == ["ensemble3"]


def test_phrases_have_stand_ins() -> None:
    data = scale(phrases={"voice": "own_voice"})
    assert (data.phrases_for("voice"), data.phrases_for("x")) == ("own_voice", "x")


def test_headlines_have_the_seeds_and_test_sets_that_there_are() -> None:
    data = scale(seeds=2, tests={"full": "part", "other": "part", "third": "absent"})
    assert data.headline_seeds((1, 2, 3)) == [1, 2]
    assert data.headline_tests(["full", "other", "third"], ["part"]) == ["part", "third"]


def test_the_development_set_is_the_tasks_or_its_stand_in(settings: Settings) -> None:
    tuned = DecodingSettings(length_penalty=TunedLengthPenalty(tuned_on="newstest2015"))
    data = scale(tests={"newstest2015": "valid"})
    german, demo = settings.tasks["wmt14_en_de"], settings.tasks["demo_en_fr"]
    assert data.development_set(german, tuned) == "newstest2015"
    assert data.development_set(demo, tuned) == "valid"
    assert data.development_set(demo, DecodingSettings()) is None
