"""Results that have changed on the disk: nothing of them is published, and `verify` names each."""

import re
import shutil
from pathlib import Path

import pytest

from convs2s.download.partial_file import Expected
from convs2s.files.checksums import note_checksums, note_path, record_path, sha256
from convs2s.publish.results import export_results
from convs2s.publish.verify import known_downloads, verify
from tests.conftest import Terminal
from tests.support.refusals import refusal, rows, says

RUN = "models/small/seed1"
MODEL = f"{RUN}/model.safetensors"
SCORE = f"{RUN}/test.beam5.bleu.json"
ARCHIVE = "downloads/host/a.txt"


@pytest.fixture
def noted(results: Path) -> Path:
    """The results of a task, with the notes that jobs leave and with a download."""
    files = [path for path in results.rglob("[!.]*") if "state" not in path.parts]
    note_checksums(files, results.parent)
    download = results / ARCHIVE
    download.parent.mkdir(parents=True)
    download.write_text("one line\n")
    record_path(download).write_text(f"{sha256(download)}  a.txt\n")
    return results


def change_a_digit(path: Path, after: bytes = b"") -> None:
    """Change the last digit of a file, or the first one after some bytes."""
    content = path.read_bytes()
    start = content.index(after)
    places = [found.start() for found in re.compile(rb"\d").finditer(content, start)]
    place = places[0] if after else places[-1]
    other = b"1" if content[place : place + 1] != b"1" else b"2"
    path.write_bytes(content[:place] + other + content[place + 1 :])


# A command => the file of which a digit is changed => the bytes after which => the message.
TAKEN = f"""
card {MODEL} => {SCORE} => "score" => not the one in .test.beam5.bleu.json.sha256
export-results . out => {SCORE} => "score" => not the one in .test.beam5.bleu.json.sha256
card {MODEL} => {RUN}/training.json => torch => not the one in .training.json.sha256
card {MODEL} => {MODEL} => => damaged: its content does not match its digest
export onnx {MODEL} out => {MODEL} => => damaged: its content does not match its digest
export-results . out => {MODEL} => => has changed since models
export-results . out => {RUN}/history.jsonl => => not the one in .history.jsonl.sha256
export-results . out.zip => models/small/settings.json => => not the one in .settings.json.sha256
results ledger.jsonl --scale demo --output out.md => ledger.jsonl => => \
not the one in .ledger.jsonl.sha256
"""


@pytest.mark.parametrize(("command", "file", "after", "words"), rows(TAKEN))
def test_nothing_that_was_changed_leaves_the_machine(
    noted: Path,
    run: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    file: str,
    after: str,
    words: str,
) -> None:
    monkeypatch.chdir(noted)
    Path("ledger.jsonl").write_text("{}1\n")
    note_checksums([Path("ledger.jsonl")], noted.parent)
    change_a_digit(Path(file), after.encode())
    said = run.refused(*command.split())
    says(said, "convs2s: error: ", f"{file}: ", words)
    assert not list(noted.glob("*out*"))


def test_a_run_that_was_copied_elsewhere_has_its_card(
    noted: Path, tmp_path: Path, run: Terminal
) -> None:
    """Its scores name the checksum of their model, so their place does not matter."""
    (noted / RUN).rename(tmp_path / "mine")
    assert "| test | 3 | beam5 |" in run("card", tmp_path / "mine/model.safetensors")


def test_results_of_another_run_are_not_packed(noted: Path, tmp_path: Path) -> None:
    shutil.copytree(noted / RUN, noted / "models/small/seed2")
    said = refusal(export_results, noted, tmp_path / "out")
    says(said, "seed2/", "belongs to another place", f"{RUN}/")


def damage(path: Path, kind: str) -> None:
    """Damage a file, or the note beside it, or put it in the place of another one."""
    note = note_path(path)
    if kind == "remove":
        path.unlink()
    elif kind == "remove note":
        note.unlink()
    elif kind == "empty note":
        note.write_bytes(b"")
    elif kind == "cut":
        path.write_bytes(path.read_bytes()[:-3])
    elif kind == "copy with note":
        copy = path.with_name("test.beam4.txt")
        shutil.copy(path, copy)
        shutil.copy(note, note_path(copy))
    else:
        change_a_digit(path)


FAULTS = f"""
change => {SCORE} => {SCORE}: its SHA-256 is not the one in .test.beam5.bleu.json.sha256
change => {MODEL} => {MODEL}: damaged: its content does not match its digest
remove note => {SCORE} => {SCORE}: has no note .test.beam5.bleu.json.sha256
empty note => vocabulary/en.tsv => vocabulary/.en.tsv.sha256: damaged: expected a SHA-256
change => vocabulary/fr.tsv => vocabulary/fr.tsv: its SHA-256 is not the one
remove => vocabulary/fr.tsv => vocabulary/fr.tsv: no such file, but its note
change => {RUN}/test.beam5.txt => {RUN}/test.beam5.txt: its SHA-256 is not
copy with note => {RUN}/test.beam5.txt => {RUN}/test.beam4.txt: belongs to another place
cut => corpus/raw/test.source.zst => corpus/raw/test.source.zst: truncated
change => dataset/train.arrow => dataset/train.arrow: damaged: its SHA-256
cut => {ARCHIVE} => {ARCHIVE}: its SHA-256 is not the one in a.txt.sha256
"""


def faults_of(folder: Path) -> list[str]:
    return [fault for _, said in verify(folder, {}) for fault in said]


@pytest.mark.parametrize(("kind", "file", "words"), rows(FAULTS))
def test_each_fault_is_named(noted: Path, kind: str, file: str, words: str) -> None:
    damage(noted / file, kind)
    says("\n".join(faults_of(noted)), f"{noted}/{words}")


def test_the_command_prints_each_fault_in_a_line(
    noted: Path,
    tmp_path: Path,
    run: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)  # where no configuration is
    assert re.match(rf"{noted}: whole: \d\d files are as they", run("verify", noted))
    damage(noted / SCORE, "remove note")
    damage(noted / ARCHIVE, "cut")
    with pytest.raises(SystemExit, match=rf"{noted}: not whole: 2 faults in \d\d "):
        run("verify", noted)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{noted}/{ARCHIVE}:")
    assert second.startswith(f"{noted}/{SCORE}:")
    (tmp_path / "empty").mkdir()
    for folder, words in (("no", "no such folder"), ("empty", "nothing is recorded")):
        says(run.refused("verify", tmp_path / folder), words)


def test_exported_results_are_verified_by_their_list(
    noted: Path, tmp_path: Path
) -> None:
    exported = tmp_path / "paper"  # as a folder of which jobs write everything
    export_results(noted, exported, with_text=False)
    assert faults_of(exported) == []
    change_a_digit(exported / "results/tiny" / SCORE)
    (exported / "README.md").unlink()
    said = faults_of(exported)
    says("\n".join(said), "README.md: no such file", f"{SCORE}: its SHA-256 is not")
    (exported / "SHA256SUMS").write_text("a list\n")
    says("\n".join(faults_of(exported)), "SHA256SUMS:1: expected a SHA-256")


def test_downloads_are_held_to_the_configuration(copy: Path, tmp_path: Path) -> None:
    known = known_downloads(copy)
    path, expected = next((path, one) for path, one in known.items() if one.size)
    assert isinstance(expected, Expected)
    assert path.is_relative_to(copy / "results/downloads")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"short")
    ((checked, (fault, *_)),) = verify(copy / "results", known)
    assert checked == path
    says(fault, f"has 5 bytes, expected {expected.size}", "config/downloads.yaml")
    assert known_downloads(tmp_path / "results") == {}
