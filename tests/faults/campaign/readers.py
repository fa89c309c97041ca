"""Every reader of the package, with the file that it is given and how that is changed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from convs2s.cli.n_best import read_groups
from convs2s.config.corpus import Languages
from convs2s.config.decoding import DecodingSettings
from convs2s.config.identity import read_training_settings
from convs2s.config.load import load
from convs2s.data.corpus import RawText, extract_corpus
from convs2s.data.dataset import read_description
from convs2s.data.formats import read_columns, read_field, read_segments
from convs2s.data.pair_files import Reading, read_files
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import read_vocabulary
from convs2s.decoding.long_files import growing_output
from convs2s.decoding.translate import LineTranslator
from convs2s.download.archives import open_member
from convs2s.errors import UserError
from convs2s.files.tensors import load_tensors, save_tensors
from convs2s.files.text import read_json, read_line_pairs, read_lines
from convs2s.interop.fairseq import FairseqFiles, import_fairseq
from convs2s.model_file import describe_model, load_model
from convs2s.paper.ledger import read_ledger
from convs2s.paper.trained import read_training
from convs2s.pipeline.job import job
from convs2s.publish.card import model_card
from convs2s.scoring.n_best import average_with, every_sentence, reranked
from convs2s.scoring.rouge_stem import read_exceptions
from convs2s.scoring.translations import read_translations
from convs2s.text.bpe import Bpe, read_codes
from convs2s.text.corpus_filter import added_reports
from convs2s.text.dictionary import build_dictionary, read_candidates, read_dictionary
from convs2s.text.links import read_links
from convs2s.text.truecase import read_truecaser
from convs2s.training.data import TrainingData
from tests.faults.campaign.damage import Change, changed_json, changed_lines, damaged
from tests.faults.campaign.damage import rewritten as words
from tests.faults.campaign.formats import MEMBER, changed_yaml, odd_tensors, repacked
from tests.faults.campaign.samples import RUN, TASK, make_samples, stand_in
from tests.support import tiny
from tests.support.archives import COMPRESS, FilesBelow
from tests.support.golden import DATA

SETTINGS = f"{TASK}/models/small/settings.json"
CONFIGURATION = """config.yaml config/tasks/demo_en_fr.yaml config/models.yaml
config/decodings.yaml config/paper.yaml config/claims.yaml config/phrases.yaml
config/downloads.yaml config/costs.yaml config/scales/demo.yaml"""

Read = Callable[[Path], object]
"""Reads a file, and uses what it has read as the package does."""

Row = tuple[str | Path, Read, Change]


class Reader(NamedTuple):
    """What reads a kind of file.

    Attributes:
        path: the file, below the folder of samples.
        read: reads it; returns what tells whether it has read the same.
        change: changes what the format holds.
        is_guarded: whether a flipped bit is noticed, or changes nothing that is read.
        named: what a message must hold; None: the file's name without its suffix.
    """

    path: Path
    read: Read
    change: Change
    is_guarded: bool = False
    named: str | None = None

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"

    def outcome(self) -> tuple[str | None, str]:
        """Read the file; return its message where it was refused, and what was read.

        Raises:
            AssertionError: the message is not one printable line that names the file.
        """
        try:
            return None, json.dumps(self.read(self.path), default=_plain)
        except (UserError, SystemExit) as error:  # the latter of a job
            message = str(error)
        named = self.path.stem if self.named is None else self.named
        assert message.isprintable(), f"not one line: {message}"
        assert named in message, f"does not name the file: {message}"
        return message, ""


def _plain(value: Any) -> object:
    """Return what JSON can hold of a value, all of it."""
    if isinstance(value, Iterator):
        return list(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)


def readers(folder: Path) -> Iterator[Reader]:
    """Write the samples into a folder; yield every reader of files."""
    make_samples(folder)
    for name, read, change in _files(folder):
        yield Reader(folder / name, read, change)
    for name, read, change in _guarded_files(folder):
        yield Reader(folder / name, read, change, is_guarded=True)
    # A job ends the process, and says it in its log. Of an import, a message may name the
    # checkpoint, a dictionary that does not fit, or the model that was made.
    sound = DATA / "fairseq_random/dict.src.txt"
    for name, read, change in (
        ("words", _read_in_a_job, words),
        ("scores", _read_in_a_job, words),
        ("model.pt", lambda path: _import(path, sound), damaged),
    ):
        yield Reader(folder / name, read, change, is_guarded=True, named="")
    for name in CONFIGURATION.split():
        # A fault may be told of another file that refers to what is gone.
        yield Reader(folder / "root" / name, _load, changed_yaml, named=".yaml")


def _files(folder: Path) -> list[Row]:
    text = folder / "text"
    return [
        ("text.tar", _member, damaged),
        ("text", lambda path: read_line_pairs(path, folder / "links"), words),
        ("sgm", lambda path: read_segments(read_lines(path), str(path)), words),
        ("records", _fields, changed_lines),
        ("pairs.tsv", _pairs, words),
        ("pairs.csv", _pairs, words),
        ("pairs.jsonl", _pairs, changed_lines),
        ("pairs.tmx", _pairs, words),
        ("pairs.xml", _pairs, words),
        (
            "columns",
            lambda path: read_columns(read_lines(path), ("title", "body"), str(path)),
            words,
        ),
        (f"{TASK}/vocabulary/en.tsv", lambda path: read_vocabulary(path).tokens, words),
        ("codes", lambda path: Bpe(read_codes(path)).split("lower lowest x"), words),
        ("links", read_links, words),
        ("links", lambda path: _dictionary(text, path), words),
        ("dictionary", read_dictionary, words),
        ("candidates", read_candidates, words),
        ("truecaser", read_truecaser, words),
        ("exceptions", read_exceptions, words),
        ("list", _rerank, words),
        ("filter", lambda path: added_reports([path, path]), changed_json),
        (SETTINGS, read_training_settings, changed_json),
        (SETTINGS, read_json, changed_json),
        (f"{RUN}/test.beam5.jsonl", read_translations, changed_lines),
        ("ledger", read_ledger, changed_lines),
        (f"{RUN}/training.json", _training, changed_json),
        (f"{RUN}/history.jsonl", _training, changed_lines),
        ("unfinished.part.json", _go_on, changed_json),
        ("dict.txt", lambda path: _import(folder / "model.pt", path), words),
        (f"{TASK}/dataset/train.arrow", _store, damaged),
        (f"{TASK}/dataset/train.json", read_description, changed_json),
    ]


def _guarded_files(folder: Path) -> list[Row]:
    trainer = tiny.trainer(folder / TASK, folder / "state")
    last = trainer.folder.last
    state = next(folder.glob(f"{RUN}/state/*/last.safetensors"))
    weights, fields = load_tensors(state)
    save_tensors(last, weights, fields | {"training": last.parent.name})

    def restore(path: Path) -> object:
        found = load_tensors(path)
        trainer._restore(path)
        return found

    def corpus(path: Path) -> object:
        outputs = folder / "corpus.source", folder / "corpus.target"
        files = [(f"{path}#{MEMBER}", str(folder / "links"))]
        extract_corpus(RawText(files, FilesBelow(folder)), output=outputs)
        return read_lines(outputs[0])

    found: list[Row] = [
        ("deflated.zip", _member, damaged),
        ("bzip2.zip", _member, damaged),
        ("lzma.zip", corpus, damaged),
        (last, restore, odd_tensors),
        (state.with_name("best.safetensors"), load_tensors, odd_tensors),
        (f"{RUN}/model.safetensors", _translate, odd_tensors),
        (f"{TASK}/dataset/train.arrow", _task, damaged),
        (f"{TASK}/dataset/valid.arrow", _task, damaged),
        (f"{TASK}/vocabulary/fr.tsv", _task, words),
        (f"{TASK}/dataset/valid.json", _task, changed_json),
    ]
    for suffix in COMPRESS:
        change = repacked(suffix, (folder / "text.tar").read_bytes())
        found.append((f"text.tar{suffix}", corpus, change))
        change = repacked(suffix, (folder / "text").read_bytes())
        found.append((f"text{suffix}", read_lines, change))
    return found


def _member(path: Path) -> object:
    with open_member(path, MEMBER) as stream:
        return stream.read()


def _fields(path: Path) -> object:
    fields = ("title", "body[1]")
    return [list(read_field(read_lines(path), field, str(path))) for field in fields]


def _pairs(path: Path) -> object:
    return read_files([str(path)], Reading(Languages(source="en", target="fr")))


def _dictionary(text: Path, links: Path) -> None:
    build_dictionary(
        source=text,
        target=text,
        links=links,
        dictionary=links.with_name("made.dictionary"),
        candidates=links.with_name("made.candidates"),
    )


def _rerank(path: Path) -> object:
    groups = every_sentence(read_groups(path))
    average = average_with("LogLikelihood")
    return [one.line() for group in groups for one in reranked(group, average)]


def _store(path: Path) -> object:
    store = TokenStore(path)
    store.lengths("source")
    return iter(store)


def _task(path: Path) -> object:
    folder = path.parents[1]
    data = TrainingData.read(folder)
    data.check_checksums()
    stores = [_store(folder / f"dataset/{split}.arrow") for split in ("train", "valid")]
    return stores, data.types, data.checksums


def _translate(path: Path) -> object:
    describe_model(path)
    model_card(path)
    translator = LineTranslator([path], DecodingSettings(beam=2), "cpu")
    found = [one.as_json() for one in translator.translate(["w1 w2 unheard"])]
    return found, load_model(path)[0].state_dict()


def _import(checkpoint: Path, source: Path) -> object:
    target = DATA / "fairseq_random/dict.tgt.txt"
    files = FairseqFiles(checkpoint, source, target, None)
    output = checkpoint.with_name("imported")
    import_fairseq(files, output, task="a", languages=None, preparation="moses_test")
    return _translate(output)


def _training(path: Path) -> object:
    training = read_training("task", "model", "seed1", path.parent)
    return training.hours, training.manifest


def _read_in_a_job(path: Path) -> object:
    with job(stand_in(f"{path}.log", [path], [])):
        return list(read_lines(path))


def _go_on(path: Path) -> None:
    output = path.with_name("unfinished")
    path.with_name("unfinished.part").write_text("one\n")
    with growing_output(output, {"model": "a"}) as stream:
        stream.append("two\n", 1)
    output.unlink()


def _load(path: Path) -> object:
    """Load the configuration of a checkout with a file of the user's."""
    root = next(folder for folder in path.parents if folder.name == "root")
    if path.parent == root:
        return load(root).model_references()
    return load(root, {"scale": "demo"}, given_by="config.yaml").model_references()
