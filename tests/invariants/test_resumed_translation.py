"""A long file's translation is the same after a kill and on any number of workers."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard

from convs2s.cli.main import main
from convs2s.config.architecture import ConvS2SArchitecture
from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.long_files import identity_of, translate_long_file
from convs2s.decoding.parallel import Chunk
from convs2s.decoding.streams import ChunkTranslator
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import read_json, read_lines, write_lines
from tests.support import tiny
from tests.support.networks import options
from tests.support.processes import wait_for
from tests.support.refusals import rows

generator = random.Random(5)
LINES = [
    " ".join(generator.choices(tiny.WORDS, k=generator.randint(1, 8)))
    for _ in range(400)
]


def translator_of(model: Path, precision: str = "fp32") -> LineTranslator:
    short = {"factor": 0.2, "offset": 2}
    given = options(batch_sentences=2, maximum_length=short, precision=precision)
    return LineTranslator([model], given, "cpu")


def command(model: Path, source: Path, output: Path, *options: str) -> list[str]:
    given = f"--input {source} --output {output} --batch-sentences 2 --threads 1"
    short = "--maximum-length.factor 0.2 --maximum-length.offset 2"
    return ["translate", str(model), *given.split(), *short.split(), *options]


def started(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "convs2s", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


# ---- killed between two chunks ----


class Killed(ChunkTranslator):
    """Notes the first line of each chunk, and stops before some chunk as a kill does."""

    def __init__(self, model: Path, chunks: int) -> None:
        super().__init__(translator_of(model), as_json=True, n_best=None)
        self.chunks = chunks
        self.seen: list[int] = []

    def __call__(self, chunk: Chunk) -> str:
        if len(self.seen) == self.chunks:
            raise KeyboardInterrupt
        self.seen.append(chunk[0][0])
        return super().__call__(chunk)


def translate_file(translate: Killed, folder: Path, name: str) -> bytes:
    output = folder / name
    translate_long_file(translate, folder / "in", output, {"models": ["a"]}, workers=1)
    assert not list(folder.glob(f"{name}.part*"))
    return output.read_bytes()


def test_a_stopped_translation_goes_on(model: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in", LINES[:50])
    for name in ("out", "out.zst"):
        expected = translate_file(Killed(model, 9), tmp_path, f"expected.{name}")
        with pytest.raises(KeyboardInterrupt):
            translate_file(Killed(model, 2), tmp_path, name)
        assert not (tmp_path / name).exists()
        # What a kill in the middle of writing leaves behind the last complete chunk:
        with (tmp_path / f"{name}.part").open("ab") as part:
            part.write(b"half a line")
        rest = Killed(model, 9)
        assert translate_file(rest, tmp_path, name) == expected
        assert rest.seen == [33, 49]  # chunks of 8 batches of 2
        assert len(list(read_lines(tmp_path / name))) == 50
    assert zstandard.get_frame_parameters(expected).has_checksum


# A change of the state that a kill has left (none: of the input), and why it is not used.
UNFIT = """
{"bytes": 1000000} => its text is shorter than its state says
{"lines": -1} => its state cannot be read
{"identity": {"models": ["b"]}} => differs from this command in models and input
{} => differs from this command in input
"""


def test_what_does_not_fit_the_command_starts_over(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "out.part.json"
    for change, reason in rows(UNFIT):
        write_lines(tmp_path / "in", LINES[:50])
        with pytest.raises(KeyboardInterrupt):
            translate_file(Killed(model, 2), tmp_path, "out")
        stated: Any = read_json(state)
        state.write_text(json.dumps(stated | json.loads(change)))
        if change == "{}":
            write_lines(tmp_path / "in", LINES[1:51])
        fresh = Killed(model, 9)
        translate_file(fresh, tmp_path, "out")
        assert fresh.seen[0] == 1
        assert reason in capsys.readouterr().err


def test_an_empty_file_is_one_of_its_format(model: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in", [])
    for suffix in ("", ".gz", ".bz2", ".xz", ".zst"):
        written = translate_file(Killed(model, 0), tmp_path, f"out{suffix}")
        assert (written != b"") == (suffix != "")
        assert list(read_lines(tmp_path / f"out{suffix}")) == []


# ---- the command ----


def test_a_killed_command_is_gone_on_with_by_two_workers(
    sharp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the precision that it began with: gone on with in another, it would be of both."""
    write_lines(tmp_path / "in", LINES)
    state = tmp_path / "out.part.json"
    whole = command(sharp, tmp_path / "in", tmp_path / "out", "--precision", "auto")
    process = started(*whole)
    wait_for(state.exists)
    process.kill()
    process.communicate()
    assert not (tmp_path / "out").exists()
    stated: Any = read_json(state)
    assert stated["identity"]["precision"] == "int8"
    main([*whole, "--workers", "2"])
    assert "out: resuming after line " in capsys.readouterr().err
    expected = translator_of(sharp, "int8").translate(LINES)
    assert list(read_lines(tmp_path / "out")) == [one.text for one in expected]


def test_what_goes_to_a_pipe_has_nothing_to_resume(model: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in", LINES * 10)
    with started(*command(model, tmp_path / "in", Path("/dev/stdout"))) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        said = process.communicate()[1].decode()
    assert "SIGTERM was received" in said
    assert process.returncode == 1, "75 says that a state was saved"


WATCHED = """
import re, resource, sys
from pathlib import Path
from convs2s.cli.main import main

main(sys.argv[1:])
# A process's ru_maxrss begins at that of the one which started it: VmHWM does not.
own = re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]
print(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""


def peak_memory(*arguments: object) -> int:
    """Return the most kilobytes that ``convs2s`` or one of its workers had resident."""
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    return max(map(int, done.stderr.splitlines()[-1].split()))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(model: Path, tmp_path: Path) -> None:
    few, many = tmp_path / "few", tmp_path / "many"
    write_lines(few, LINES * 50)
    write_lines(many, LINES * 500)
    for workers in ("1", "2"):
        options = f"--beam 1 --batch-sentences 256 --workers {workers}".split()
        least, most = (
            peak_memory(*command(model, path, tmp_path / "out", *options))
            for path in (few, many)
        )
        assert most < 1.1 * least


# ---- what an output depends on ----


def test_an_output_depends_on_code_and_on_a_gpu_on_batches(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit of an extension's network changes what the same weights say."""

    def known(device: str, size: int = 64) -> dict[str, object]:
        settings = DecodingSettings(batch_sentences=size)
        return identity_of([model], settings, device)

    before = known("cpu")
    assert before == known("cpu", 1)
    assert known("cuda") != known("cuda", 1)
    monkeypatch.setattr(ConvS2SArchitecture, "code", lambda _: {"code": "edited"})
    assert known("cpu") != before
