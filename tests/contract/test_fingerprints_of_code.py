"""A script's fingerprint changes with the code that it runs, and with nothing else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.errors import UserError
from convs2s.pipeline import fingerprint as code


def fingerprint_of(script: Path) -> str:
    """As another process would have it, which reads all code anew."""
    code._read_code.cache_clear()
    return code.fingerprint(script)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package in the place of this one, of files with one line."""
    folder = tmp_path / "convs2s"
    (folder / "data").mkdir(parents=True)
    for name in ("a.py", "b.py", "c.py", "d.py", "other.py", "data/w.tsv"):
        (folder / name).write_text("x = 1\n", "utf-8")
    monkeypatch.setattr(code, "PACKAGE", folder)
    yield folder
    code._read_code.cache_clear()


def test_fingerprints_are_kept_until_a_byte_changes(
    tmp_path: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts, kept = tmp_path / "scripts", tmp_path / "kept/fingerprints.json"
    scripts.mkdir()
    (scripts / "a.py").write_text("x = 1\n", "utf-8")
    first = code.fingerprints(scripts, kept)
    assert first == {"a.py": fingerprint_of(scripts / "a.py")}
    monkeypatch.setattr(code, "fingerprint", lambda path: "made again")
    assert code.fingerprints(scripts, kept) == first
    (package / "new.py").write_text("", "utf-8")  # an import may find it
    assert code.fingerprints(scripts, kept) == {"a.py": "made again"}
    monkeypatch.undo()
    kept.write_text('{"a')
    with pytest.raises(UserError, match=f"^{kept}: .*: remove it"):
        code.fingerprints(scripts, kept)


def test_an_edit_of_what_is_imported_changes_a_fingerprint(package: Path) -> None:
    """Comments and docstrings do not."""
    for imports in (
        ("from convs2s import b", "import convs2s.c", "from convs2s.d import x"),
        ("from convs2s import (\n    b,\n    c,\n    d,\n)", "", ""),
    ):
        for name, text in zip("abc", imports, strict=True):
            (package / f"{name}.py").write_text(f"{text}\n", "utf-8")
        seen = [fingerprint_of(package / "a.py")]
        for name in ("a.py", "b.py", "c.py", "d.py", "data/w.tsv", "other.py"):
            with (package / name).open("a", encoding="utf-8") as file:
                file.write("y = 2\n")
            seen.append(fingerprint_of(package / "a.py"))
        assert len(set(seen)) == 6
        assert seen[-1] == seen[-2]
        script = package / "a.py"
        script.write_text(f'"""Doc."""\n# why\n{script.read_text("utf-8")}', "utf-8")
        assert fingerprint_of(script) == seen[-1]
