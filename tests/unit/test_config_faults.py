"""How a fault of the configuration is named: one line with the file, the key, what was expected."""

from pathlib import Path
from typing import Any

import pytest

from convs2s import config
from convs2s.errors import UserError
from tests.support.user_task import TASK


def fault(root: Path, given: dict[str, Any] | None = None) -> str:
    with pytest.raises(UserError) as caught:
        config.load(root, given)
    message = str(caught.value)
    assert "\n" not in message
    return message


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scael: demo", "config.yaml: unknown key 'scael'; did you mean 'scale'?"),
        ("sentences: [1]", "config.yaml: unknown key 'sentences'; did you mean 'plots.sentences'?"),
        ("scale: dmeo", "config.yaml: scale: unknown scale 'dmeo'; did you mean 'demo'?"),
        ("cores: many", "config.yaml: cores: expected a whole number or null, not 'many'"),
        ("cores: 0", "config.yaml: cores: expected at least 1, not 0"),
        ("shards: true", "config.yaml: shards: expected a whole number, not true"),
        ("device: gpu", "config.yaml: device: unknown value 'gpu'; did you mean 'cpu'?"),
        ("mirrors: ../m", "config.yaml: mirrors: expected a list, not '../m'"),
        ("- scale", "config.yaml: expected a mapping of keys to values, not a list of 1 entries"),
        ("scale: demo\nscale: paper", "config.yaml:2: duplicate key 'scale'"),
        ("scale: [demo\ncores: 2", "config.yaml:2: did not find expected ',' or ']'"),
        ("a: &x 1\nb: *y", "config.yaml:2: found undefined alias"),
        (
            "overrides: {models: {smal: {}}}",
            "config.yaml: overrides.models: unknown model 'smal'; did you mean 'small'?",
        ),
        (
            "overrides: {models: {small: {training: {clp: 1}}}}",
            "config/models.yaml: small (with the overrides of config.yaml): training: "
            "unknown key 'clp'; did you mean 'clip'?",
        ),
        (
            "overrides: {decodings: {greedy: {precision: bf61}}}",
            "config/decodings.yaml: greedy (with the overrides of config.yaml): precision: "
            "unknown value 'bf61'; did you mean 'bf16'?",
        ),
    ],
)
def test_faults_of_config_yaml(copy: Path, text: str, message: str) -> None:
    write(copy / "config.yaml", text)
    assert fault(copy) == message


def test_a_fault_names_the_file_that_states_it(copy: Path) -> None:
    write(copy / "config.local.yaml", "corse: 2\n")
    assert fault(copy) == "config.local.yaml: unknown key 'corse'; did you mean 'cores'?"
    write(copy / "config.local.yaml", "scale: dmeo\n")
    assert fault(copy).startswith("config.local.yaml: scale: unknown scale 'dmeo'")


def test_a_fault_of_the_command_line_is_told_from_one_of_a_file(copy: Path) -> None:
    message = fault(copy, {"scale": "dmeo"})
    assert message.startswith("--config or --configfile: scale: unknown scale 'dmeo'")
    assert fault(copy, {"scael": "demo"}).startswith("--config or --configfile: unknown key")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "languages: {source: en, target: fr}",
            "languages: {source: en, target: no}",
            'languages.target: expected a language code of two or three small letters, in quotes '
            'where YAML reads it as a truth value ("no"), not false',
        ),
        (
            "target: fr}",
            "target: en}",
            "languages: source and target name the same files; write for example en_text and "
            "en_summary",
        ),
        ("target: train.fr", "traget: train.fr", "corpus.train[0]: unknown key 'traget'; did you "
         "mean 'target'?"),
        (", target: train.fr", "", "corpus.train[0]: key 'target' is missing (File of the target "
         "side)"),
        ("tests: {mine", "tests: {train", "corpus.tests: expected a name of small letters, digits "
         "and underscores other than train and valid, not 'train'"),
        ("\n  valid: [{source: valid.en, target: valid.fr}]", "",
         "expected either corpus.valid or hold_out, for validation data"),
        ("description: A user's own language pair\n", "",
         "key 'description' is missing (One line: what the corpus is)"),
    ],
)  # fmt: skip
def test_faults_of_a_task(copy: Path, old: str, new: str, message: str) -> None:
    assert old in TASK
    write(copy / "config/tasks/mine.yaml", TASK.replace(old, new))
    assert fault(copy) == f"config/tasks/mine.yaml: {message}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("headline: {model: smal}", "headline.model: unknown model 'smal'; did you mean 'small'?"),
        (
            "headline: {decoding: beam55}",
            "headline.decoding: unknown decoding 'beam55'; did you mean 'beam5'?",
        ),
        (
            "headline: {tests: [min]}",
            "headline.tests: unknown test set 'min'; did you mean 'mine'?",
        ),
        (
            "headline: {model: lstm, decoding: beam5}",
            "headline.decoding: 'beam5' replaces unknown words by attention, which 'lstm', an ",
        ),
        ("headline: {seeds: []}", "headline.seeds: expected a list of 1 or more, not a list of 0"),
        ("text: demo_en_f", "text: unknown task 'demo_en_f'; did you mean 'demo_en_fr'?"),
        ("text: demo_en_fr_word", "text: 'demo_en_fr_word' has no text of its own; name the task"),
        ("text: demo_en_fr", "languages: comes from 'demo_en_fr', as text names it; state it"),
    ],
)
def test_faults_of_a_tasks_references(copy: Path, line: str, message: str) -> None:
    write(copy / "config/tasks/mine.yaml", f"{TASK}{line}\n")
    assert fault(copy).startswith(f"config/tasks/mine.yaml: {message}")


def test_a_tasks_file_name_is_its_name(copy: Path) -> None:
    write(copy / "config/tasks/My-Task.yaml", TASK)
    assert fault(copy).startswith("config/tasks/My-Task.yaml: expected a name of small letters")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{extends: smal}", "mine.extends: unknown model 'smal'; did you mean 'small'?"),
        ("{extends: mine}", "mine.extends: a model cannot extend itself: mine -> mine"),
        (
            "{extends: small, training: {maximum_epochs: null}}",
            "mine.training: a cosine schedule needs maximum_epochs above its warmup (0.5), not "
            "None",
        ),
        (
            "{extends: small, architecture: {attention: [1, 7]}}",
            "mine.architecture.attention: names block 7, but the decoder has 3",
        ),
        (
            "{extends: small, architecture: {attention: some}}",
            "mine: architecture.attention: expected all, or a list of block numbers such as "
            "[1, 3, 5], not 'some'",
        ),
        (
            "{extends: small, training: {batch: {words: null}}}",
            "mine.training.batch: expected a number of sentences, of words or both",
        ),
        (
            "{extends: lstm, architecture: {encoder: [{layers: 1, width: 8, kernel: 3}]}}",
            "mine: architecture: unknown key 'encoder'; expected one of cells, dropout, embedding, "
            "initialization, kind, layers, reverse_source",
        ),
        (
            "{description: one, architecture: {kind: lsmt, cells: 8}}",
            "mine: architecture.kind: unknown value 'lsmt'; did you mean 'lstm'?",
        ),
        (
            "{extends: small, architecture: {kind: lstm}}",
            "mine: architecture: unknown key 'output_embedding'; did you mean 'embedding'?",
        ),
        ("3", "expected a mapping of names, each with a mapping of settings"),
    ],
)
def test_faults_of_a_model(copy: Path, entry: str, message: str) -> None:
    with (copy / "config/models.yaml").open("a", encoding="utf-8") as models:
        models.write(f"\nmine: {entry}\n")
    assert fault(copy) == f"config/models.yaml: {message}"


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("scales/demo.yaml", "wmt16_en_ro: demo_en_fr\n", "wmt16_en_r: demo_en_fr\n",
         "tasks: unknown task 'wmt16_en_r'; did you mean 'wmt16_en_ro'?"),
        ("scales/demo.yaml", "ablation: demo\n", "ablation: dmo\n",
         "models.ablation: unknown model 'dmo'; did you mean 'demo'?"),
        ("scales/demo.yaml", "newstest2016: test\n", "newstest2016: tset\n",
         "tests: of the stand-in task 'demo_en_fr_word': unknown test set 'tset'; did you mean "
         "'test'?"),
        ("paper.yaml", "model: ablation_attention_5}", "model: ablation_attention_6}",
         "table5: row 10: model: unknown model 'ablation_attention_6'; did you mean "),
        ("paper.yaml", "paper: {bleu: 29.45}", "paper: {blue: 29.45}",
         "table1: row 2: paper: unknown column 'blue'; did you mean 'bleu'?"),
        ("paper.yaml", "runs: [ensemble8]", "runs: [ensemble1]",
         "table2: ours.runs[0]: expected seedN, or ensembleN with N of 2 or more, not 'ensemble1'"),
        ("downloads.yaml", "sha256: 0224", "sha256: 022",
         "download 1: sha256: expected 64 hexadecimal digits, not "),
    ],
)  # fmt: skip
def test_faults_of_the_other_files(copy: Path, file: str, old: str, new: str, message: str) -> None:
    path = copy / "config" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    assert fault(copy, {"scale": "demo"}).startswith(f"config/{file}: {message}")


def test_a_folder_without_configuration_is_named(tmp_path: Path) -> None:
    assert fault(tmp_path) == f"{tmp_path}: has no folder config; give the folder of config.yaml"
