"""Models that are fetched by name: `convs2s get`, and the names in place of model files."""

import io
import shutil
import sys
from pathlib import Path

import pytest

from convs2s.cli.options import model_files
from convs2s.config.corpus import PreparationRecipes
from convs2s.config.settings import Settings
from convs2s.files.checksums import sha256
from convs2s.interop import published
from convs2s.interop.published import file_of, get_model, published_models
from convs2s.model_file import describe_model
from published_models import entry as released
from tests.conftest import Terminal
from tests.support.refusals import refusal

NAME = "wmt14_en_fr"


pytestmark = pytest.mark.usefixtures("cache")


def test_the_registry_says_of_a_file_what_tasks_and_downloads_say(
    settings: Settings,
) -> None:
    for name, model in published_models().items():
        assert model.fairseq is not None
        task = settings.tasks[f"{name}_released"]
        assert task.released is not None
        for key, member in model.fairseq.model_dump().items():
            assert getattr(task.released, key) == f"{model.url}#{member}"
        listed = settings.downloads[model.url].model_dump()
        assert model.model_dump(include=set(listed)) == listed
        assert model.languages == task.languages
        assert task.preparation.test == PreparationRecipes().test
        assert set(model.tasks) <= settings.tasks.keys()


def test_a_model_of_fairseqs_is_converted_and_takes_its_name(
    run: Terminal, mirror: Path, cache: Path
) -> None:
    asked = ["--quiet", "--minimum-length=2"]
    for name in published_models():
        file = Path(run("get", name, "--mirror", mirror).strip())
        description = describe_model(file)
        assert description.task == name
        assert description.training["imported_from"] == "fairseq"
        # The archive is gone, and its checksum is kept for the next time.
        kept = {path.name for path in cache.rglob("*") if path.is_file()}
        assert {file.name, f"{file.stem}.sha256"} <= kept
        assert file.stem not in kept
        by_name = run("translate", name, *asked, text=b"the red house\n")
        assert by_name.split()
        assert by_name == run("translate", file, *asked, text=b"the red house\n")


def test_a_release_of_this_project_is_checked_and_used_as_it_is(
    model: Path, tmp_path: Path
) -> None:
    entry = released("https://example.org/v1", model)
    assert (entry.sha256, entry.tasks) == (sha256(model), ("tiny",))
    place = tmp_path / "example.org/v1/model.safetensors"
    place.parent.mkdir(parents=True)
    shutil.copy(model, place)
    found = get_model(entry, [str(tmp_path)])
    assert found == file_of(entry)
    assert found.read_bytes() == model.read_bytes()


def test_a_name_that_has_no_file_is_refused(run: Terminal) -> None:
    for typed, said in (
        (f"translate {NAME}", "not on this machine yet: fetch it by `convs2s"),
        ("get wmt14_en_it", "get: unknown published model 'wmt14_en_it'; did you mean"),
        ("translate wmt14_en_it", "wmt14_en_it: no such file"),
    ):
        with pytest.raises(SystemExit, match=said):
            run(*typed.split())


def test_on_a_terminal_it_is_fetched_after_a_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(published, "get_model", lambda _: Path("fetched"))
    keyboard = io.TextIOWrapper(io.BytesIO(b"y\nn\n"))
    monkeypatch.setattr(keyboard, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", keyboard)
    assert model_files([Path(NAME)]) == [Path("fetched")]
    assert capsys.readouterr().err.endswith("(size not known, MIT)? [y/N] ")
    refusal(model_files, [Path(NAME)])
