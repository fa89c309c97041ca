"""Extensions: which are known, what of them is run, and what an edit changes."""

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from convs2s.config import extensions
from convs2s.config.architecture import NetworkSettings, parse_architecture
from convs2s.config.extensions import (
    Registry,
    added,
    check_added,
    code_of,
    digest_of_extension,
    export_extensions,
)
from convs2s.config.load import load
from convs2s.config.model import ModelSettings
from convs2s.errors import UserError
from convs2s.models.build import build_network
from tests.unit.config.writing import append

NETWORK = """
from typing import Literal
from convs2s.config.architecture import NetworkSettings

class Settings(NetworkSettings):
    "Of a network that is none."
    kind: Literal["tiny"]
    width: int = 2

    def build(self, source_types, target_types):
        return torch.zeros(self.width, source_types)

ARCHITECTURES = {"tiny": Settings}
import torch
LOADED = True
"""
TINY_MODEL = """
tiny:
  description: of an extension
  architecture: {kind: tiny}
  training: {learning_rate: 0.1}
"""
METRIC = "METRICS = {'lines': lambda translations, references: len(translations)}\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write an extension, and have this process know it and those that were written before."""
    known: list[str] = []

    def file(text: str, name: str = "own.py") -> Path:
        (tmp_path / name).write_text(text, "utf-8")
        known[:] = dict.fromkeys([*known, name])
        export_extensions(known, tmp_path)
        return tmp_path / name

    return file


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which has an extension that this process does not know."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(extensions.VARIABLE, raising=False)
    (tmp_path / "own.py").write_text(METRIC)
    return tmp_path


@pytest.mark.usefixtures("here")
def test_nothing_is_known_where_nothing_is_configured() -> None:
    assert added("METRICS", ()) == {}


def test_the_options_of_the_current_folder_name_files(here: Path) -> None:
    (here / "config.yaml").write_text("extensions: [other.py]")
    (here / "config.local.yaml").write_text("extensions: [own.py]")
    assert list(added("METRICS", ())) == ["lines"]


def test_a_missing_file_is_named(root: Path) -> None:
    message = (
        r"extensions or CONVS2S_EXTENSIONS: .*/missing.py: cannot be read: No such file"
    )
    with pytest.raises(UserError, match=message):
        load(root, {"extensions": ["missing.py"]})
    with pytest.raises(UserError, match=message):  # exported now
        added("METRICS", ())


@pytest.mark.parametrize(("stated", "found"), [("", "null"), ("own.py", "'own.py'")])
def test_options_that_list_nothing_are_refused(
    here: Path, stated: str, found: str
) -> None:
    (here / "config.yaml").write_text(f"extensions: {stated}\n")
    with pytest.raises(
        UserError, match=rf"config\.yaml: extensions: expected a list, not {found}"
    ):
        added("METRICS", ())


def test_a_path_that_the_list_of_files_would_cut_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / f"one{os.pathsep}two"
    folder.mkdir()
    (folder / "own.py").write_text(METRIC)
    with pytest.raises(
        UserError, match=r"two/own\.py: rename it, without ':' in its path"
    ):
        export_extensions(["own.py"], folder)


def test_modules_of_one_workflow_have_all_of_their_extensions(
    root: Path, write: Callable[..., Path]
) -> None:
    write(METRIC)
    other = write("METRICS = {'words': len}", "other.py")
    load(root, {"extensions": [str(other)]}, given_by="config of the module")
    assert added("METRICS", ()).keys() == {"lines", "words"}
    load(root, {"extensions": [str(other)]})
    assert added("METRICS", ()).keys() == {"words"}


def test_a_name_is_refused_where_it_is_taken(
    root: Path, write: Callable[..., Path]
) -> None:
    write(METRIC)
    path = write(METRIC, "again.py")
    with pytest.raises(UserError, match=f"{path}: METRICS: the name 'lines' is taken"):
        added("METRICS", ())
    own = write(
        "class Plain:\n    prepare = restore = str\nPREPARATIONS = {'none': Plain}"
    )
    with pytest.raises(
        UserError, match=r"own\.py: PREPARATIONS: the name 'none' is taken"
    ):
        load(root, {"extensions": [str(own)]})
    own = write("METRICS = {'chrF': len}")
    with pytest.raises(UserError, match=r"own\.py: METRICS: the name 'chrF' is taken"):
        load(root, {"extensions": [str(own)]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("METRICS = {\n", r"own\.py:1: SyntaxError: "),
        (
            "METRICS = {}\nMETRICS['a'] = missing\n",
            r"own\.py:2: NameError: name 'missing' is not",
        ),
        (
            "import no_such_module\n",
            r"own\.py:1: ModuleNotFoundError: No module named 'no_such",
        ),
        ("import json\n\njson.loads('{')\n", r"own\.py:3: JSONDecodeError: "),
        ("METRICS = ['lines']\n", r"own\.py: METRICS: expected a mapping of names"),
        ("METRICS = {'a': 3}\n", r"own\.py: METRICS: a: expected a function, not 3"),
        (
            "METRICS = {'a': dict}\n",
            r"own\.py: METRICS: a: expected a function, not <class 'dict'>",
        ),
    ],
)
def test_code_that_fails_is_named_with_its_line(
    write: Callable[..., Path], text: str, message: str
) -> None:
    write(text)
    with pytest.raises(UserError, match=message):
        added("METRICS", ())
    with pytest.raises(UserError, match=message):
        digest_of_extension("METRICS", "lines")


@pytest.mark.parametrize(
    ("registry", "text", "message"),
    [
        (
            "ARCHITECTURES",
            "{'a': dict}",
            "a: expected a subclass of NetworkSettings with build",
        ),
        (
            "ARCHITECTURES",
            "{'a': 3}",
            "a: expected a subclass of NetworkSettings with build",
        ),
        (
            "ARCHITECTURES",
            "{'a': NetworkSettings}",
            "a: expected a subclass of NetworkSettings with build",
        ),
        (
            "ARCHITECTURES",
            "{'a': Other}",
            "a: expected a subclass of NetworkSettings with build",
        ),
        (
            "PREPARATIONS",
            "{'a': len, 'b': str}",
            "b: expected a class with prepare and restore",
        ),
        ("PREPARATIONS", "{'a': 3}", "a: expected a class with prepare and restore"),
        ("PREPARATIONS", "{'a': str}", "a: expected a class with prepare and restore"),
    ],
)
def test_a_value_of_another_kind_is_refused(
    write: Callable[..., Path], registry: Registry, text: str, message: str
) -> None:
    top = "from convs2s.config.architecture import NetworkSettings\n"
    top += "from pydantic import BaseModel\n"
    top += "class Other(BaseModel):\n    def build(self): ...\n"
    write(f"{top}{registry} = {text}\n")
    with pytest.raises(UserError, match=rf"own\.py: {registry}: {message}"):
        added(registry, ())


def test_a_file_that_is_no_text_is_named(write: Callable[..., Path]) -> None:
    write("").write_bytes(b"\xff")
    with pytest.raises(
        UserError, match=r"own\.py: cannot be read: 'utf-8' codec can't decode"
    ):
        added("METRICS", ())


def test_an_override_that_snakemake_left_as_text_is_read(
    copy: Path, write: Callable[..., Path]
) -> None:
    own = write(NETWORK)
    append(copy / "config/models.yaml", TINY_MODEL)
    given = {"extensions": [str(own)], "overrides": {"models": {"tiny": {}}}}

    def loaded(width: object, rate: object = "0.5") -> ModelSettings:
        stated = {"architecture": {"width": width}, "training": {"learning_rate": rate}}
        given["overrides"] = {"models": {"tiny": stated}}
        return load(copy, given).models["tiny"]

    tiny = loaded("5")
    assert (tiny.architecture.model_dump()["width"], tiny.training.learning_rate) == (
        5,
        0.5,
    )
    with pytest.raises(
        UserError,
        match=r"models\.yaml: tiny \(with the overrides .*expected a valid int",
    ):
        loaded("five")


def test_an_unknown_name_is_answered_with_those_that_are_known(
    write: Callable[..., Path],
) -> None:
    write(METRIC)
    with pytest.raises(
        UserError, match="here: unknown metric 'line'; did you mean 'lines'"
    ):
        check_added("here", "METRICS", "line")


def test_a_plan_stops_before_torch_and_a_network_runs_the_rest(
    write: Callable[..., Path],
) -> None:
    path = write(NETWORK)
    settings = parse_architecture({"kind": "tiny", "width": 3})
    assert isinstance(settings, NetworkSettings)
    module = sys.modules[str(path)]
    assert not hasattr(module, "LOADED")
    assert build_network(settings, 4, 5).shape == (3, 4)
    assert hasattr(module, "LOADED")
    assert settings.model_dump() == {"kind": "tiny", "width": 3}


def test_settings_of_an_extension_are_checked_as_all_are(
    write: Callable[..., Path],
) -> None:
    write(NETWORK)
    with pytest.raises(
        UserError, match="file: architecture: unknown key 'wdith'; did you mean 'width'"
    ):
        parse_architecture({"kind": "tiny", "wdith": 3})


def test_the_code_of_a_file_is_the_same_in_every_version_of_python() -> None:
    """What Python 3.11 writes of it, where later ones know type parameters."""
    code = code_of('def f(x=None):\n    """Words."""\n    return x  # more words\n')
    assert hashlib.sha256(code.encode()).hexdigest()[:16] == "c2a82732a1b4a20e"


def test_an_edit_of_the_code_alone_trains_again(write: Callable[..., Path]) -> None:
    def digest(text: str) -> str:
        write(text)
        return parse_architecture({"kind": "tiny"}).code()["code"]

    first = digest(NETWORK)
    assert (
        digest(NETWORK.replace("that is none", "of nothing") + "# a comment") == first
    )
    assert digest(NETWORK.replace("torch.zeros", "torch.ones")) != first
    assert parse_architecture({"kind": "lstm"}).code() == {}


@pytest.mark.parametrize("name", ["own.py", "own"])
def test_an_edit_counts_whatever_the_name_and_wherever_a_value_is_from(
    write: Callable[..., Path], name: str
) -> None:
    text = "from functools import partial\nMETRICS = {'rounded': partial(round, 1)}\n"
    digests = set()
    for written in (text, text.replace("1", "2")):
        write(written, name)
        digests.add(digest_of_extension("METRICS", "rounded"))
    assert len(digests - {None}) == 2
