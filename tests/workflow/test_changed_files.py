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
