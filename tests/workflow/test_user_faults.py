"""What a new user does wrong: one clear line, exit code 1, nothing half-written."""

import fcntl
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.checkout import Checkout, Done, check_out

GOOD = "".join(f"line {number}\n" for number in range(1, 11))
WRONG_SUM = "0" * 64

TASK = """\
description: {name}
languages: {{source: en, target: nl}}
corpus:
  train: [{{source: "{source}", target: "{target}"}}]
  valid: [{{source: data/good.en, target: data/good.nl}}]
  tests:
    test: [{{source: data/good.en, target: data/good.nl}}]
"""


@dataclass(frozen=True)
class Faults:
    """A checkout with a task for each fault of a text, and the one run that meets them all."""

    checkout: Checkout
    done: Done
    host: str

    def error(self, name: str) -> str:
        """The one line about a task."""
        about = [line for line in self.done.errors if name in line]
        assert len(about) == 1, self.done.said
        return about[0]


@pytest.fixture(scope="module")
def faults(
    root: Path, tmp_path_factory: pytest.TempPathFactory, closed_port: int
) -> Faults:
    checkout = check_out(root, tmp_path_factory.mktemp("faults"))
    host = f"127.0.0.1:{closed_port}"
    files = {
        "uneven": ("data/good.en", "data/uneven.nl"),
        "latin": ("data/latin.en", "data/good.nl"),
        "changed": (f"http://{host}/changed.en", "data/good.nl"),
        "unreachable": (f"http://{host}/unreachable.en", "data/good.nl"),
    }
    for name, (source, target) in files.items():
        task = TASK.format(name=name, source=source, target=target)
        checkout.write(f"config/tasks/{name}.yaml", task)
    checkout.write("data/good.en", GOOD)
    checkout.write("data/good.nl", GOOD)
    checkout.write("data/uneven.nl", f"{GOOD}one more\n")
    checkout.write("data/latin.en", GOOD.encode().replace(b"line 7", b"caf\xe9 7"))
    checkout.write(f"mirror/{host}/changed.en", "something else\n")
    known = (checkout / "config/downloads.yaml").read_text("utf-8")
    entry = f"- {{url: 'http://{host}/changed.en', sha256: '{WRONG_SUM}'}}\n"
    checkout.write("config/downloads.yaml", known + entry)
    checkout.configure({"mirrors": ["mirror"]})
    targets = [f"results/{name}/dataset/train.arrow" for name in files]
    return Faults(checkout, checkout.snakemake("--keep-going", *targets), host)


def test_faults_of_text_end_with_code_1(faults: Faults) -> None:
    assert faults.done.code == 1
    assert len(faults.done.errors) == 4, faults.done.said
    # Of each task the validation text alone is sound.
    left = faults.checkout.files("results")
    assert [name for name in left if "/valid." not in name] == []


def test_a_side_with_one_line_too_many(faults: Faults) -> None:
    error = faults.error("data/uneven.nl")
    assert "data/good.en" in error
    assert "10" in error
    assert "11" in error


def test_text_that_is_not_utf8(faults: Faults) -> None:
    assert "data/latin.en:7" in faults.error("data/latin.en")


def test_wrong_checksum(faults: Faults) -> None:
    error = faults.error("changed")
    assert f"mirror/{faults.host}/changed.en" in error
    assert WRONG_SUM in error
    assert "config/downloads.yaml" in error


def test_no_network_and_no_mirror(faults: Faults) -> None:
    error = faults.error("unreachable")
    assert "no connection" in error
    assert "mirrors" in error


def test_typo_in_the_configuration(checkout: Checkout) -> None:
    text = (checkout / "config.yaml").read_text("utf-8")
    checkout.write("config.yaml", text.replace("\nscale:", "\nscael:"))
    done = checkout.snakemake("results/demo_en_fr/bleu.txt")
    assert done.code == 1
    assert done.errors == [
        "error: config.yaml: unknown key 'scael'; did you mean 'scale'?"
    ]
    assert "Traceback" not in done.said
    assert checkout.files("results") == []


@pytest.mark.parametrize(
    "path",
    [
        "demo_en_fr/models/dmo/seed1/model.safetensors",
        "demo_en_fr/models/demo/seed1/test.beam5.blue.json",
        "paper/tabel1.md",
        "demo_en_fr/dataset/train.9-of-2.arrow",
    ],
)
def test_a_file_that_no_rule_makes_is_named_by_snakemake(
    checkout: Checkout, path: str
) -> None:
    done = checkout.snakemake("-n", f"results/{path}")
    assert done.code == 1
    assert f"No rule to produce results/{path} " in done.said
    assert "Traceback" not in done.said


def test_a_download_that_no_task_names(checkout: Checkout) -> None:
    place = "www.statmt.org/wmt14/test-full.tgz"
    typo = place.replace("full", "fill")
    done = checkout.snakemake("-n", f"results/downloads/{typo}")
    assert done.code == 1
    (error,) = done.errors
    said = f"unknown download '{typo}'; did you mean '{place}'?"
    assert error == f"error: results/downloads/{typo}: {said}"


def test_a_missing_file_among_the_downloads_is_no_download(checkout: Checkout) -> None:
    own = "results/downloads/own/train.en"
    task = TASK.format(name="mine", source=own, target="data/good.nl")
    checkout.write("config/tasks/mine.yaml", task)
    checkout.write("data/good.en", GOOD)
    checkout.write("data/good.nl", GOOD)
    done = checkout.snakemake("-n", "results/mine/dataset/train.arrow")
    assert done.code == 1
    (error,) = done.errors
    assert error.startswith(
        f"error: mine: missing files: {own}; put them there, or name others"
    )


def test_a_file_that_is_no_model(checkout: Checkout) -> None:
    done = checkout.shell("echo A man. | convs2s translate config.yaml > out.txt")
    assert done.code == 1
    assert done.said.splitlines() == done.errors
    assert len(done.errors) == 1
    assert "config.yaml: not a model" in done.errors[0]
    assert (checkout / "out.txt").read_text("utf-8") == ""


def test_a_fault_of_the_trainer_comes_through_its_pipe(finished: Checkout) -> None:
    folder = "results/mine_en_nl/models/small/seed3"
    lock = finished.write(f"{folder}/state/lock", "process 1 on another node\n")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = finished.snakemake(f"{folder}/model.safetensors")
    assert done.code == 1
    assert len(done.errors) == 1, done.said
    assert (
        "another training is writing here (process 1 on another node)" in done.errors[0]
    )
    assert finished.files(folder) == [
        f"{folder}/state/{name}" for name in ("lock", "refused.json")
    ]
    assert done.errors[0] in (
        finished / "results/logs/mine_en_nl/small/seed3/train.log"
    ).read_text("utf-8")


def test_a_slash_after_a_scales_folder_says_nothing(checkout: Checkout) -> None:
    scale = "description: mine\nresults_dir: ./mine//\ndownloads_dir: mine/downloads/\n"
    checkout.write("config/scales/mine.yaml", scale)
    done = checkout.snakemake("--dry-run", "demo", "--config", "scale=mine").succeeded()
    assert done.planned["train_model"] == 2
