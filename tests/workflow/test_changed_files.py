"""A file that changed behind the workflow's back ends the job that would read it."""

import os

from convs2s.files.checksums import sha256
from tests.support.checkout import Checkout
from tests.support.damage import flipped

VOCABULARY = "results/mine_en_nl/vocabulary/en.tsv"
STORE = "results/mine_en_nl/dataset/train.arrow"


def test_a_flipped_bit_in_a_table_is_named_and_mended_by_the_same_command(
    finished: Checkout,
) -> None:
    table, store = finished / VOCABULARY, finished / STORE
    before, changed = sha256(store), table.stat()
    content = table.read_bytes()
    table.write_bytes(flipped(content, 8 * (len(content) // 2)))
    os.utime(table, ns=(changed.st_atime_ns, changed.st_mtime_ns))
    store.unlink()
    done = finished.snakemake(STORE)
    assert done.code == 1
    assert done.errors  # of each job that reads it
    for error in done.errors:
        assert error.startswith(f"error: {VOCABULARY}: ")
        assert "remove the file" in error
    assert not store.exists()
    table.unlink()
    finished.snakemake(STORE).succeeded()
    assert (table.read_bytes(), sha256(store)) == (content, before)


def test_a_corpus_that_is_not_there_is_no_other_name_of_the_one_before(
    finished: Checkout,
) -> None:
    """Else the old text would be stored again as that of the new files."""
    task = finished / "config/tasks/mine_en_nl.yaml"
    before = task.read_text("utf-8")
    (finished / "data/mine/train.en").unlink()  # prepared, nobody needs it any more
    finished.snakemake("-n", STORE).succeeded()
    task.write_text(before.replace("train.en", "bigger.en"), "utf-8")
    done = finished.snakemake("-n", STORE)
    assert done.code == 1
    assert done.errors == [
        "error: mine_en_nl: missing files: data/mine/bigger.en; put them there, or name others in "
        "config/tasks/mine_en_nl.yaml"
    ]


def test_text_that_cannot_be_made_again_is_not_taken_for_text_of_other_settings(
    finished: Checkout,
) -> None:
    """Snakemake takes for a plain file what it cannot make again, and goes on."""
    task = finished / "config/tasks/mine_en_nl.yaml"
    (finished / "data/mine/train.en").unlink()
    task.write_text(
        task.read_text("utf-8")
        + "preparation: {train: lowercase, test: lowercase_test}\n",
        "utf-8",
    )
    done = finished.snakemake(STORE)
    assert done.code == 1
    (error,) = done.errors
    assert (
        "clean/train.json: was made with preparation moses_train, minimum 1, " in error
    )
    assert "clean/valid.json with preparation lowercase, minimum 1, " in error
    assert "restore the task's text files" in error
