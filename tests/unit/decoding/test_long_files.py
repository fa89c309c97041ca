"""Translating streams and long files: order, resumption, workers, n-best lists, batches."""

import fcntl
import io
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from convs2s.cli.main import main
from convs2s.config.architecture import ConvS2SArchitecture
from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.long_files import identity_of, translate_long_file
from convs2s.decoding.parallel import Chunk
from convs2s.decoding.streams import ArrivingBytes, ChunkTranslator, arriving
from convs2s.decoding.translate import LineTranslator, Translation
from convs2s.errors import UserError
from convs2s.files.text import read_lines, text_lines, write_lines
from tests.support import tiny
from tests.support.limits import without_locks
from tests.support.memory import peak_memory
from tests.unit.conftest import Terminal

SHORT: dict[str, Any] = {"beam": 2, "maximum_length": {"factor": 0.2, "offset": 2}}
"""Settings that keep tests fast, and the same as options of the command."""

PRECISIONS = ["fp32", "bf16", "int8"]

SHORT_OPTIONS = (
    "--beam",
    2,
    "--maximum-length.factor",
    0.2,
    "--maximum-length.offset",
    2,
)


def sentences(count: int, longest: int = 8) -> list[str]:
    generator = random.Random(5)
    return [
        " ".join(generator.choices(tiny.WORDS, k=generator.randint(1, longest)))
        for _ in range(count)
    ]


# ---- the same whatever the batches, the order, the workers ----


def translated(model: Path, lines: list[str], **settings: Any) -> list[Translation]:
    translator = LineTranslator(
        [model], DecodingSettings.model_validate(SHORT | settings), "cpu"
    )
    return list(translator.translate(lines))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_batch_size_and_order_change_no_translation(
    sharp: Path, precision: str
) -> None:
    lines = sentences(100, longest=40)
    expected = translated(sharp, lines, precision=precision, batch_sentences=64)
    assert len({one.text for one in expected}) > 50
    order = random.Random(1).sample(range(100), 100)
    for size in (7, 1):
        again = translated(
            sharp, [lines[i] for i in order], precision=precision, batch_sentences=size
        )
        for place, one in zip(order, again, strict=True):
            assert one.text == expected[place].text
            assert one.alignment == expected[place].alignment
            assert one.score == pytest.approx(expected[place].score, abs=1e-5, rel=0)


@pytest.mark.parametrize("precision", PRECISIONS[1:])
def test_a_sentence_is_computed_alike_in_every_batch(
    sharp: Path, precision: str
) -> None:
    """To the bit, on what this machine computes with: no tolerance can hide a last bit."""
    lines = sentences(60, longest=40)
    together = translated(sharp, lines, precision=precision, batch_sentences=60)
    alone = translated(sharp, lines, precision=precision, batch_sentences=1)
    assert [one.score for one in together] == [one.score for one in alone]


def test_a_beam_may_be_wider_than_the_vocabulary(model: Path) -> None:
    lines, beam = sentences(2), 4 * len(tiny.WORDS)
    together = translated(model, lines, beam=beam)
    alone = translated(model, lines, beam=beam, batch_sentences=1)
    assert [one.tokens for one in together] == [one.tokens for one in alone]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_workers_change_nothing(
    run: Terminal, sharp: Path, tmp_path: Path, precision: str
) -> None:
    write_lines(tmp_path / "in", sentences(200, longest=20))
    options = (
        *SHORT_OPTIONS,
        "--threads",
        1,
        "--precision",
        precision,
        "--batch-sentences",
        7,
    )
    for workers in (1, 2):
        output = tmp_path / f"out{workers}"
        files = ("--input", tmp_path / "in", "--output", output, "--workers", workers)
        run("translate", sharp, "--json", *options, *files)
    assert (tmp_path / "out2").read_bytes() == (tmp_path / "out1").read_bytes()
    assert len(list(read_lines(tmp_path / "out1"))) == 200


# ---- killed and gone on with ----


class Killed(ChunkTranslator):
    """Stops before some chunk, as a killed process does."""

    def __init__(self, whole: ChunkTranslator, chunks: int) -> None:
        super().__init__(whole.translator, whole.as_json, whole.n_best)
        self.left = chunks
        self.seen: list[int] = []

    def __call__(self, chunk: Chunk) -> str:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        self.seen.append(chunk[0][0])
        return super().__call__(chunk)


@pytest.fixture
def whole(model: Path) -> ChunkTranslator:
    settings = DecodingSettings.model_validate(SHORT | {"batch_sentences": 2})
    translator = LineTranslator([model], settings, "cpu")
    return ChunkTranslator(translator, True, None)


def translate_file(
    translate: ChunkTranslator, folder: Path, name: str = "out", model: str = "a"
) -> bytes:
    output = folder / name
    identity = {"models": [model]}
    translate_long_file(translate, folder / "in", output, identity, workers=1)
    assert [
        path.name for path in folder.glob(f"*{name}.*") if "part" in path.name
    ] == []
    return output.read_bytes()


@pytest.fixture
def killed(whole: ChunkTranslator, tmp_path: Path) -> Path:
    """The folder of a translation of 50 lines that was killed after two chunks."""
    write_lines(tmp_path / "in", sentences(50))
    with pytest.raises(KeyboardInterrupt):
        translate_file(Killed(whole, 2), tmp_path)
    return tmp_path


def assert_starts_over(whole: ChunkTranslator, folder: Path, model: str = "a") -> None:
    fresh = Killed(whole, 9)
    translate_file(fresh, folder, model=model)
    assert fresh.seen[0] == 1


@pytest.mark.parametrize("name", ["out", "out.zst"])
def test_a_stopped_translation_goes_on(
    whole: ChunkTranslator, tmp_path: Path, name: str
) -> None:
    write_lines(tmp_path / "in", sentences(50))
    expected = translate_file(whole, tmp_path, f"expected.{name}")
    with pytest.raises(KeyboardInterrupt):
        translate_file(Killed(whole, 2), tmp_path, name)
    assert not (tmp_path / name).exists()
    # What a kill in the middle of writing leaves behind the last complete chunk:
    with (tmp_path / f"{name}.part").open("ab") as part:
        part.write(b"half a line")
    rest = Killed(whole, 9)
    assert translate_file(rest, tmp_path, name) == expected
    assert rest.seen == [33, 49]  # chunks of 8 batches of 2
    if name == "out.zst":
        assert zstandard.get_frame_parameters(expected).has_checksum
        read = zstandard.ZstdDecompressor().stream_reader(
            expected, read_across_frames=True
        )
        assert read.read().count(b"\n") == 50


@pytest.mark.parametrize(
    ("suffix", "start"),
    {
        "": b"",
        ".gz": b"\x1f\x8b",
        ".bz2": b"BZh",
        ".xz": b"\xfd7z",
        ".zst": b"\x28\xb5",
    }.items(),
)
def test_an_empty_file_is_one_of_its_format(
    whole: ChunkTranslator, tmp_path: Path, suffix: str, start: bytes
) -> None:
    write_lines(tmp_path / "in", [])
    written = translate_file(whole, tmp_path, f"out{suffix}")
    assert written[: len(start) or None] == start
    assert list(read_lines(tmp_path / f"out{suffix}")) == []


def test_a_part_that_lost_its_end_starts_over(
    whole: ChunkTranslator, killed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (killed / "out.part").open("r+b") as part:
        part.truncate(5)
    assert_starts_over(whole, killed)
    assert "its text is shorter than its state says" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["lines", "bytes"])
def test_a_state_of_fewer_than_no_lines_starts_over(
    whole: ChunkTranslator, killed: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    state = killed / "out.part.json"
    state.write_text(json.dumps(json.loads(state.read_bytes()) | {key: -1}))
    assert_starts_over(whole, killed)
    assert "its state cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "reason"), [("model", "models"), ("input", "input")]
)
def test_a_translation_of_something_else_starts_over(
    whole: ChunkTranslator,
    killed: Path,
    capsys: pytest.CaptureFixture[str],
    change: str,
    reason: str,
) -> None:
    if change == "input":
        write_lines(killed / "in", reversed(sentences(50)))
    assert_starts_over(whole, killed, model="b" if change == "model" else "a")
    assert (
        f"there is an unfinished output, but it differs from this command in {reason}\n"
        in (capsys.readouterr().err)
    )


def command(model: Path, *arguments: object) -> list[str]:
    given = map(str, ("translate", model, "--threads", 1, *arguments))
    return [sys.executable, "-m", "convs2s", *given]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_killed_process_is_gone_on_with(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: int
) -> None:
    write_lines(tmp_path / "in", sentences(400))
    files = (
        "--input",
        tmp_path / "in",
        "--output",
        tmp_path / "out",
        "--workers",
        workers,
    )
    started = command(model, *files, *SHORT_OPTIONS, "--batch-sentences", 1)
    process = subprocess.Popen(started, stderr=subprocess.DEVNULL)
    state = tmp_path / "out.part.json"
    while not state.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out").exists()
    main(started[3:])
    again = capsys.readouterr().err
    assert "out: resuming after line " in again
    expected = [one.text for one in translated(model, sentences(400))]
    assert list(read_lines(tmp_path / "out")) == expected


def test_what_goes_to_a_pipe_has_nothing_to_resume(model: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in", sentences(4000))
    files = (
        "--input",
        tmp_path / "in",
        "--output",
        "/dev/stdout",
        "--batch-sentences",
        1,
    )
    started = command(model, *files, *SHORT_OPTIONS)
    with subprocess.Popen(
        started, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        said = process.communicate()[1].decode()
    assert "SIGTERM was received" in said
    assert process.returncode == 1, "75 says that a state was saved"


def _defaults(model: Path) -> LineTranslator:
    return LineTranslator([model], DecodingSettings(), "cpu")


def test_two_processes_do_not_write_one_output(model: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in", ["w1"])
    holder = (
        "import fcntl, sys; part = open(sys.argv[1], 'ab'); fcntl.lockf(part, fcntl.LOCK_EX); "
        "print(flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", holder, str(tmp_path / "out.part")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        translate = ChunkTranslator(_defaults(model), False, None)
        with pytest.raises(
            Exception, match=r"out\.part: another process is writing it"
        ):
            translate_file(translate, tmp_path)
        process.communicate()


def test_an_output_that_cannot_be_locked_is_no_other_process(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(tmp_path / "in", ["w1"])
    monkeypatch.setattr(fcntl, "lockf", without_locks)
    translate = ChunkTranslator(_defaults(model), False, None)
    with pytest.raises(
        UserError, match=r"out\.part: cannot be locked \(No locks available\)"
    ):
        translate_file(translate, tmp_path)


def test_on_a_gpu_the_batches_are_part_of_what_an_output_depends_on(
    model: Path,
) -> None:
    ways = [DecodingSettings(batch_sentences=size) for size in (1, 64)]
    on_cpu, on_gpu = (
        [identity_of([model], one, device) for one in ways]
        for device in ("cpu", "cuda")
    )
    assert on_cpu[0] == on_cpu[1]
    assert on_gpu[0] != on_gpu[1]


def test_the_code_of_an_extensions_network_is_part_too(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an edit of it changes what the same weights say."""
    before = identity_of([model], DecodingSettings(), "cpu")
    monkeypatch.setattr(ConvS2SArchitecture, "code", lambda _: {"code": "edited"})
    assert identity_of([model], DecodingSettings(), "cpu") != before


def test_a_killed_worker_is_an_error_with_advice(
    run: Terminal, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(tmp_path / "in", sentences(20))
    monkeypatch.setattr(
        ChunkTranslator, "__call__", lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    )
    files = ("--input", tmp_path / "in", "--output", tmp_path / "out", "--workers", 2)
    with pytest.raises(SystemExit, match=r"a worker was killed, .* fewer --workers"):
        run("translate", model, "--threads", 1, *files)


# ---- streams ----


def groups(descriptor: int, most: int = 3) -> Iterator[list[str]]:
    stream = ArrivingBytes(os.fdopen(descriptor, "rb"))
    return arriving(text_lines(stream.readline, "pipe"), stream.must_wait, most)


def test_a_line_does_not_wait_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts, ready = set[float](), select.select

    def noted(*arguments: Any) -> Any:
        timeouts.add(arguments[3])
        return ready(*arguments)

    monkeypatch.setattr(select, "select", noted)
    reader, writer = os.pipe()
    found = groups(reader)
    os.write(writer, b"one\n")
    assert next(found) == ["one"]
    os.write(writer, b"two\nthree\nfo")
    assert next(found) == ["two", "three"]
    os.write(writer, b"ur\n5\n6\n7\nlast")
    assert next(found) == ["four", "5", "6"]
    assert next(found) == ["7"]
    os.close(writer)
    assert list(found) == [["last"]]
    assert timeouts == {0}


def test_lines_before_a_fault_are_still_answered() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"one\n\xe9\n")
    os.close(writer)
    found = groups(reader)
    assert next(found) == ["one"]
    with pytest.raises(Exception, match=r"pipe:2: not UTF-8"):
        next(found)


def test_of_a_line_without_end_no_more_is_read_than_refuses_it() -> None:
    given = io.BytesIO(b"one\n" + bytes(4 << 20))
    stream = ArrivingBytes(io.BufferedReader(given))
    found = arriving(text_lines(stream.readline, "pipe"), stream.must_wait, 3)
    with pytest.raises(UserError, match="pipe:2: a line of more than 1048576 bytes"):
        list(found)
    assert given.tell() < 2 << 20


def test_a_conversation(model: Path) -> None:
    """A program that waits for each answer before it sends the next line gets it."""
    expected = [one.text for one in _defaults(model).translate(["w1 w2", "w3"])]
    with subprocess.Popen(
        command(model),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line, answer in zip(("w1 w2", "w3"), expected, strict=True):
            process.stdin.write(f"{line}\n")
            assert process.stdout.readline() == f"{answer}\n"


# ---- what is written ----


def test_n_best_lists(run: Terminal, model: Path) -> None:
    options = ("--beam", 4, "--n-best", 3)
    rows = run("translate", model, *options, text=b"w1 w2\n\nw3\n").splitlines()
    fields = [row.split(" ||| ") for row in rows]
    assert [row[0] for row in fields] == ["0"] * 3 + ["1"] + ["2"] * 3
    as_json = run(
        "translate", model, "--json", *options, text=b"w1 w2\n\nw3\n"
    ).splitlines()
    best, empty, _ = (json.loads(row) for row in as_json)
    assert [one["text"] for one in best["n_best"]] == [row[1] for row in fields[:3]]
    assert best["n_best"][0]["score"] == best["score"] >= best["n_best"][1]["score"]
    assert (empty["text"], empty["alignment"], len(empty["n_best"])) == ("", [], 1)
    for row, one in zip(fields[:3], best["n_best"], strict=True):
        assert float(row[3]) == pytest.approx(one["score"], abs=1e-6)
        length = len(one["tokens"]) + 1
        name, likelihood, *rest = row[2].split(" ")
        assert (name, rest) == ("LogLikelihood=", ["Length=", str(length)])
        assert float(likelihood) == pytest.approx(one["score"] * length, abs=1e-5)


def test_a_bar_in_a_text_is_no_separator(model: Path) -> None:
    translate = ChunkTranslator(_defaults(model), False, 1)
    (translation,) = translate.translator.translate_chunk([(1, "w1")], n_best=1)
    forged = replace(translation, n_best=[replace(translation, text="a ||| b")])
    (row,) = translate.lines(forged).splitlines()
    assert row.split(" ||| ")[1] == "a &#124;&#124;&#124; b"
    # Then a single bar is a token, written as it stands.
    translate.translator.pretokenized = True
    forged = replace(translation, n_best=[replace(translation, text="a | ||| b")])
    assert translate.lines(forged).split(" ||| ")[1] == "a | &#124;&#124;&#124; b"


def test_the_alignment_names_the_source_tokens(run: Terminal, model: Path) -> None:
    row = json.loads(run("translate", model, "--json", text=b"w1 w2 w3\n"))
    assert len(row["alignment"]) == len(row["tokens"])
    assert set(row["alignment"]) <= {0, 1, 2}
    assert "n_best" not in row


def test_several_models_translate_a_file_together(
    run: Terminal, model: Path, sharp: Path, tmp_path: Path
) -> None:
    write_lines(tmp_path / "in", sentences(5))
    files = ("--input", tmp_path / "in", "--output", tmp_path / "out")
    run("translate", model, sharp, *files)
    expected = LineTranslator([model, sharp], DecodingSettings(), "cpu").translate(
        sentences(5)
    )
    assert list(read_lines(tmp_path / "out")) == [one.text for one in expected]
    printed = run("translate", model, sharp, "--input", tmp_path / "in")
    assert printed.encode() == (tmp_path / "out").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output", "out"), "--output and --workers are for files"),
        (("--workers", 2), "--output and --workers are for files"),
        (("--n-best", 6), "--n-best 6: a beam of 5 finds no more than 5"),
        (("--input", "nowhere"), "nowhere: no such file"),
        (
            ("--input", "nowhere", "--output", "-"),
            "-: leave --input and --output out for the stan",
        ),
    ],
)
def test_options_that_do_not_go_together(
    run: Terminal, model: Path, arguments: tuple[object, ...], message: str
) -> None:
    with pytest.raises(SystemExit, match=message):
        run("translate", model, *arguments)


@pytest.mark.parametrize("name", ["text", "text.part", "text.part.json"])
def test_no_input_is_overwritten(
    run: Terminal, model: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    write_lines(path, ["w1"])
    with pytest.raises(SystemExit, match=f"{name}: is an input as well"):
        run("translate", model, "--input", path, "--output", tmp_path / "text")
    assert path.read_text() == "w1\n"
    content = model.read_bytes()
    with pytest.raises(
        SystemExit, match=rf"{model}: is an input as well: name another output"
    ):
        run("translate", model, "--input", path, "--output", model)
    assert model.read_bytes() == content


def test_a_file_of_another_program_is_not_overwritten(
    whole: ChunkTranslator, tmp_path: Path
) -> None:
    write_lines(tmp_path / "in", sentences(3))
    write_lines(tmp_path / "out.part", ["half a download"])
    with pytest.raises(
        UserError, match=r"out\.part: exists already, but is not an unfinished"
    ):
        translate_file(whole, tmp_path)
    assert (tmp_path / "out.part").read_text() == "half a download\n"


class Edited(ChunkTranslator):
    """Translates a file to whose end somebody adds a line meanwhile."""

    source: Path

    def __call__(self, chunk: Chunk) -> str:
        with self.source.open("a") as stream:
            stream.write("w1\n")
        return super().__call__(chunk)


def test_an_input_that_changes_meanwhile_is_no_whole_one(
    whole: ChunkTranslator, tmp_path: Path
) -> None:
    write_lines(tmp_path / "in", sentences(50))
    edited = Edited(whole.translator, True, None)
    edited.source = tmp_path / "in"
    with pytest.raises(UserError, match="in: was changed while it was translated"):
        translate_file(edited, tmp_path)
    assert not (tmp_path / "out").exists()


# ---- memory ----


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_memory_does_not_grow_with_the_file(
    model: Path, tmp_path: Path, workers: int
) -> None:
    files = (
        "--input",
        tmp_path / "in",
        "--output",
        tmp_path / "out",
        "--workers",
        workers,
    )
    peaks = []
    for lines in (20_000, 200_000):
        write_lines(tmp_path / "in", sentences(lines, longest=3))
        _, _, _, *arguments = command(model, *SHORT_OPTIONS, "--beam", 1, *files)
        peaks.append(peak_memory(*arguments, "--batch-sentences", 256))
    assert peaks[1] < 1.1 * peaks[0]
