"""What several unit tests share."""

import io
import shutil
import sys
from pathlib import Path

import pytest
import torch

from convs2s.cli.main import main
from convs2s.config.architecture import LstmArchitecture, parse_architecture
from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.model_file import load_model, save_model
from convs2s.models.build import build_network


class Terminal:
    """Runs the command with some standard input."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ):
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: object, text: bytes = b"") -> str:
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        main([str(argument) for argument in arguments])
        return self.capsys.readouterr().out


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    return Terminal(monkeypatch, capsys)


@pytest.fixture(scope="session")
def settings(root: Path) -> Settings:
    """The configuration as it comes, at scale paper; no test changes it."""
    return load(root, {})


@pytest.fixture(scope="session")
def paper(settings: Settings) -> Settings:
    """The same, where tests hold other scales against it."""
    return settings


@pytest.fixture(scope="session")
def demo(root: Path) -> Settings:
    return load(root, {"scale": "demo"})


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test in its own folder, where nothing has run: a scale's paths are relative."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def sharp(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of larger random weights and long sentences, whose outputs hang by little."""
    _, description = load_model(model)
    stated = description.architecture.model_dump()
    architecture = parse_architecture(stated | {"positions": {"maximum": 64}})
    torch.manual_seed(2)
    network = build_network(architecture, *description.sizes)
    for parameter in network.parameters():
        parameter.data.mul_(1.5)
    path = tmp_path_factory.mktemp("sharp") / "model.safetensors"
    save_model(
        path,
        network.state_dict(),
        description.model_copy(update={"architecture": architecture}),
    )
    return path


@pytest.fixture(scope="session")
def recurrent(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An LSTM with random weights, over the vocabularies of the trained model."""
    _, description = load_model(model)
    architecture = LstmArchitecture(
        kind="lstm", layers=2, cells=12, embedding=10, initialization=0.5
    )
    torch.manual_seed(3)
    weights = build_network(architecture, *description.sizes).state_dict()
    path = tmp_path_factory.mktemp("lstm") / "lstm.safetensors"
    save_model(
        path, weights, description.model_copy(update={"architecture": architecture})
    )
    return path


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """A folder with the configuration, to be changed."""
    shutil.copytree(root / "config", tmp_path / "config")
    shutil.copy(root / "config.yaml", tmp_path)
    return tmp_path
