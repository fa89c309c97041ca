"""The files of the configuration: what is merged, what stands for what, and what names mean."""

from pathlib import Path

import pytest
import yaml

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.config.task import Headline
from convs2s.config.yaml_file import option_files, read_yaml
from convs2s.files.text import write_lines
from tests.support.own_pair import TASK
from tests.support.refusals import refuses, rows

# What is merged in may repeat keys at any depth; of several merged mappings the first wins.
YAML = r"""
# a => null
1e-4 => 0.0001
a: &a {k: 1}\nb: {y: &b {<<: *a, k: 2}} => {a: {k: 1}, b: {y: {k: 2}}}
a: &a {k: 1}\nb: {<<: {<<: *a, k: 2}, k: 3} => {a: {k: 1}, b: {k: 3}}
c: {m: 3, <<: [{k: 1}, {k: 2, l: 2}]} => {c: {k: 1, l: 2, m: 3}}
"""


def test_yaml(tmp_path: Path) -> None:
    for text, value in rows(YAML):
        (tmp_path / "a.yaml").write_text(text)
        assert read_yaml(tmp_path / "a.yaml", "a.yaml") == yaml.safe_load(value)


def test_the_workflow_has_what_the_user_has_not(
    root: Path, settings: Settings, tmp_path: Path
) -> None:
    write_lines(tmp_path / "config/tasks/mine.yaml", [TASK])
    (tmp_path / "config/tasks/.#mine.yaml").symlink_to("a lock of Emacs")
    write_lines(tmp_path / "config.yaml", ["unrelated: 1"])
    text = (root / "config/decodings.yaml").read_text("utf-8")
    changed = text.replace("beam: 12", "beam: 13")
    write_lines(tmp_path / "config/decodings.yaml", [changed])
    loaded = load(tmp_path, {"cores": 3}, shipped=root, given_by="config of the module")
    assert loaded.options.cores == 3
    assert loaded.tasks.keys() - settings.tasks.keys() == {"mine"}
    headline = Headline(model="small", seeds=(1,), tests=("mine",), decoding="beam5")
    assert loaded.tasks["mine"].headline == headline
    assert loaded.models == settings.models
    assert loaded.decodings["lstm_beam12"].beam == 13


def test_options_are_in_two_files_or_are_given(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    (copy / "config/config.yaml").write_text("cores: 1")
    local = copy / "config.local.yaml"
    local.write_text("""
    plots: {sentences: [7]}
    mirrors: [~/mirror, "~", ../~, https://host/~me]
    """)
    assert list(option_files(copy)) == ["config.yaml", "config.local.yaml"]
    options = load(copy).options
    places = "/home/me/mirror", "/home/me", "../~", "https://host/~me"
    assert (options.mirrors, options.plots.sentences) == (places, (7,))
    assert load(copy, {"scale": "demo"}).options.mirrors == ()
    local.write_text("# Snakemake would refuse it")
    assert list(option_files(copy)) == ["config.yaml"]
    (copy / "config.yaml").unlink()
    assert list(option_files(copy)) == ["config/config.yaml"]


def test_models_extend_others_in_files_of_ones_own(
    root: Path, settings: Settings, tmp_path: Path
) -> None:
    own = tmp_path / "config/models.d"
    own.mkdir(parents=True)
    (own / "one.yaml").write_text("""
    second:
      extends: first
      description: b
      training: {threads: 3, start: {from: a.safetensors, as: continue}}
    """)
    (own / "pair.yaml").write_text("""
    first: {extends: small, description: a, training: {clip: 0.5}}
    third: {extends: small, description: c, training: {clip: 0.5}}
    """)
    (own / ".#pair.yaml").symlink_to("a lock of Emacs")
    given = yaml.safe_load("""
    overrides:
      models:
        small: {training: {momentum: 5e-1}}
        third: {training: {clip: 0.25}}
    """)
    loaded = load(tmp_path, given, shipped=root)
    assert loaded.models.keys() - settings.models.keys() == {"first", "second", "third"}
    second = loaded.models["second"]
    training = second.training
    assert (training.clip, training.threads, training.momentum) == (0.5, 3, 0.5)
    assert second.architecture == loaded.models["small"].architecture
    assert loaded.models["third"].training.clip == 0.25
    assert loaded.start_of("second") == ["a.safetensors"]
    assert loaded.start_of("small") == []
    assert loaded.model_references() == {"a.safetensors"}
    assert loaded.model_files["second"] == "config/models.d/one.yaml"
    assert loaded.model_files["small"] == "config/models.yaml"
    refuses("unknown model 'smal'; ", loaded.model, "smal")


def test_what_snakemake_leaves_as_text_is_read_where_no_text_is_wanted(
    copy: Path,
) -> None:
    text = """
    plots: {sentences: ["4"]}
    overrides:
      models:
        demo:
          training: {clip: "1.0e-4", threads: "3", maximum_epochs: "null"}
          architecture: {attention: ["1", "2"], encoder: [{layers: "2", width: 8, kernel: 3}]}
      tasks: {demo_en_fr: {description: '3', clean: {ratio: "2"}}}
      decodings: {greedy: {replace_unknown: "false", length_penalty: "0"}}
    """
    loaded = load(copy, yaml.safe_load(text.replace("1.0e-4", "1e-4")))
    plain = load(copy, yaml.safe_load(text.replace('"', "")))
    assert loaded.options.plots == plain.options.plots
    for part in ("models", "tasks", "decodings"):
        assert getattr(loaded, part) == getattr(plain, part)
    assert loaded.models["demo"].training.clip == 1e-4
    assert loaded.tasks["demo_en_fr"].description == "3"
