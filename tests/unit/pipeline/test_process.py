"""The pure functions behind the rules."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from snakemake.utils import format as formatted

from convs2s.config.load import load
from convs2s.config.runs import alternatives, members
from convs2s.download.download import listed_checksum
from convs2s.errors import UserError
from convs2s.pipeline import fingerprint as code
from convs2s.pipeline import process
from tests.support.jobs import job_command


def test_members() -> None:
    assert members("seed3") == ["seed3"]
    assert members("ensemble3") == ["seed1", "seed2", "seed3"]


def test_alternatives_without_names_match_nothing() -> None:
    assert re.fullmatch(alternatives(["a", "a.b"]), "a.b")
    assert not re.fullmatch(alternatives(["a.b"]), "axb")
    assert not re.fullmatch(alternatives([]), "")


def test_alternatives_match_exactly_the_models(root: Path) -> None:
    names = list(load(root, {}).models)
    expression = alternatives(names)
    assert all(re.fullmatch(expression, name) for name in names)
    others = {
        other for name in names for other in (f"{name}x", name[:-1], name[1:])
    } - set(names)
    assert not any(re.fullmatch(expression, other) for other in others)


def forget() -> None:
    """Have all code read again, as by another process."""
    code._read_code.cache_clear()


def fingerprint_of(script: Path) -> str:
    forget()
    return code.fingerprint(script)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty package in the place of this one."""
    (tmp_path / "convs2s/data").mkdir(parents=True)
    monkeypatch.setattr(code, "PACKAGE", tmp_path / "convs2s")
    yield tmp_path / "convs2s"
    forget()


def test_comments_and_docstrings_do_not_change_a_fingerprint(tmp_path: Path) -> None:
    def of_text(text: str) -> str:
        (tmp_path / "script.py").write_text(text)
        return fingerprint_of(tmp_path / "script.py")

    first = of_text('"""Doc."""\ndef f(x):\n    """Doc."""\n    return x + 1\n')
    same = of_text("# why\ndef f( x ):\n    return x + 1  # because\n")
    other = of_text('"""Doc."""\ndef f(x):\n    return x + 2\n')
    assert first == same
    assert first != other


def test_fingerprints_are_kept_until_a_byte_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts, kept = tmp_path / "scripts", tmp_path / "kept" / "fingerprints.json"
    scripts.mkdir()
    (scripts / "a.py").write_text("x = 1\n", "utf-8")
    first = code.fingerprints(scripts, kept)
    assert first == {"a.py": fingerprint_of(scripts / "a.py")}
    with monkeypatch.context() as forbidden:
        forbidden.setattr(code, "fingerprint", None)
        assert code.fingerprints(scripts, kept) == first
    (scripts / "a.py").write_text("x = 2\n", "utf-8")
    forget()
    assert code.fingerprints(scripts, kept) != first
    package = tmp_path / "convs2s"
    package.mkdir()
    monkeypatch.setattr(code, "PACKAGE", package)
    before = code.fingerprints(scripts, kept)
    (package / "new.py").write_text("", "utf-8")  # an import may find it
    monkeypatch.setattr(code, "fingerprint", lambda path: "made again")
    assert code.fingerprints(scripts, kept) == {"a.py": "made again"} != before


def test_an_edit_of_what_is_imported_changes_a_fingerprint(package: Path) -> None:
    names = ("a.py", "b.py", "c.py", "d.py", "other.py", "data/w.tsv")
    files = {name: package / name for name in names}
    for file in files.values():
        file.write_text("x = 1\n", "utf-8")
    files["a.py"].write_text("from convs2s import b\n", "utf-8")
    files["b.py"].write_text("import convs2s.c\n", "utf-8")
    files["c.py"].write_text("from convs2s.d import x\n", "utf-8")
    seen = [fingerprint_of(files["a.py"])]
    for name in ("b.py", "c.py", "d.py", "data/w.tsv"):
        files[name].write_text(f"{files[name].read_text('utf-8')}y = 2\n", "utf-8")
        seen.append(fingerprint_of(files["a.py"]))
    assert len(set(seen)) == len(seen)
    files["other.py"].write_text("x = 2\n", "utf-8")
    assert fingerprint_of(files["a.py"]) == seen[-1]


def test_an_import_in_brackets_over_lines_counts(tmp_path: Path, package: Path) -> None:
    names = ("b.py", "c.py", "d.py")
    for name in names:
        (package / name).write_text("x = 1\n", "utf-8")
    script = tmp_path / "script.py"
    script.write_text("from convs2s import (\n    b,\n    c,\n    d,\n)\n", "utf-8")
    forget()
    assert code._read_code(script)[1] == {package / name for name in names}


def test_a_job_says_an_input_fault_in_one_line(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "a.log"
    command = job_command(log, "raise UserError('a.en:3: bad')")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "error: a.en:3: bad\n",
    )
    owner, *said = log.read_text().splitlines()
    assert re.fullmatch(r"[-0-9]+ [:0-9]+, process \d+ on \S+", owner)
    assert said == ["at work", "error: a.en:3: bad"]


def test_a_checksum_list(tmp_path: Path) -> None:
    sums = tmp_path / "SHA256SUMS"
    sums.write_text("ab12  host/a.gz\ncd34  host/b.gz\n")
    (tmp_path / "host").mkdir()
    (tmp_path / "host/b.gz").touch()
    assert listed_checksum(str(tmp_path), "http://host/b.gz") == "cd34"
    with pytest.raises(UserError, match=r"SHA256SUMS: no checksum for host/c\.gz"):
        listed_checksum(str(tmp_path), "http://host/c.gz")
    with pytest.raises(
        UserError, match=r"host/a\.gz: no such file: delete .* to renew it"
    ):
        listed_checksum(str(tmp_path), "http://host/a.gz")


def test_a_checksum_list_that_cannot_be_read(tmp_path: Path) -> None:
    sums = tmp_path / "SHA256SUMS"
    with pytest.raises(UserError, match=r"SHA256SUMS: no such file"):
        listed_checksum(str(tmp_path), "http://host/a.gz")
    sums.write_bytes(b"ab12  host/\xff.gz\n")
    with pytest.raises(UserError, match=r"SHA256SUMS:1: not UTF-8: byte 0xff"):
        listed_checksum(str(tmp_path), "http://host/a.gz")


def test_a_training_goes_on_where_nobody_reads_the_terminal(tmp_path: Path) -> None:
    speaks = "bash -c 'for line in 1 2 3; do echo $line; sleep 0.1; done'"
    command = formatted(
        process.logged(speaks, before="none"), log=tmp_path / "train.log"
    )
    shell = f"set -euo pipefail; ({command}) | true"
    assert subprocess.run(["bash", "-c", shell], check=False).returncode == 0
    assert (tmp_path / "train.log").read_text() == "1\n2\n3\n"


def test_a_full_disk_below_the_log_fails_no_training(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    for status in (0, 75):
        command = formatted(
            process.logged(f"bash -c 'echo 1; exit {status}'", before="none"),
            log=Path("/dev/full"),
        )
        shell = f"set -euo pipefail; ({command})"
        assert subprocess.run(["bash", "-c", shell], check=False).returncode == status


def test_damaged_fingerprints_are_named(tmp_path: Path) -> None:
    kept = tmp_path / "fingerprints.json"
    kept.write_text('{"a')
    with pytest.raises(
        UserError, match=f"^{kept}: not what this program keeps there: remove it: "
    ):
        code.fingerprints(tmp_path, kept)


def test_a_training_names_the_files_that_it_has() -> None:
    files: dict[str, object] = {
        "dataset": [
            "results/my task/dataset/train.arrow",
            "results/my task/dataset/valid.arrow",
        ],
        "start": [],
        "dictionary": "a.tsv",
        "candidates": [],
        "truecasers": ["s.tsv", "t.tsv"],
    }
    machine = {"checkpoint_minutes": 5.0, "tensorboard": True}
    assert process.options_of_training(files, machine) == (
        "'results/my task' --dictionary a.tsv --truecasers s.tsv t.tsv "
        "--checkpoint-minutes 5.0 --tensorboard"
    )


def test_jobs_find_this_package_and_this_python_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/their/modules")
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    process.provide_environment(Path("/workflow/src"))
    assert os.environ["PYTHONPATH"] == "/workflow/src:/their/modules"
    assert os.environ["PATH"] == f"{Path(sys.executable).parent}:/bin"
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"  # as it is stated
