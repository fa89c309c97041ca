"""What an edit runs again, and what it leaves alone."""

import re

import pytest
import yaml

from convs2s.config.identity import MACHINE_KEYS
from tests.support.checkout import Checkout

BLEU = "results/mine_en_nl/bleu.txt"
RUN = "results/mine_en_nl/models/small/seed1"


@pytest.mark.parametrize("module", ["decoding/search.py", "models/layers.py"])
def test_decoding_code_reruns_decoding_and_scores_but_no_training(
    finished: Checkout, module: str
) -> None:
    finished.insert(f"src/convs2s/{module}", "pass")
    done = finished.snakemake("--dry-run", BLEU)
    assert done.planned == {
        "decode_test_set": 1,
        "evaluate_bleu": 1,
        "summarize_runs": 1,
    }, done.said


def test_training_code_reruns_nothing_without_a_new_version(finished: Checkout) -> None:
    finished.insert("src/convs2s/training/trainer.py", "pass")
    done = finished.snakemake("--dry-run", BLEU)
    assert done.nothing_to_do, done.said


def test_what_changes_no_result_of_a_training_reruns_nothing(
    finished: Checkout,
) -> None:
    options = yaml.safe_load((finished / "config.local.yaml").read_text("utf-8"))
    recipe = options["overrides"]["models"]["small"]["training"]
    recipe |= {"checkpoint_minutes": 5, "tensorboard": True, "threads": 2}
    finished.configure(options | {"cores": None})
    done = finished.snakemake("--dry-run", BLEU)
    assert done.nothing_to_do, done.said
    again = f"{RUN.removesuffix('1')}7/model.safetensors"
    done = finished.snakemake("--dry-run", "--printshellcmds", again).succeeded()
    assert " --checkpoint-minutes 5.0 --tensorboard " in done.said
    assert " --cpus 2 " in done.said
    assert recipe.keys() >= {*MACHINE_KEYS}


def test_another_limit_of_tokens_makes_no_text_again(finished: Checkout) -> None:
    options = yaml.safe_load((finished / "config.local.yaml").read_text("utf-8"))
    options["overrides"]["tasks"] = {"mine_en_nl": {"clean": {"tokens": 90}}}
    finished.configure(options)
    done = finished.snakemake("--dry-run", BLEU)
    assert done.planned["train_model"] == 1, done.said
    assert not {
        "prepare_training_text",
        "tokenize_and_filter_validation",
        "align_words",
    } & {*done.planned}


def test_new_training_version_trains_again(finished: Checkout) -> None:
    version = finished / "src/convs2s/training/identity.py"
    text = version.read_text("utf-8")
    finished.write(
        "src/convs2s/training/identity.py",
        re.sub(r"(?m)^(TRAINING_VERSION = ).*", r"\g<1>99", text),
    )
    done = finished.snakemake("--dry-run", BLEU)
    assert done.planned["train_model"] == 1, done.said


def test_comments_and_docstrings_rerun_nothing(finished: Checkout) -> None:
    modules = ["src/convs2s/decoding/search.py", "src/convs2s/text/corpus_filter.py"]
    scripts = [
        str(path.relative_to(finished.folder))
        for path in (finished / "workflow").rglob("*.py")
    ]
    assert len(scripts) > 10
    for path in [*modules, *scripts]:
        text = (finished / path).read_text("utf-8")
        assert text.startswith('"""')
        finished.write(
            path, '"""In other words: ' + text.removeprefix('"""') + "# A remark.\n"
        )
    for path in modules:
        finished.insert(path, "# A remark in between.")
    done = finished.snakemake(BLEU)
    assert done.nothing_to_do, done.said


def test_preparation_code_reruns_preparation_but_a_finished_training_is_only_exported(
    finished: Checkout,
) -> None:
    outputs = [
        finished / f"{RUN}/{name}" for name in ("model.safetensors", "history.jsonl")
    ]
    before = [path.read_bytes() for path in outputs]
    states = {
        path: path.stat().st_mtime_ns
        for path in (finished / RUN).glob("state/*/*.safetensors")
    }
    assert len(states) == 2
    finished.insert("src/convs2s/text/bpe.py", "pass")
    done = finished.snakemake(f"{RUN}/model.safetensors").succeeded()
    # What does not see BPE, such as the alignment's text, is not made again.
    expected = {"learn_bpe": 1, "build_vocabulary": 2, "binarize": 1, "train_model": 1}
    assert done.planned == expected, done.said
    assert [path.read_bytes() for path in outputs] == before
    assert {path: path.stat().st_mtime_ns for path in states} == states
    assert not re.search(r"^epoch +\d+ ", done.said, re.MULTILINE), done.said
    assert "stopped: the recipe's maximum of 2 epochs is reached" in done.said


def test_what_a_failed_training_leaves_is_still_out_of_date(finished: Checkout) -> None:
    """Snakemake has removed the model: the scores beside it are those of the recipe before."""
    options = yaml.safe_load((finished / "config.local.yaml").read_text("utf-8"))
    options["overrides"]["models"]["small"]["training"]["clip"] = 0.2
    finished.configure(options)
    training = finished / "src/convs2s/training/run.py"
    sound = training.read_text("utf-8")
    finished.insert("src/convs2s/training/run.py", "sys.exit(1)")
    failed = finished.snakemake("--retries", "0", BLEU)
    assert failed.code == 1
    assert not (finished / RUN / "model.safetensors").exists()
    training.write_text(sound, "utf-8")
    done = finished.snakemake("--dry-run", BLEU)
    assert done.planned["train_model"] == done.planned["summarize_runs"] == 1, done.said
