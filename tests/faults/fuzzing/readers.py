"""Every reader of the package, with the file that it is given and how its inputs are drawn."""

import json
import shutil
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from convs2s.cli.n_best import read_groups
from convs2s.config.decoding import DecodingSettings
from convs2s.config.identity import read_training_settings
from convs2s.config.load import load
from convs2s.data.corpus import RawText, extract_corpus
from convs2s.data.dataset import read_description
from convs2s.data.formats import read_columns, read_field, read_segments
from convs2s.data.store import SIDES, TokenStore
from convs2s.data.vocabulary import read_vocabulary
from convs2s.decoding.long_files import growing_output
from convs2s.decoding.translate import LineTranslator
from convs2s.download.archives import open_member
from convs2s.files.text import read_json, read_line_pairs, read_lines
from convs2s.interop.fairseq import FairseqFiles, import_fairseq
from convs2s.model_file import describe_model
from convs2s.paper.ledger import read_ledger
from convs2s.paper.trained import read_training
from convs2s.publish.card import model_card
from convs2s.scoring.n_best import average_with, every_sentence, reranked
from convs2s.scoring.rouge_stem import read_exceptions
from convs2s.scoring.translations import read_translations
from convs2s.text.bpe import Bpe, read_codes
from convs2s.text.corpus_filter import added_reports
from convs2s.text.dictionary import build_dictionary, read_candidates, read_dictionary
from convs2s.text.links import read_links
from convs2s.text.truecase import read_truecaser
from tests.faults.fuzzing.damage import changed, damaged, written
from tests.faults.fuzzing.grammars import (
    COMPRESSORS,
    checkpoints,
    compressed,
    json_lines,
    json_texts,
    ledgers,
    tar_archives,
    tensor_files,
    zip_archives,
)
from tests.faults.fuzzing.samples import MEMBER
from tests.support import tiny
from tests.support.golden import DATA
from tests.support.local_files import FilesBelow

Inputs = st.SearchStrategy[bytes]


@dataclass(frozen=True)
class Reader:
    """What reads a kind of file.

    Attributes:
        name: for reports.
        path: where the input is written; what a message must name.
        inputs: draws the file's content.
        read: reads it, and uses what it has read as the package does.
        share: of the inputs, beside that of the others; less for what takes long.
        named: what else a message must hold in place of the file's name.
    """

    name: str
    path: Path
    inputs: Inputs
    read: Callable[[Path], object]
    share: float = 1.0
    named: str | None = None

    def faults_of(self, message: str) -> str | None:
        """Return what is wrong with a message to the user; None where it is one line as promised.

        Args:
            message: of a UserError.
        """
        if len(f"{message}.".splitlines()) != 1 or not message.isprintable():
            return "is not one line of printable text"
        if (self.path.name if self.named is None else self.named) not in message:
            return "does not name the file"
        return None


def readers(samples: Path, place: Path) -> list[Reader]:
    """Return every reader of files; the inputs go into the folder ``place``."""
    place.mkdir(exist_ok=True)
    return [
        *_archives(samples, place),
        *_texts(samples, place),
        *_tables(samples, place),
        *_models(samples, place),
        *_records(samples, place),
        *_configuration(samples, place),
    ]


def _drain(items: Iterable[object]) -> None:
    """Read what a reader yields to its end, and keep none of it."""
    deque(items, maxlen=0)


def _archives(samples: Path, place: Path) -> Iterable[Reader]:
    tar, text = samples / "text.tar", (samples / "text").read_bytes()
    plain = tar_archives() | damaged(tar.read_bytes())
    yield Reader("tar", place / "a.tar", plain, _read_member)
    for suffix in COMPRESSORS:
        sound = (samples / f"text{suffix}").read_bytes()
        yield Reader(
            f"tar{suffix}",
            place / f"a.tar{suffix}",
            compressed(plain, suffix),
            _read_member,
            0.5,
        )
        inner = damaged(text) | st.just(bytes(1 << 22)) | st.just(b"")
        inputs = compressed(inner, suffix) | damaged(sound)
        path = place / f"a.txt{suffix}"
        yield Reader(f"text{suffix}", path, inputs, lambda p: _drain(read_lines(p)))
    for name in ("text.zip", "text_bzip2.zip", "text_lzma.zip"):
        inputs = zip_archives() | damaged((samples / name).read_bytes())
        yield Reader(name, place / "a.zip", inputs, _read_member)


def _read_member(path: Path) -> None:
    with open_member(path, MEMBER) as stream:
        while stream.read(1 << 16):
            pass


def _texts(samples: Path, place: Path) -> Iterable[Reader]:
    text = samples / "text"
    tags = [
        '<seg id="1">',
        "</seg>",
        '<doc docid="a">',
        "<p>",
        "&amp;",
        "&#xffff;",
        "word",
    ]
    segments = damaged((samples / "test.sgm").read_bytes()) | written(" ", tags)
    yield Reader(
        "sgm",
        place / "a.sgm",
        segments,
        lambda p: _drain(read_segments(read_lines(p), str(p))),
    )

    def corpus(path: Path) -> None:
        outputs = place / "corpus.source", place / "corpus.target"
        extract_corpus(
            RawText([(str(path), str(text))], FilesBelow(place)), output=outputs
        )

    sound = damaged(text.read_bytes())
    yield Reader(
        "text pairs", place / "a.en", sound, lambda p: _drain(read_line_pairs(p, text))
    )
    yield Reader("corpus", place / "b.en", sound, corpus)
    records = json_lines([{"title": "a b", "body": ["c", "d"]}] * 3)
    yield Reader("records", place / "a.jsonl", records, _drain_records)
    columns = damaged((samples / "columns.tsv").read_bytes()) | written(
        "\t", ["title", '"', "x"]
    )
    yield Reader("columns", place / "columns.tsv", columns, _drain_columns)


def _drain_records(path: Path) -> None:
    for field in ("title", "body[1]"):
        _drain(read_field(read_lines(path), field, str(path)))


def _drain_columns(path: Path) -> None:
    _drain(read_columns(read_lines(path), ("title", "body"), str(path)))


_Table = tuple[str, Path, str, list[str], Callable[[Path], object]]
"""Name, sample, separator, words that may stand in it, and the reader."""


def _kinds_of_tables(
    samples: Path, dictionary_of: Callable[[Path], None]
) -> list[_Table]:
    """Return the tables of text that the preparation makes."""
    vocabulary = samples / "task/vocabulary/en.tsv"
    return [
        ("vocabulary", vocabulary, "\t", ["type", "count", "w1", "3"], read_vocabulary),
        (
            "BPE codes",
            samples / "bpe.codes",
            " ",
            ["#version:", "0.2", "l", "o</w>"],
            _split,
        ),
        (
            "links",
            samples / "links",
            " ",
            ["0-0", "1-2", "0--1", "1-"],
            lambda p: [*read_links(p)],
        ),
        (
            "links of a text",
            samples / "links",
            " ",
            ["0-0", "1-2", "0--1", "9-9"],
            dictionary_of,
        ),
        (
            "dictionary",
            samples / "dictionary.tsv",
            "\t",
            ["source", "target"],
            read_dictionary,
        ),
        (
            "candidates",
            samples / "candidates.tsv",
            "\t",
            ["a b"],
            lambda p: [*read_candidates(p)],
        ),
        (
            "truecaser",
            samples / "truecaser.tsv",
            "\t",
            ["word", "count"],
            read_truecaser,
        ),
        (
            "exceptions",
            samples / "exceptions.tsv",
            "\t",
            ["mice", "mouse"],
            read_exceptions,
        ),
        (
            "n-best list",
            samples / "list.nbest",
            " ||| ",
            ["0", "a", "Model= 1", "2"],
            _rerank,
        ),
    ]


def _tables(samples: Path, place: Path) -> Iterable[Reader]:
    """Yield the readers of tables of text that the preparation makes."""
    side = samples / "text"

    def dictionary_of(path: Path) -> None:
        tables = place / "made.dictionary", place / "made.candidates"
        build_dictionary(
            source=side,
            target=side,
            links=path,
            dictionary=tables[0],
            candidates=tables[1],
        )

    for name, sample, separator, words, read in _kinds_of_tables(
        samples, dictionary_of
    ):
        inputs = damaged(sample.read_bytes()) | written(separator, words)
        yield Reader(name, place / f"in.{sample.name}", inputs, read)
    store = (samples / "task/dataset/train.arrow").read_bytes()
    yield Reader("token store", place / "train.arrow", damaged(store), _read_store, 2)
    description = json.loads((samples / "task/dataset/train.json").read_text())
    yield Reader(
        "store's description",
        place / "s.json",
        json_texts(description),
        read_description,
    )
    report = json.loads((samples / "filter.json").read_text())
    yield Reader("filter's report", place / "f.json", json_texts(report), _add_reports)


def _split(path: Path) -> None:
    Bpe(read_codes(path)).split("lower lowest x")


def _rerank(path: Path) -> None:
    for group in every_sentence(read_groups(path)):
        for one in reranked(group, average_with("LogLikelihood")):
            one.line()


def _add_reports(path: Path) -> None:
    added_reports([path, path])


def _read_store(path: Path) -> None:
    store = TokenStore(path)
    for side in SIDES:
        store.lengths(side)
    for source, target in store:
        source.sum(), target.sum()


def _models(samples: Path, place: Path) -> Iterable[Reader]:
    """Yield the readers of weights, which are used where they have been read."""
    model = tensor_files(samples / "run/model.safetensors")
    yield Reader("model file", place / "model.safetensors", model, _translate, 2)
    yield Reader(
        "model's description", place / "card.safetensors", model, _describe, 0.5
    )
    trainer = tiny.trainer(samples / "task", place / "state")
    last = trainer.folder.last
    last.parent.mkdir(parents=True, exist_ok=True)
    restore = trainer._restore
    yield Reader("state", last, tensor_files(samples / "last.safetensors"), restore, 2)
    folder = DATA / "fairseq_random"
    imported = place / "imported.safetensors"

    def import_one(checkpoint: Path, source: Path) -> None:
        files = FairseqFiles(checkpoint, source, folder / "dict.tgt.txt", None)
        languages = {"source": "en", "target": "fr"}
        import_fairseq(
            files, imported, task="a", languages=languages, preparation="moses_test"
        )
        _translate(imported)

    sound = folder / "dict.src.txt"
    yield Reader(
        "fairseq checkpoint",
        place / "model.pt",
        checkpoints(samples / "model.pt"),
        lambda path: import_one(path, sound),
        2,
        # The checkpoint, a dictionary that does not fit, or the model that was made.
        named="",
    )
    types = damaged(sound.read_bytes()) | written(" ", ["a", "1"])
    yield Reader(
        "fairseq dictionary",
        place / "dict.txt",
        types,
        lambda path: import_one(samples / "model.pt", path),
    )


def _translate(path: Path) -> None:
    translator = LineTranslator([path], DecodingSettings(beam=2), "cpu")
    for one in translator.translate(["w1 w2 unheard"]):
        json.dumps(one.as_json())


def _describe(path: Path) -> None:
    describe_model(path)
    model_card(path)


def _records(samples: Path, place: Path) -> Iterable[Reader]:
    """Yield the readers of records in JSON."""
    settings = json.loads((samples / "settings.json").read_text())
    path = place / "settings.json"
    yield Reader("settings.json", path, json_texts(settings), read_training_settings)
    yield Reader(
        "JSON", place / "a.json", json_texts({"a": [1, {"b": "c"}]}), read_json
    )
    rows = [json.loads(line) for line in read_lines(samples / "translations.jsonl")]
    yield Reader(
        "translations", place / "t.jsonl", json_lines(rows), _read_translations
    )
    rows = [json.loads(line) for line in read_lines(samples / "ledger.jsonl")]
    yield Reader("ledger", place / "l.jsonl", ledgers(rows), read_ledger)
    rows = [json.loads(line) for line in read_lines(samples / "run/history.jsonl")]
    record = json.loads((samples / "run/training.json").read_text())
    for name, inputs in (
        ("history.jsonl", json_lines(rows)),
        ("training.json", json_texts(record)),
    ):
        folder = place / f"run of {name}"
        folder.mkdir(exist_ok=True)
        for file in ("history.jsonl", "training.json"):
            shutil.copy(samples / "run" / file, folder)
        yield Reader(name, folder / name, inputs, _read_training)
    identity = {"identity": {"model": "a"}, "lines": 1, "bytes": 4}
    unfinished = place / "o.part.json"
    yield Reader("unfinished output", unfinished, json_texts(identity), _go_on)


def _read_translations(path: Path) -> None:
    for one in read_translations(path):
        " ".join([*one.words, *one.words_before, one.text, one.text_before, one.source])


def _read_training(path: Path) -> None:
    training = read_training("task", "model", "seed1", path.parent)
    training.hours, training.manifest  # noqa: B018


def _go_on(path: Path) -> None:
    output = path.with_name("o")
    path.with_name("o.part").write_text("one\n")
    with growing_output(output, {"model": "a"}) as stream:
        stream.append("two\n", 1)
    output.unlink()


def _configuration(samples: Path, place: Path) -> Iterable[Reader]:
    """Yield a reader for each kind of configuration file."""
    root = place / "root"
    names = ("config.yaml", "config/tasks/demo_en_fr.yaml", "config/models.yaml")
    others = (
        "decodings",
        "paper",
        "claims",
        "phrases",
        "downloads",
        "costs",
        "scales/demo",
    )
    for file in (*names, *(f"config/{name}.yaml" for name in others)):
        sound = (samples / file).read_bytes()
        values: Any = yaml.safe_load(sound)
        dumped = changed(values).map(_as_yaml)
        path = root / file
        read = _loader(samples, root, path)
        # A fault may be told of another file that refers to what is gone.
        yield Reader(file, path, damaged(sound) | dumped, read, 0.2, named=".yaml")


def _as_yaml(value: Any) -> bytes:
    with suppress(yaml.YAMLError, UnicodeError):
        return yaml.safe_dump(value).encode("utf-8")
    return b"\xff"


def _loader(samples: Path, root: Path, path: Path) -> Callable[[Path], object]:
    """Return what loads a configuration of which one file is the input."""

    def read(_: Path) -> None:
        for stale in root.rglob("*.yaml"):
            if stale != path:
                stale.unlink()
        of_options = path.name == "config.yaml"
        given, by = (None, None) if of_options else ({"scale": "demo"}, "config.yaml")
        load(root, given, given_by=by, shipped=samples).model_references()

    return read
