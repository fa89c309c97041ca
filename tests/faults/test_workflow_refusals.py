"""What a new user does wrong: one clear line, exit code 1, nothing half-written."""

import fcntl
import socket
from pathlib import Path

import pytest

from convs2s.config.load import load
from tests.support.checkout import Checkout, Done, check_out
from tests.support.refusals import says

GOOD = "".join(f"line {number}\n" for number in range(1, 11))
WRONG_SUM = "0" * 64

TASK = """\
description: a task
languages: {{source: en, target: nl}}
corpus:
  train: [{{source: "{source}", target: "{target}"}}]
  valid: [{{source: data/good.en, target: data/good.nl}}]
  tests:
    test: [{{source: data/good.en, target: data/good.nl}}]
"""


@pytest.fixture(scope="module")
def host() -> str:
    """A place of the loopback interface where nobody listens."""
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{unheard.getsockname()[1]}"


@pytest.fixture(scope="module")
def faulty(root: Path, tmp_path_factory: pytest.TempPathFactory, host: str) -> Done:
    """The one run that meets every fault of a text, in a task for each."""
    checkout = check_out(root, tmp_path_factory.mktemp("faults"))
    files = {
        "uneven": ("data/good.en", "data/uneven.nl"),
        "latin": ("data/latin.en", "data/good.nl"),
        "changed": (f"http://{host}/changed.en", "data/good.nl"),
        "unreachable": (f"http://{host}/unreachable.en", "data/good.nl"),
    }
    for name, (source, target) in files.items():
        task = TASK.format(source=source, target=target)
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
    done = checkout.snakemake("--keep-going", *targets)
    assert done.code == 1
    assert len(done.errors) == len(files), done.said
    # Of each task the validation text alone is sound.
    left = checkout.files("results")
    assert [name for name in left if "/valid." not in name] == []
    return done


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ("data/uneven.nl", ["data/good.en", "10", "11"]),
        ("data/latin.en", ["data/latin.en:7"]),
        ("changed", ["mirror/", "/changed.en", WRONG_SUM, "config/downloads.yaml"]),
        ("unreachable", ["no connection", "mirrors"]),
    ],
)
def test_a_fault_of_a_text_is_one_line(
    faulty: Done, about: str, words: list[str]
) -> None:
    (error,) = [line for line in faulty.errors if about in line]
    says(error, *words)


ARCHIVE = "www.statmt.org/wmt14/test-full.tgz"
SCORE = "results/gigaword/models/demo/seed1/gigaword.beam5.rouge.json"
LEDGER = "published=docs/results/multi30k.ledger.jsonl"
NO_RULE = "No rule to produce results/"


@pytest.fixture(scope="module")
def stated(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout with what the plans below need."""
    checkout = check_out(root, tmp_path_factory.mktemp("stated"))
    own = "results/downloads/own/train.en"
    task = TASK.format(source=own, target="data/good.nl")
    checkout.write("config/tasks/mine.yaml", task)
    checkout.write("data/good.en", GOOD)
    checkout.write("data/good.nl", GOOD)
    # Of no concern to the others; an editor has saved it half done.
    checkout.write("config/tasks/unfinished.yaml", "description: mine\n")
    # Snakemake takes a file that no rule can make for finished.
    checkout.write(SCORE, "{}")
    (checkout / "docs").symlink_to(root / "docs")
    return checkout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("demo --config scael=demo", ["'scael'; did you mean 'scale'?"]),
        (
            "results/unfinished/bleu.txt",
            ["error: config/tasks/unfinished.yaml: key 'languages' is missing"],
        ),
        (
            "results/demo_en_fr/models/dmo/seed1/model.safetensors",
            [NO_RULE, "warning: config/tasks/unfinished.yaml: key 'languages'"],
        ),
        ("results/demo_en_fr/dataset/train.9-of-2.arrow", [NO_RULE]),
        (
            "results/demo_en_fr_word/rouge.txt",
            ["error: demo_en_fr_word has no rouge.txt", "`metric: bleu`: ask for bleu"],
        ),
        (
            f"results/downloads/{ARCHIVE.replace('full', 'fill')}",
            ["error: results/downloads/", "unknown download", f"mean '{ARCHIVE}'?"],
        ),
        (
            "results/mine/dataset/train.arrow",
            ["error: mine: missing files: results/downloads/own/train.en; put them "],
        ),
        (
            f"{SCORE} --config rouge_exceptions=mispelt.tsv",
            ["error: rouge_exceptions: mispelt.tsv: no such file; docs/rouge.md"],
        ),
        (
            "results/wmt14_en_fr_word/models/lstm/seed1/newstest2014.rescored.bleu.json",
            ["data/wmt14_en_fr/newstest2014.1000best.gz"],
        ),
        (
            f"results/scales/multi30k/paper/figure3.svg --config scale=multi30k {LEDGER}",
            ["error: figure3.svg: no model of this run makes what it shows"],
        ),
    ],
)
def test_what_cannot_be_planned_is_said_in_one_line(
    stated: Checkout, command: str, words: list[str]
) -> None:
    done = stated.snakemake("-n", *command.split())
    assert done.code == 1
    says(done.said, *words)
    assert "Traceback" not in done.said
    assert "KeyError" not in done.said
    if "error: " in words[0]:
        assert len(done.errors) == 1


def test_missing_licensed_files_are_named_in_one_message(
    root: Path, checkout: Checkout
) -> None:
    files = load(root).tasks["gigaword"].references()
    assert len(files) == 11
    (error,) = checkout.snakemake("-n", "results/gigaword/rouge.txt").errors
    sources = ("LDC2003T05", "DUC 2004 from NIST", "NAMAS", "docs/summarization.md")
    says(error, f"gigaword: missing files: {', '.join(files)}; ", *sources)


def test_a_file_that_is_no_model(checkout: Checkout) -> None:
    done = checkout.shell("echo A man. | convs2s translate config.yaml > out.txt")
    assert done.code == 1
    assert done.said.splitlines() == done.errors
    (error,) = done.errors
    assert "config.yaml: not a model" in error
    assert (checkout / "out.txt").read_text("utf-8") == ""


def test_a_fault_of_the_trainer_comes_through_its_pipe(finished: Checkout) -> None:
    folder = "results/mine_en_nl/models/small_plateau/seed3"
    lock = finished.write(f"{folder}/state/lock", "process 1 on another node\n")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = finished.snakemake(f"{folder}/model.safetensors")
    assert done.code == 1
    (error,) = done.errors
    says(error, "another training is writing here (process 1 on another node)")
    left = [f"{folder}/state/{name}" for name in ("lock", "refused.json")]
    assert finished.files(folder) == left
    log = finished / "results/logs/mine_en_nl/small_plateau/seed3/train.log"
    assert error in log.read_text("utf-8")


def test_a_second_clones_run_on_the_same_results_is_refused(
    checkout: Checkout, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (checkout / "results").symlink_to(shared)
    lock = shared / ".run.lock"
    first = "process 1 on another node, since today, in /first"
    lock.write_text(f"{first}\n")
    target = "results/demo_en_fr/models/demo/settings.json"
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = checkout.snakemake(target, "--nolock")
        checkout.snakemake("-n", target).succeeded()
    assert done.code == 1
    (error,) = done.errors
    says(error, f"{shared}: another snakemake makes these results ({first}): wait")
    assert checkout.files("results") == []
    checkout.snakemake(target).succeeded()
    assert f", in {checkout.folder}\n" in lock.read_text("utf-8")


def test_a_slash_after_a_scales_folder_says_nothing(checkout: Checkout) -> None:
    scale = "description: mine\nresults_dir: ./mine//\ndownloads_dir: mine/downloads/\n"
    checkout.write("config/scales/mine.yaml", scale)
    done = checkout.snakemake("--dry-run", "demo", "--config", "scale=mine").succeeded()
    assert done.planned["train_model"] == 2
