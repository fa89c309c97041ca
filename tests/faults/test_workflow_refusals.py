"""What a new user does wrong: one clear line, exit code 1, nothing half-written."""

import fcntl
from pathlib import Path

from convs2s.config.load import load
from tests.support.checkout import Checkout
from tests.support.refusals import rows, says

URL = "http://host.example/changed.en"
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


FAULTS = f"""
data/good.en => data/uneven.nl => data/good.en ... 10 ... data/uneven.nl ... 11
data/latin.en => data/good.nl => data/latin.en:7
{URL} => data/good.nl => mirror/ ... {WRONG_SUM} ... config/downloads.yaml
"""


def test_a_fault_of_a_text_is_one_line(checkout: Checkout) -> None:
    """Each fault is met by a task of its own, in one run."""
    good = "".join(f"line {number}\n" for number in range(1, 11))
    checkout.write("data/good.en", good)
    checkout.write("data/good.nl", good)
    checkout.write("data/uneven.nl", f"{good}one more\n")
    checkout.write("data/latin.en", good.encode().replace(b"line 7", b"caf\xe9 7"))
    checkout.write("mirror/host.example/changed.en", "something else\n")
    known = (checkout / "config/downloads.yaml").read_text("utf-8")
    entry = f"- {{url: '{URL}', sha256: '{WRONG_SUM}'}}\n"
    checkout.write("config/downloads.yaml", known + entry)
    checkout.configure({"mirrors": ["mirror"]})
    targets: list[str] = []
    for source, target, _ in rows(FAULTS):
        name = f"task{len(targets)}"
        task = TASK.format(source=source, target=target)
        checkout.write(f"config/tasks/{name}.yaml", task)
        targets.append(f"results/{name}/dataset/train.arrow")
    done = checkout.snakemake("--keep-going", *targets)
    assert done.code == 1
    assert len(done.errors) == 3, done.said
    for _, _, words in rows(FAULTS):
        about = words.partition(" ")[0]
        (error,) = [line for line in done.errors if about in line]
        says(error, words)
    # Of each task the validation text alone is sound.
    left = checkout.files("results")
    assert [name for name in left if "/valid." not in name] == []


PLANS = """
demo --config scael=demo => 'scael'; did you mean 'scale'?
results/demo_en_fr/models/dmo/seed1/model.safetensors => No rule ... unfinished.yaml: key 'lang
results/demo_en_fr_word/rouge.txt => error: demo_en_fr_word has no rouge.txt ... ask for bleu
results/downloads/www.statmt.org/wmt14/test-fill.tgz => unknown download ... test-full.tgz'?
RESCORED => data/wmt14_en_fr/newstest2014.1000best.gz
SCORE --config rouge_exceptions=none.tsv => error: rouge_exceptions: none.tsv: no such file; docs/
FIGURE --config scale=multi30k LEDGER => error: figure3.svg: no model of this run makes what it
"""
LONG = {
    "RESCORED": "results/wmt14_en_fr_word/models/lstm/seed1/newstest2014.rescored.bleu.json",
    "SCORE": "results/gigaword/models/demo/seed1/gigaword.beam5.rouge.json",
    "FIGURE": "results/scales/multi30k/paper/figure3.svg",
    "LEDGER": "published=docs/results/multi30k.ledger.jsonl",
}


def test_what_cannot_be_planned_is_said_in_one_line(
    checkout: Checkout, root: Path
) -> None:
    # Of no concern to the others; an editor has saved it half done.
    checkout.write("config/tasks/unfinished.yaml", "description: mine\n")
    # Snakemake takes a file that no rule can make for finished.
    checkout.write(LONG["SCORE"], "{}")
    (checkout / "docs").symlink_to(root / "docs")
    for command, words in rows(PLANS):
        typed = [LONG.get(word, word) for word in command.split()]
        done = checkout.snakemake("-n", *typed)
        assert done.code == 1
        says(done.said, words)
        assert "Traceback" not in done.said
        assert "KeyError" not in done.said
        if words.startswith("error: "):
            assert len(done.errors) == 1


def test_missing_licensed_files_are_named_in_one_message(
    root: Path, planned_checkout: Checkout
) -> None:
    files = load(root).tasks["gigaword"].references()
    assert len(files) == 11
    (error,) = planned_checkout.snakemake("-n", "results/gigaword/rouge.txt").errors
    sources = ("LDC2003T05", "DUC 2004 from NIST", "NAMAS", "docs/summarization.md")
    says(error, f"gigaword: missing files: {', '.join(files)}; ", *sources)


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
    lock.write_text("process 1 on another node, since today, in /first\n")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = checkout.snakemake("results/demo_en_fr/models/demo/settings.json")
    assert done.code == 1
    (error,) = done.errors
    says(error, f"{shared}: another snakemake makes these results (process 1 on ano")
    assert checkout.files("results") == []
