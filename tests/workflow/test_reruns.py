"""What an edit, a death or a change of files runs again, and what it leaves alone."""

import os
import re
import shutil
from base64 import urlsafe_b64encode
from pathlib import Path

from tests.support.archives import flipped
from tests.support.checkout import Checkout, Done
from tests.workflow.changes import empty_records, override
from tests.workflow.own_tables import write_paper

BLEU = "results/mine_en_nl/bleu.txt"
SMALL = "results/mine_en_nl/models/small_plateau"
RUN = f"{SMALL}/seed1"
VOCABULARY = "results/mine_en_nl/vocabulary/en.tsv"
STORE = "results/mine_en_nl/dataset/train.arrow"
LOWERCASE = "preparation: {train: lowercase, test: lowercase_test}\n"
BEAM = {"decode_test_set": 1, "evaluate_bleu": 1, "summarize_runs": 1}
"""What a change of the search runs again."""


def edit(checkout: Checkout, module: str) -> None:
    with (checkout / f"src/convs2s/{module}.py").open("a") as code:
        code.write("pass\n")


def plan(checkout: Checkout, *targets: str) -> Done:
    return checkout.snakemake("--dry-run", *(targets or (BLEU,))).succeeded()


def test_what_changes_no_result_reruns_nothing(finished: Checkout) -> None:
    modules = [*(finished / "workflow").rglob("*.py")]
    modules += [*(finished / "src/convs2s/decoding").glob("*.py")]
    assert len(modules) > 20
    for path in modules:
        text = path.read_text("utf-8").removeprefix('"""')
        path.write_text(f'"""In other words: {text}# A remark.\n', "utf-8")
    # Without a new version.
    edit(finished, "training/trainer")
    machine = {"checkpoint_minutes": 5, "tensorboard": True, "threads": 2}
    override(finished, "models", "small_plateau", training=machine)
    done = finished.snakemake(BLEU)
    assert done.nothing_to_do, done.said
    done = plan(finished, "--printshellcmds", f"{SMALL}/seed7/model.safetensors")
    assert " --checkpoint-minutes 5.0 --tensorboard " in done.said


def test_another_limit_of_tokens_or_version_trains_and_makes_no_text_again(
    finished: Checkout,
) -> None:
    empty_records(finished)
    version = finished / "src/convs2s/training/identity.py"
    text = version.read_text("utf-8")
    other = re.sub(r"(?m)^(TRAINING_VERSION = ).*", r"\g<1>99", text)
    version.write_text(other, "utf-8")
    assert plan(finished).planned["train_model"] == 1
    version.write_text(text, "utf-8")
    override(finished, "tasks", "mine_en_nl", clean={"tokens": 90})
    made = plan(finished).planned
    assert made["train_model"] == 1
    text_rules = {"prepare_training_text", "tokenize_and_filter_validation"}
    assert not made.keys() & {*text_rules, "align_words"}


def test_preparation_code_reruns_preparation_but_a_finished_training_is_only_exported(
    finished: Checkout,
) -> None:
    run = finished / RUN
    kept = [run / "model.safetensors", run / "history.jsonl"]
    kept += run.glob("state/*/*.safetensors")
    assert len(kept) == 4
    before = [path.read_bytes() for path in kept]
    edit(finished, "text/bpe")
    done = finished.snakemake(f"{RUN}/model.safetensors").succeeded()
    # What does not see BPE, such as the alignment's text, is not made again.
    expected = {"learn_bpe": 1, "build_vocabulary": 2, "binarize": 1, "train_model": 1}
    assert done.planned == expected, done.said
    assert [path.read_bytes() for path in kept] == before
    assert not re.search(r"^epoch +\d+ ", done.said, re.MULTILINE), done.said


# Its schedule is a cosine.
AGAIN = "\nmine_en_nl/small_plateau: training.maximum_epochs 2 -> 3: 1 training starts again\n"


def test_a_change_is_seen_without_snakemakes_records(finished: Checkout) -> None:
    records = finished / ".snakemake/metadata"
    before = finished.options()
    for record in records.iterdir():
        record.write_text('{"params": ["')
    override(finished, "tasks", "mine_en_nl", vocabulary={"merges": 40})
    made = {"learn_bpe", "binarize", "train_model", "evaluate_bleu"}
    done = plan(finished)
    assert done.planned.keys() >= made, done.said
    assert AGAIN not in done.said
    finished.configure(before)
    shutil.rmtree(records)
    override(finished, "models", "small_plateau", training={"maximum_epochs": 3})
    made = {"write_model_settings", "train_model", "evaluate_bleu"}
    done = plan(finished)
    assert done.planned.keys() >= made, done.said
    assert "learn_bpe" not in done.planned
    assert done.said.count(AGAIN) == 1, done.said
    assert not [*finished.folder.glob(".snakemake/convs2s/changes/*")]


def test_decoding_code_reruns_decoding_and_what_was_made_without_records_is_up_to_date(
    finished: Checkout,
) -> None:
    edit(finished, "models/layers")
    assert plan(finished).planned == BEAM
    empty_records(finished)
    before = finished.options()
    override(finished, "decodings", "beam5", beam=2)
    done = finished.snakemake(BLEU).succeeded()
    assert done.planned == BEAM
    assert plan(finished).nothing_to_do
    score = finished.read(f"{RUN}/test.beam5.bleu.json")
    assert "changes/" not in score  # its inputs have checksums in it
    finished.configure(before)
    assert plan(finished).planned == BEAM


def test_a_users_file_is_known_by_its_bytes_and_an_older_one_in_its_place_is_seen(
    finished: Checkout,
) -> None:
    data = finished / "data/mine"
    for file in data.iterdir():
        file.touch()  # as after `git clone` or `cp`
    done = plan(finished)
    assert done.nothing_to_do, done.said
    for name in ("train.en", "test.nl"):
        (data / f"old.{name}").write_text("A wolf.\n" * 300)
        os.utime(data / f"old.{name}", (1e9, 1e9))
    (data / "old.train.en").rename(data / "train.en")
    (data / "test.nl").unlink()
    (data / "test.nl").symlink_to("old.test.nl")
    os.utime(data / "test.nl", (1e9, 1e9), follow_symlinks=False)
    done = plan(finished)
    made = {"prepare_training_text", "binarize", "train_model", "extract_corpus"}
    assert done.planned.keys() >= made, done.said


# As where memory runs out: nothing of it can be seen in code or settings.
DEATH = """\
import os, sys, threading, time
def die():
    while not os.path.exists("NOTE"):
        time.sleep(0.001)
    os._exit(9)
if any(word.endswith(".write_model_settings.py") for word in sys.orig_argv):
    threading.Thread(target=die, daemon=True).start()
"""


def test_the_dependents_of_a_job_that_died_are_made_again(finished: Checkout) -> None:
    override(finished, "models", "small_plateau", training={"maximum_epochs": 3})
    note = f"{SMALL}/.settings.json.try"
    finished.write("stand_in/sitecustomize.py", DEATH.replace("NOTE", note))
    dying = {**os.environ, "PYTHONPATH": str(finished / "stand_in")}
    failed = finished.snakemake("--retries", "0", BLEU, environment=dying)
    assert failed.code == 1
    assert "Error in rule write_model_settings" in failed.said
    assert failed.said.count(AGAIN.strip()) == 1  # jobs say nothing of it
    assert not (finished / f"{SMALL}/settings.json").exists()
    for _ in range(2):  # a plan takes nothing away
        again = plan(finished).planned
        assert again["write_model_settings"] == again["evaluate_bleu"] == 1


def test_a_flipped_bit_in_a_table_is_named(finished: Checkout) -> None:
    table = finished / VOCABULARY
    changed = table.stat()
    content = table.read_bytes()
    table.write_bytes(flipped(content, 8 * (len(content) // 2)))
    os.utime(table, ns=(changed.st_atime_ns, changed.st_mtime_ns))
    (finished / STORE).unlink()
    done = finished.snakemake(STORE)
    assert done.code == 1
    assert done.errors  # of each job that reads it
    for error in done.errors:
        assert error.startswith(f"error: {VOCABULARY}: ")
        assert "remove the file" in error
    assert not (finished / STORE).exists()


def test_text_that_is_gone_is_not_taken_for_that_of_other_files_or_settings(
    finished: Checkout,
) -> None:
    """Snakemake takes for a plain file what it cannot make again, and goes on."""
    task = finished / "config/tasks/mine_en_nl.yaml"
    before = task.read_text("utf-8")
    (finished / "data/mine/train.en").unlink()  # prepared, nobody needs it any more
    plan(finished, STORE)
    task.write_text(before.replace("train.en", "bigger.en"), "utf-8")
    done = finished.snakemake("-n", STORE)
    assert done.code == 1
    (error,) = done.errors
    missing = "error: mine_en_nl: missing files: data/mine/bigger.en; put them there, "
    assert error.startswith(missing)
    task.write_text(before + LOWERCASE, "utf-8")
    done = finished.snakemake(STORE)
    assert done.code == 1
    (error,) = done.errors
    assert "clean/train.json: was made with preparation moses_train, minimum 1" in error
    assert "clean/valid.json with preparation lowercase, minimum 1, " in error
    assert "restore the task's text files" in error


WHOLE = {
    "write_table": 1,
    "write_ledger": 1,
    "write_claims": 1,
    "write_costs": 1,
    "write_report": 1,
    "paper": 1,
}
TABLE1 = "results/paper/table1.md"


def test_a_change_makes_again_what_rests_on_it_in_the_tables_and_a_ledger_saves_it(
    finished: Checkout, tmp_path: Path
) -> None:
    """The tables of ``snakemake paper`` are two small ones on the own pair."""
    write_paper(finished)
    done = finished.snakemake("paper").succeeded()
    assert "train_model" not in done.planned
    paper = finished.copy(tmp_path / "again")
    configured = finished.options()
    override(finished, "decodings", "greedy", beam=2)
    scores = {"decode_test_set": 1, "evaluate_bleu": 1}
    assert plan(finished, "paper").planned == {**scores, **WHOLE}
    finished.configure(configured)
    write_paper(finished, "[seed1, seed2]")
    both = {"decode_test_set": 2, "evaluate_bleu": 2, "plot_learning_curve": 1}
    trained = {"train_model": 1, **both}
    assert plan(finished, "paper").planned == {**trained, **WHOLE}
    write_paper(finished)
    (finished / f"{RUN}/model.safetensors").unlink()
    assert plan(finished, "paper").planned == {**trained, **WHOLE, "write_table": 2}
    # The history of a training that was killed is there, and marked as incomplete.
    (finished / f"{RUN}/training.json").unlink()
    history = urlsafe_b64encode(f"{RUN}/history.jsonl".encode()).decode()
    finished.write(f".snakemake/incomplete/{history}", "")
    for path in (finished / RUN).glob("test.*"):
        path.unlink()
    done = plan(finished, "tables", "results/paper/report.html")
    assert "train_model" not in done.planned
    assert "write_costs" in done.planned

    # A published ledger saves all of it.
    empty_records(paper)
    done = plan(paper, "tables", "results/paper/report.html")
    assert done.nothing_to_do, done.said
    ledger = paper / "results/paper/ledger.jsonl"
    ledger.rename(paper / "their.jsonl")
    for place in ("paper", "mine_en_nl", "logs"):
        (paper / "results" / place).rename(paper / f"{place}.before")
    published = ("--config", "published=their.jsonl")
    tables = {"write_table": 2, "write_figure_table": 1}
    assert plan(paper, "paper", *published).planned == {**WHOLE, **tables}
    paper.snakemake(TABLE1, *published).succeeded()
    table = paper.read(TABLE1)
    assert table.count("\n| g | ") == table.count(" † |\n") == 2
    assert "runs: 1 of 1; test set: mine_en_nl test (20 lines); " in table
    assert "† from the published ledger their.jsonl" in table
    assert "†" not in paper.read("paper.before/table1.md")
