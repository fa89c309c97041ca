"""Every network, recipe, decoding and task of the papers, as data/papers states them."""

from typing import Any

import yaml

from convs2s.config.load import merged
from convs2s.config.model import Recipe
from convs2s.config.settings import Settings
from tests.support.golden import DATA

MODELS: dict[str, Any] = yaml.safe_load((DATA / "papers/models.yaml").read_text())
TASKS: dict[str, Any] = yaml.safe_load((DATA / "papers/tasks.yaml").read_text())
COMMON = MODELS["common"]
MODELS_OF_THIS_PROJECT = "small", "larger", "demo", "long"
TASKS_OF_THIS_PROJECT = "demo", "multi30k", "mixed", "arxiv_titles", "iwslt14"
"""What the names of models and of tasks begin with that are in no paper."""
WITHOUT_EFFECT = {"threads", "checkpoint_minutes", "start", "tensorboard"}


def test_models(settings: Settings) -> None:
    found = set()
    for name, model in settings.models.items():
        if name.startswith(MODELS_OF_THIS_PROJECT):
            continue
        found.add(name)
        stated = MODELS["networks"][name]
        expected = merged(COMMON[stated.get("kind", "convs2s")], stated)
        for side in {"encoder", "decoder"} & expected.keys():
            expected[side] = [
                {"layers": layers, "width": width, "kernel": kernel}
                for layers, width, kernel in expected[side]
            ]
        assert model.architecture.model_dump(mode="json") == expected, name
        recipe = model.training.model_dump(mode="json", exclude=WITHOUT_EFFECT)
        changes = MODELS["recipes"].get(name, {})
        assert recipe == merged(COMMON["recipe"], changes), name
    assert found == set(MODELS["networks"])


def test_the_defaults_are_the_papers() -> None:
    found = Recipe().model_dump(mode="json", exclude=WITHOUT_EFFECT)
    assert found == COMMON["recipe"]


def test_decodings(settings: Settings) -> None:
    assert {
        name: decoding.model_dump(mode="json")
        for name, decoding in settings.decodings.items()
    } == {
        name: merged(COMMON["decoding"], stated)
        for name, stated in MODELS["decodings"].items()
    }


def test_tasks_and_their_files(settings: Settings) -> None:
    found = set()
    for name, task in settings.tasks.items():
        if name.startswith(TASKS_OF_THIS_PROJECT) or name.endswith("_released"):
            continue
        found.add(name)
        stated = task.model_dump(
            mode="json", exclude={"description", "corpus", "released"}
        )
        expected = merged(TASKS["common"], TASKS["tasks"][name])
        assert stated == {"text": None, **expected}, name
        assert task.released is None
        corpus = task.corpus
        files: dict[str, list[list[str]]] = {}
        splits = {"train": corpus.train, "valid": corpus.valid, **corpus.tests}
        for split, pairs in splits.items():
            for pair in pairs:
                references = getattr(pair, "references", ())
                listed = [pair.source, pair.target, *references]
                files.setdefault(split, []).append(listed)
        if name in TASKS["files"]:
            assert files == TASKS["files"][name], name
    assert found == set(TASKS["tasks"])
