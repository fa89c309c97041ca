"""Text, tables, records and archives that are damaged, or made to take all memory or all day."""

import bz2
import io
import json
import resource
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from convs2s.config.identity import training_settings
from convs2s.config.yaml_file import read_yaml
from convs2s.errors import UserError
from convs2s.files.text import read_json, read_lines
from convs2s.paper.attention_maps import read_example
from convs2s.paper.claim_tables import read_claims
from convs2s.paper.phrase_map import read_phrase_map
from convs2s.scoring.tuned_settings import tuned_decoding
from convs2s.training.history import perplexity, read_history
from convs2s.training.state_folder import StateFolder
from tests.faults.campaign.readers import READERS
from tests.support import tiny
from tests.support.archives import make_archive
from tests.support.archives import read as read_member
from tests.support.refusals import refusal, refuses, rows, says

DEEP = "[" * 100_000
SETTINGS = json.dumps(training_settings(tiny.settings()))
NO_BATCH = SETTINGS.replace('"sentences": 16', '"sentences": null')
EPOCH = (
    '{"epoch": 1, "updates": 2, "learning_rate": 0.25, "train_loss": 3.0, "valid_loss": 3.0, '
    '"valid_perplexity": 20.0, "tokens": %d, "tokens_per_second": 1}'
)
ALIASES = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]


@contextmanager
def quick() -> Iterator[None]:
    """Fail where a block takes long: what is here takes a small part of it."""
    started = time.process_time()
    yield
    assert time.process_time() - started < 10.0


OTHERS: dict[str, Callable[[Path], object]] = {
    "example": read_example,
    "phrases": read_phrase_map,
    "claims": read_claims,
    "tuning": lambda path: tuned_decoding(
        {"length_penalty": {"tuned_on": "valid"}}, [str(path)]
    ),
    "json": read_json,
    "yaml": lambda path: read_yaml(path, str(path)),
    "lines": lambda path: list(read_lines(path)),
}

DAMAGED = r"""
history => {"epoch": 1} => f:1: not an epoch of a training's history
report.json => {"read": 1, "kept": -1, "dropped": {}, "settings": ""} => f: no report
report.json => {"read": 1, "kept": 1, "dropped": {"x": 1}, "settings": ""} => f: no report
example => {} => f: not the attention on an example
claims => {"claims": [{"findings": [1]}]} => f: not a list of claims
codes => #version: :\na b\n => f:1: expected '#version: 0.1' or
codes => #version: 1.0\na b\n => f:1: expected '#version: 0.1' or
codes => a\udcff b\n => f:1: not UTF-8
codes => a b c\n => f:1: expected two tokens
vocabulary => type\tcount\na\t1\na\t2\n => f: a type occurs twice
vocabulary => the 5\n => f:1: expected the columns
vocabulary => type\tcount\nthe\t5\ndog\n => f:3: expected ... 'count
vocabulary => type\tcount\nthe\tx\n => f:2: expected the count
settings => {"training": {}} => f: key 'architecture' is
tuning => {} => f: not a tuning of a length penalty
tuning => {"length_penalty": NaN} => f: not a tuning of a length penalty
tuning => {"length_penalty": -0.5} => f: not a tuning of a length penalty
training => {"manifest": []} => training.json: not the record of a
training => {"manifest": {"workers": "x"}} => training.json: not the record
training => {"manifest": {"threads": 1e30}} => training.json: not the record
segments => <seg id=1>a</seg>\n<seg id=2>b\n<seg id=3>c => f:3: unexpected
segments => a</seg> => f:1: unexpected </seg>
segments => <doc>\n<seg id=1>a => f:2: this <seg> is not closed
segments => one\ntwo => f: no <seg> in its 2 lines
links => 0-0\n0-x\n => f:2: expected links such as 0-0 1-2, found '
links => 0-0\n-1-0\n => f:2: expected links
links => 0-0\n0-\u0661\n => f:2: expected links
store => => f: not a token store
store => ARROW1\0\0 => f: not a token store
dictionary => a\tb\t1\t1\n => f:1: ... columns
dictionary => source\ttarget\tcount\tsource_count\na\tb\n => f:2: ... columns
truecaser => type\tcount\nthe\t2\n => f:1: ... 'word', 'count'
truecaser => word\tcount\nthe\t2\nthe 3\n => f:3: ... 'word', 'count'
exceptions => mice\tmouse\nwent go\n => f:2: ... a tab and its base
candidates => the\tdie der\n => f:1: expected the columns
lines => \udcff\udcfeT\0h\0e\0\n\0 => f:1: not UTF-8 ... UTF-16 ... .gz
"""
LISTS = "[" * 40 + "]" * 40
LONG = [
    ["history", DEEP, "f:1: not an epoch of a training's history"],
    ["history", EPOCH % (1 << 63), "f:1: not an epoch"],
    ["history", EPOCH % -1, "f:1: not an epoch"],
    ["phrases", DEEP, "f: not a map of phrases"],
    ["translations", DEEP, "f:1: not a translation"],
    ["n-best", f"{'9' * 5000} ||| a ||| b ||| 1", "f:1: expected ... the sentence"],
    ["settings", NO_BATCH, "f: training: expected a number of"],
    ["json", DEEP, "f: not JSON"],
    ["json", "9" * 5000, "f: not JSON"],
    ["yaml", "a0: &a0 [1]\n" + "\n".join(ALIASES), "f:6: more than 200000"],
    ["yaml", "[" * 500 + "]" * 500, "f:1: more than 60 nested lists"],
    ["yaml", f"a: &a {LISTS}\nb: {LISTS.replace('[]', '[*a]')}", "f:1: more than 60"],
    ["segments", "<seg " * 200_000, "f: no <seg>"],
    ["segments", "<seg>" + "word \n" * 1_000_000, "f:1: this <seg> is too long"],
    ["links", f"0-0\n{'9' * 5000}-0\n", "f:2: expected links"],
    ["store", "ARROW1" + "\0" * 66 + "ARROW1", "f: not a token store"],
    ["lines", "x" * ((16 << 20) + 1), "f:1: a line of more than 16777216 bytes"],
    ["lines", "a\n" * 5000 + "x" * ((16 << 20) + 1), "f:5001: a line of more"],
]


def test_a_damaged_file_is_named_soon(tmp_path: Path) -> None:
    for kind, content, words in [*rows(DAMAGED), *LONG]:
        path = tmp_path / ("training.json" if kind == "training" else "f")
        path.write_text(content, "utf-8", "surrogateescape", newline="")
        with quick():
            refuses(words, (READERS | OTHERS)[kind], path)


def test_what_is_just_within_the_bounds_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for tokens in (0, (1 << 63) - 1):
        path.write_text(EPOCH % tokens)
        assert read_history(path).epochs[0].tokens == tokens
    path.write_bytes(b"a\n" + b"x" * (16 << 20) + b"\n")
    assert len(list(read_lines(path))) == 2
    path.write_text("<seg>&#99999999999999999999;</seg>")
    assert READERS["segments"](path) == ["&#99999999999999999999;"]
    assert perplexity(1e6) == perplexity(700.0) < float("inf")


def test_a_damaged_identity_of_another_training_stops_none(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    for content in ("{", "[]"):
        (tmp_path / "other/identity.json").write_text(content)
        (line,) = StateFolder(tmp_path, {"seed": 1}).differences().values()
        says(line, "identity.json: not an identity of a training")


def test_what_a_message_quotes_cannot_end_its_line() -> None:
    for word in ("\r", "\x1b[2J", "\u2028", "\ud800", "\x85"):
        message = str(UserError(f"a.txt:1: expected a word, found {word}"))
        assert message.isprintable()
        assert str(UserError(message)) == message


# Compressed text


def test_a_bomb_read_as_a_line_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "text.bz2"
    path.write_bytes(bz2.compress(bytes(45 << 20)) * 20)  # 785 bytes for 943 MB
    tracemalloc.start()
    refuses("text.bz2:1: a line of more than 16777216 bytes", OTHERS["lines"], path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 80 << 20


def test_lines_are_those_between_line_feeds(tmp_path: Path) -> None:
    written = ["", "\r", "\u2028", "é" * 70_000, "word " * 9000, "\x85\f", "\ufeff"]
    path = tmp_path / "text"
    for end in ("end", "end\n"):
        path.write_text("\n".join(["\ufeff", *written, end]), newline="")
        assert list(read_lines(path)) == ["", *written, "end"]
    path.write_bytes(b"one\ntwo\n\xff\nfour\n")
    read = read_lines(path)
    assert [next(read), next(read)] == ["one", "two"]
    refuses("text:3: not UTF-8: byte 0xff at column 1", next, read)


# Archives


def test_an_absent_member_among_many_is_named_soon(tmp_path: Path) -> None:
    many = {f"folder/member-{number}-of-many.txt": b"" for number in range(20_000)}
    path = make_archive(tmp_path / "many.zip", many | {"elsewhere/news.en": b""})
    with quick():
        message = refusal(read_member, path, "folder/news.en")
    says(message, "of its 20001 are: elsewhere/news.en,")


def test_odd_headers_of_tar_archives_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    odd = "99999999 path=a\n", "-5 path=a\n", "12 size=abc\n", "14 size=-512\n"
    for data in (*odd, "x" * 100_000):
        header = tarfile.TarInfo("header")
        header.type = tarfile.XHDTYPE
        header.size = len(data)
        with tarfile.open(path, "w") as archive:
            archive.addfile(header, io.BytesIO(data.encode()))
            archive.addfile(tarfile.TarInfo("last"))
        with quick():
            refuses("a.tar: ", read_member, path, "one")


def test_a_zip_archives_lzma_takes_memory_for_what_it_holds_alone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("one", "A line.\n")
    content = bytearray(path.read_bytes())
    dictionary = content.index(b"one") + len("one") + 5
    content[dictionary : dictionary + 4] = (1 << 30).to_bytes(4, "little")
    path.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes
    assert read_member(path, "one") == b"A line.\n"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
