"""What the configuration says of models that trainings start from, and its faults."""

from pathlib import Path

import pytest

from convs2s.config.identity import training_settings
from convs2s.config.load import load
from tests.support.user_task import TASK
from tests.unit.config.writing import append, fault, write


def test_a_start_is_written_as_it_is_read(copy: Path) -> None:
    entry = "{extends: small, training: {start: {from: a.safetensors, as: continue}}}"
    append(copy / "config/models.yaml", f"mine: {entry}\n")
    stated = training_settings(load(copy).model("mine"))["training"]
    assert isinstance(stated, dict)
    assert stated["start"] == {"from": "a.safetensors", "as": "continue"}
    assert load(copy).model_references() == {"a.safetensors"}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "{extends: small, training: {start: {from: a, as: initialize}}}",
            "mine: training.start.as: expected 'continue' or 'initialise', not 'initialize'",
        ),
        (
            "{extends: small, training: {start: {from: a.zip#b, as: continue}}}",
            "mine: training.start.from: expected the path or http(s) URL of a model file, without "
            "#, not 'a.zip#b'",
        ),
        (
            "{extends: small, training: {start: {from: 'ftp://a/b', as: continue}}}",
            "mine: training.start.from: expected the path or http(s) URL of a model file, without "
            "#, not 'ftp://a/b'",
        ),
        (
            "{extends: wmt14_en_de, architecture: {attention_weights: shared}}",
            "mine: architecture.attention_weights: blocks of 512 and 768 and 2048 channels cannot "
            "share them: give the attending blocks one width",
        ),
    ],
)
def test_faults_of_a_model(copy: Path, entry: str, message: str) -> None:
    append(copy / "config/models.yaml", f"mine: {entry}\n")
    assert fault(copy) == f"config/models.yaml: {message}"


def test_a_threshold_and_sizes_of_bpe_exclude_each_other(copy: Path) -> None:
    stated = "vocabulary: {kind: bpe, threshold: 50, source_size: 3000}\n"
    write(copy / "config/tasks/mine.yaml", TASK + stated)
    assert fault(copy) == (
        "config/tasks/mine.yaml: vocabulary: expected either a threshold or sizes with BPE, as "
        "tokens that a size leaves out are not split again; leave out source_size and target_size"
    )


def test_a_vocabulary_of_a_model_is_joint(copy: Path) -> None:
    taken = "vocabulary_of: m.safetensors\nvocabulary: {joint: false}\n"
    write(copy / "config/tasks/mine.yaml", TASK + taken)
    assert fault(copy) == (
        "config/tasks/mine.yaml: vocabulary: the vocabulary of a model (vocabulary_of) is joint "
        "and has no threshold; leave out joint and threshold"
    )
