"""The pure functions behind the rules."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.corpus import HoldOutPart
from convs2s.config.runs import members
from convs2s.config.scale import Scale
from convs2s.config.task import Task
from convs2s.download.sources import DownloadSource, at_scale
from convs2s.errors import UserError
from convs2s.pipeline import fingerprint as code
from convs2s.pipeline import process


def test_members() -> None:
    assert members("seed3") == ["seed3"]
    assert members("ensemble3") == ["seed1", "seed2", "seed3"]


def test_alternatives_without_names_match_nothing(root: Path) -> None:
    alternatives = function_of(root / "rules" / "common.smk", "alternatives")
    assert re.fullmatch(alternatives(["a", "a.b"]), "a.b")
    assert not re.fullmatch(alternatives(["a.b"]), "axb")
    assert not re.fullmatch(alternatives([]), "")


def function_of(rules: Path, name: str) -> Callable[[list[str]], str]:
    """Return a function that a file of rules defines, which is no module of Python."""
    found = re.search(rf"^def {name}\(.*?(?=^\S)", rules.read_text(), re.MULTILINE | re.DOTALL)
    assert found
    namespace: dict[str, Any] = {"re": re}
    exec(found[0], namespace)
    function: Callable[[list[str]], str] = namespace[name]
    return function


def task(**changes: Any) -> Task:
    pair = {"source": "train.en", "target": "train.fr"}
    stated = {
        "description": "mine",
        "languages": {"source": "en", "target": "fr"},
        "corpus": {"train": [pair], "valid": [], "tests": {"test": [pair]}},
        "hold_out": {"every": 100},
        **changes,
    }
    return Task.named("mine", stated)


def test_held_out_validation_comes_from_the_training_files() -> None:
    assert task().file_pairs("valid") == [("train.en", "train.fr")]
    assert task().hold_out_of("valid") == HoldOutPart(every=100, held=True)
    assert task().hold_out_of("train") == HoldOutPart(every=100, held=False)
    assert task().hold_out_of("test") is None


def test_a_test_set_of_another_task_is_refused() -> None:
    with pytest.raises(
        UserError, match="'newstest2014' is not a test set of the task mine, which has test"
    ):
        task().file_pairs("newstest2014")


def test_a_model_prepares_raw_text_as_the_test_sets_of_its_task() -> None:
    recipes = {"train": "moses_train", "test": "moses_test"}
    mine = task(preparation=recipes)
    assert mine.dataset_metadata().preparation == "moses_test"
    assert mine.model_metadata().preparation == "moses_test"


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


def checksum(sums: Path, place: str) -> str | None:
    """The checksum of a file at a scale with a list of its own."""
    stated = {"description": "a mirror", "results_dir": "results", "downloads_dir": "downloads"}
    scale = Scale.model_validate({**stated, "checksums": str(sums)})
    listed = at_scale(DownloadSource(f"http://{place}", 7, "12ab", "34cd"), place, scale)
    assert (listed.size, listed.md5) == (None, None)
    return listed.sha256


def test_a_checksum_list(tmp_path: Path) -> None:
    sums = tmp_path / "SHA256SUMS"
    sums.write_text("ab12  host/a.gz\ncd34  host/b.gz\n")
    assert checksum(sums, "host/b.gz") == "cd34"
    with pytest.raises(UserError, match=r"SHA256SUMS: no checksum for host/c\.gz"):
        checksum(sums, "host/c.gz")


def test_a_checksum_list_that_cannot_be_read(tmp_path: Path) -> None:
    sums = tmp_path / "SHA256SUMS"
    with pytest.raises(UserError, match=r"SHA256SUMS: no such file"):
        checksum(sums, "host/a.gz")
    sums.write_bytes(b"ab12  host/\xff.gz\n")
    with pytest.raises(UserError, match=r"SHA256SUMS: cannot be read: .*0xff"):
        checksum(sums, "host/a.gz")


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


def test_a_checkout_is_found_as_it_is(tmp_path: Path) -> None:
    assert process.package_alone(tmp_path) == process.PACKAGE_FOLDER.parent


def test_an_installed_package_is_found_without_its_neighbors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "site-packages"
    for name in ("convs2s", "numpy", "convs2s-1.dist-info"):
        (packages / name).mkdir(parents=True)
    monkeypatch.setattr(process, "PACKAGE_FOLDER", packages / "convs2s")
    for _ in range(2):
        alone = process.package_alone(tmp_path / "alone")
        assert [path.resolve() for path in alone.iterdir()] == [packages / "convs2s"]
