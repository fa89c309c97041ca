"""The pure functions behind the rules."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from convs2s.errors import UserError
from convs2s.pipeline import fingerprint as code
from convs2s.pipeline import process
from convs2s.pipeline import workflow as flow


def test_members() -> None:
    assert flow.members("seed3") == ["seed3"]
    assert flow.members("ensemble3") == ["seed1", "seed2", "seed3"]


def test_alternatives_without_names_match_nothing() -> None:
    assert re.fullmatch(flow.alternatives(["a", "a.b"]), "a.b")
    assert not re.fullmatch(flow.alternatives(["a.b"]), "axb")
    assert not re.fullmatch(flow.alternatives([]), "")


def task(**changes: Any) -> dict[str, Any]:
    pair = {"source": "train.en", "target": "train.fr"}
    return {
        "corpus": {"train": [pair], "valid": [], "tests": {"test": [pair]}},
        "hold_out": {"every": 100},
        **changes,
    }


def test_held_out_validation_comes_from_the_training_files() -> None:
    assert flow.file_pairs({"mine": task()}, "mine", "valid") == [("train.en", "train.fr")]
    assert flow.hold_out(task(), "valid") == {"every": 100, "held": True}
    assert flow.hold_out(task(), "train") == {"every": 100, "held": False}
    assert flow.hold_out(task(), "test") is None


def test_a_test_set_of_another_task_is_refused() -> None:
    with pytest.raises(
        UserError, match="'newstest2014' is not a test set of the task mine, which has test"
    ):
        flow.file_pairs({"mine": task()}, "mine", "newstest2014")


def test_a_model_prepares_raw_text_as_the_test_sets_of_its_task() -> None:
    recipes = {"train": "moses_train", "test": "moses_test"}
    mine = task(preparation=recipes, languages={}, vocabulary={})
    assert flow.dataset_facts("mine", mine)["preparation"] == "moses_test"


def fingerprint_of(tmp_path: Path, text: str) -> str:
    path = tmp_path / "script.py"
    path.write_text(text)
    code.fingerprint.cache_clear()
    code._read_code.cache_clear()
    return code.fingerprint(path)


def test_comments_and_docstrings_do_not_change_a_fingerprint(tmp_path: Path) -> None:
    first = fingerprint_of(tmp_path, '"""Doc."""\ndef f(x):\n    """Doc."""\n    return x + 1\n')
    same = fingerprint_of(tmp_path, "# why\ndef f( x ):\n    return x + 1  # because\n")
    other = fingerprint_of(tmp_path, "def f(x):\n    return x + 2\n")
    assert first == same
    assert first != other


def test_a_fingerprint_follows_imports() -> None:
    decoding = code._read_code(code.PACKAGE / "decoding" / "translate.py")[1]
    assert code.PACKAGE / "decoding" / "search.py" in decoding


def test_a_job_says_an_input_fault_in_one_line(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom convs2s.errors import UserError\nfrom convs2s.pipeline.job import job\n"
        "with job(sys.argv[1]):\n    print('progress')\n    raise UserError('a.en:3: bad')\n"
    )
    log = tmp_path / "logs" / "a.log"
    done = subprocess.run(
        [sys.executable, "-c", program, str(log)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "error: a.en:3: bad\n")
    assert log.read_text() == "progress\nerror: a.en:3: bad\n"


def test_a_checksum_list(tmp_path: Path) -> None:
    sums = tmp_path / "SHA256SUMS"
    sums.write_text("ab12  host/a.gz\ncd34  host/b.gz\n")
    assert flow.checksum(sums, "host/b.gz") == "cd34"
    with pytest.raises(UserError, match=r"SHA256SUMS: no checksum for host/c\.gz"):
        flow.checksum(sums, "host/c.gz")


def test_a_checksum_list_that_cannot_be_read(tmp_path: Path) -> None:
    sums = tmp_path / "SHA256SUMS"
    with pytest.raises(UserError, match=r"SHA256SUMS: no such file"):
        flow.checksum(sums, "host/a.gz")
    sums.write_bytes(b"ab12  host/\xff.gz\n")
    with pytest.raises(UserError, match=r"SHA256SUMS: cannot be read: .*0xff"):
        flow.checksum(sums, "host/a.gz")


def test_locks_are_released_where_nothing_runs_any_more(tmp_path: Path) -> None:
    lock = tmp_path / "locks" / "0.input.lock"
    lock.parent.mkdir()
    lock.write_text("results/bleu.txt")
    with process.release_stale_locks(tmp_path):
        assert not lock.exists()
        lock.write_text("results/bleu.txt")
        with process.release_stale_locks(tmp_path):  # a second process, while the first one runs
            assert lock.exists()
    with process.release_stale_locks(tmp_path):
        assert not lock.exists()
