"""Where the files of the configuration come from: the user's folder, else the workflow's own."""

from pathlib import Path

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.config.yaml_file import option_files
from tests.support.user_task import TASK
from tests.unit.config.writing import write


def test_the_workflow_has_what_the_user_has_not(
    root: Path, settings: Settings, tmp_path: Path
) -> None:
    write(tmp_path / "config/tasks/mine.yaml", TASK)
    write(tmp_path / "config.yaml", "unrelated: 1")
    text = (root / "config/decodings.yaml").read_text("utf-8")
    write(tmp_path / "config/decodings.yaml", text.replace("beam: 12", "beam: 13"))
    loaded = load(tmp_path, {"cores": 3}, shipped=root, given_by="config of the module")
    assert loaded.options.cores == 3
    assert set(loaded.tasks) - set(settings.tasks) == {"mine"}
    assert loaded.models == settings.models
    assert loaded.decodings != settings.decodings


def test_a_deployed_configuration_lies_in_its_folder(tmp_path: Path) -> None:
    assert list(option_files(tmp_path)) == []
    write(tmp_path / "config/config.yaml", "cores: 1\n")
    assert list(option_files(tmp_path)) == ["config/config.yaml"]
    write(tmp_path / "config.yaml", "cores: 1\n")
    write(tmp_path / "config.local.yaml", "cores: 2\n")
    assert list(option_files(tmp_path)) == ["config.yaml", "config.local.yaml"]
    write(tmp_path / "config.local.yaml", "# cores: 2\n")  # Snakemake would refuse it
    assert list(option_files(tmp_path)) == ["config.yaml"]


def test_downloads_follow_the_results_if_they_are_among_them(
    settings: Settings,
) -> None:
    scale = settings.scale
    assert scale.downloads_below("own") == "own/downloads"
    elsewhere = scale.model_copy(update={"downloads_dir": "/big/disk"})
    assert elsewhere.downloads_below("own") == "/big/disk"
