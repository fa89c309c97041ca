"""Every network, recipe, decoding and task of the papers, as data/papers states them."""

from typing import Any

import pytest
import yaml

from convs2s.config.load import merged
from convs2s.config.settings import Settings
from tests.support.golden import DATA

Values = dict[str, Any]

MODELS: dict[str, Values] = yaml.safe_load((DATA / "papers/models.yaml").read_text())
TASKS: dict[str, Values] = yaml.safe_load((DATA / "papers/tasks.yaml").read_text())
COMMON = MODELS["common"]
MODELS_OF_THIS_PROJECT = "small", "larger", "demo", "long"
TASKS_OF_THIS_PROJECT = "demo", "multi30k", "mixed", "arxiv_titles", "iwslt14"
"""What the names of models and of tasks begin with that are in no paper."""
WITHOUT_EFFECT = {"threads", "checkpoint_minutes", "start", "tensorboard"}


def test_all_of_the_papers_are_here(settings: Settings) -> None:
    models = {
        one for one in settings.models if not one.startswith(MODELS_OF_THIS_PROJECT)
    }
    assert models == MODELS["networks"].keys()
    assert settings.decodings.keys() == MODELS["decodings"].keys()
    tasks = {
        one
        for one in settings.tasks
        if not one.startswith(TASKS_OF_THIS_PROJECT) and not one.endswith("_released")
    }
    assert tasks == TASKS["tasks"].keys()


@pytest.mark.parametrize("name", MODELS["networks"])
def test_models(settings: Settings, name: str) -> None:
    stated = MODELS["networks"][name]
    expected = merged(COMMON[stated.get("kind", "convs2s")], stated)
    for side in {"encoder", "decoder"} & expected.keys():
        expected[side] = [
            {"layers": layers, "width": width, "kernel": kernel}
            for layers, width, kernel in expected[side]
        ]
    model = settings.models[name]
    assert model.architecture.model_dump(mode="json") == expected
    recipe = model.training.model_dump(mode="json", exclude=WITHOUT_EFFECT)
    assert recipe == merged(COMMON["recipe"], MODELS["recipes"].get(name, {}))


@pytest.mark.parametrize("name", MODELS["decodings"])
def test_decodings(settings: Settings, name: str) -> None:
    expected = merged(COMMON["decoding"], MODELS["decodings"][name])
    assert settings.decodings[name].model_dump(mode="json") == expected


@pytest.mark.parametrize("name", TASKS["tasks"])
def test_tasks(settings: Settings, name: str) -> None:
    task = settings.tasks[name]
    found = task.model_dump(mode="json", exclude={"description", "corpus", "released"})
    assert found == {"text": None, **merged(TASKS["common"], TASKS["tasks"][name])}
    assert task.released is None


@pytest.mark.parametrize("name", TASKS["files"])
def test_the_files_of_each_task(settings: Settings, name: str) -> None:
    corpus = settings.tasks[name].corpus
    found = {"train": corpus.train, "valid": corpus.valid, **corpus.tests}
    assert {
        split: [
            [pair.source, pair.target, *getattr(pair, "references", ())]
            for pair in pairs
        ]
        for split, pairs in found.items()
        if pairs
    } == TASKS["files"][name]
