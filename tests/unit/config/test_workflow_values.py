"""What rules ask of the configuration: sizes, names of files, settings of a machine."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from convs2s.config.file_reference import Download
from convs2s.config.identity import machine_settings, training_settings
from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.config.task import Task
from convs2s.errors import UserError
from tests.support.user_task import TASK

URL = "https://data.example/a.tgz"
OWN = yaml.safe_load(TASK)


def own_task(*train: tuple[str, str]) -> Task:
    pairs = [{"source": source, "target": target} for source, target in train]
    return Task.model_validate(
        OWN | {"corpus": OWN["corpus"] | {"train": pairs}}
    ).named("mine")


def of_size(settings: Settings, size: int | None, **options: object) -> Settings:
    """Return the configuration with a task that is made of one archive of so many bytes."""
    return replace(
        settings,
        tasks={
            "mine": own_task(
                (f"{URL}#a.en", f"{URL}#a.fr"), (f"{URL}#b.en", f"{URL}#b.fr")
            )
        },
        downloads={URL: Download(url=URL, bytes=size)},
        options=settings.options.model_copy(update=options),
    )


@pytest.mark.parametrize(
    ("size", "above", "is_large"),
    [
        (100_000_000, 100, True),
        (99_999_999, 100, False),  # the archive counts once, whatever of it is read
        (99_999_999, 99, True),
        (None, 100, False),
        (None, 0, True),
    ],
)
def test_a_task_is_large_by_the_bytes_of_its_training_files(
    settings: Settings, size: int | None, above: int, is_large: bool
) -> None:
    assert of_size(settings, size, scatter_above=above).is_large("mine") == is_large


def test_the_size_of_a_users_own_files_is_that_on_the_disk(
    settings: Settings, tmp_path: Path
) -> None:
    sides = tmp_path / "own.en", tmp_path / "own.fr"
    task = own_task((str(sides[0]), str(sides[1])))
    given = replace(of_size(settings, None, scatter_above=1), tasks={"mine": task})
    assert not given.is_large("mine")  # before they are there
    for path in sides:
        path.write_bytes(bytes(500_000))
    assert given.is_large("mine")
    sides[0].write_bytes(bytes(499_999))
    assert not given.is_large("mine")


def test_what_the_mirror_stands_in_for_is_small(settings: Settings) -> None:
    scale = settings.scale.model_copy(update={"generated_mirror": True})
    assert not replace(of_size(settings, 10**12), scale=scale).is_large("mine")


def test_of_the_papers_tasks_those_of_wmt_are_large(settings: Settings) -> None:
    large = {name for name in settings.tasks if settings.is_large(name)}
    assert {"wmt14_en_fr", "wmt14_en_de"} <= large
    assert not large & {"demo_en_fr", "multi30k_en_de"}


def test_a_download_is_told_by_its_place(settings: Settings) -> None:
    given = of_size(settings, 7)
    assert given.download_at("data.example/a.tgz") == {
        "url": URL,
        "size": 7,
        "sha256": None,
        "md5": None,
    }
    said = (
        "results/downloads/data.example/b.tgz: unknown download 'data.example/b.tgz'; did you "
        "mean 'data.example/a.tgz'?"
    )
    with pytest.raises(UserError, match=f"^{re.escape(said)}$"):
        given.download_at("data.example/b.tgz")


def test_the_scores_of_another_systems_list_are_sums(
    settings: Settings, demo: Settings
) -> None:
    assert settings.decoding_of_list() == {"length_penalty": 0.0}
    assert demo.decoding_of_list() == demo.decodings["list20"].model_dump(mode="json")


def test_a_training_starts_from_one_model_or_none(
    root: Path, settings: Settings
) -> None:
    assert settings.start_of("small") == []
    start = {"start": {"from": "a.safetensors", "as": "initialise"}}
    given = load(root, {"overrides": {"models": {"small": {"training": start}}}})
    assert given.start_of("small") == ["a.safetensors"]


def test_what_the_mirror_stands_in_for_has_no_checksum_of_upstream(
    settings: Settings,
) -> None:
    def digests(given: Settings) -> set[str | None]:
        return {
            source.sha256 for source in given.dataset_metadata("multi30k_en_de").sources
        }

    scale = settings.scale.model_copy(update={"generated_mirror": True})
    assert digests(settings) != {None}
    assert digests(replace(settings, scale=scale)) == {None}


@pytest.mark.parametrize(
    ("vocabulary", "names"),
    [
        ({"merges": 9}, ["codes"]),
        ({"merges": 9, "joint": False}, ["codes.en", "codes.fr"]),
        ({"kind": "word"}, []),
    ],
)
def test_codes_are_of_both_sides_of_each_or_of_none(
    vocabulary: dict[str, object], names: list[str]
) -> None:
    assert (
        Task.model_validate(OWN | {"vocabulary": vocabulary})
        .named("mine")
        .bpe_codes_names()
        == names
    )


def test_a_language_has_a_side() -> None:
    task = Task.model_validate(OWN).named("mine")
    assert [task.side_of("en"), task.side_of("fr")] == ["source", "target"]
    with pytest.raises(
        UserError, match="task mine: unknown language 'de'; expected one of en"
    ):
        task.side_of("de")


def test_references_have_a_file_each() -> None:
    pair = {"source": "t.en", "target": "t.fr", "references": ["t1.fr", "t2.fr"]}
    tests = {"one": [OWN["corpus"]["tests"]["mine"][0]], "three": [pair]}
    task = Task.model_validate(
        OWN | {"corpus": OWN["corpus"] | {"tests": tests}}
    ).named("mine")
    assert task.reference_parts("one") == [""]
    assert task.reference_parts("three") == ["", ".reference1", ".reference2"]


def test_settings_of_the_machine_are_no_part_of_the_recipe(settings: Settings) -> None:
    stated = machine_settings(settings.models["small"].training)
    assert set(stated) == {"checkpoint_minutes", "tensorboard"}
    recipe = training_settings(settings.models["small"])["training"]
    assert isinstance(recipe, dict)
    assert not recipe.keys() & stated.keys()
