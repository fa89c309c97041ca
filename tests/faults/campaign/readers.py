"""Every reader of the package, with the file that it is given."""

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
from convs2s.files.text import read_line_pairs, read_lines
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
from convs2s.training.history import read_history
from tests.faults.campaign.damage import CHANGES, Draw, damaged, rewritten
from tests.faults.campaign.samples import MEMBER, RUN, TASK, make_samples, stand_in
from tests.support import tiny
from tests.support.archives import COMPRESS, FilesBelow
from tests.support.golden import DATA

DICTIONARIES = DATA / "fairseq_random"
CONFIGURATION = """config.yaml config/tasks/demo_en_fr.yaml config/models.yaml
config/decodings.yaml config/paper.yaml config/claims.yaml config/phrases.yaml
config/downloads.yaml config/costs.yaml config/scales/demo.yaml"""

Read = Callable[[Path], object]
"""Reads a file, and uses what it has read as the package does."""


class Reader(NamedTuple):
    """What reads a kind of file.

    Attributes:
        path: the file, below the folder of samples.
        read: reads it; returns what tells whether it has read the same.
        is_guarded: whether a flipped bit is noticed, or changes nothing that is read.
        named: what a message must hold; None: the file's name without its suffix.
    """

    path: Path
    read: Read
    is_guarded: bool = False
    named: str | None = None

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"

    def change(self, content: bytes, draw: Draw) -> bytes:
        """Change what the format holds; of a compressed file, what is within it."""
        suffix = self.path.suffix
        if suffix in COMPRESS:
            plain = self.path.with_suffix("").read_bytes()
            packed = COMPRESS[suffix](damaged(plain, draw))
            return packed * draw.choice((1, 1, 1, 2))
        return CHANGES.get(suffix, rewritten)(content, draw)

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
    for kind, read in READERS.items():
        yield Reader(folder / FILES.get(kind, kind), read)
    for name, read in _guarded_files(folder):
        yield Reader(folder / name, read, is_guarded=True)
    # A job ends the process, and says it in its log. Of an import, a message may name the
    # checkpoint, a dictionary that does not fit, or the model that was made.
    for name, read in (
        ("words", _read_in_a_job),
        ("scores", _read_in_a_job),
        ("model.pt", lambda path: _import(path, DICTIONARIES / "dict.src.txt")),
    ):
        yield Reader(folder / name, read, is_guarded=True, named="")
    for name in CONFIGURATION.split():
        # A fault may be told of another file that refers to what is gone.
        yield Reader(folder / "root" / name, _load, named=".yaml")


def _guarded_files(folder: Path) -> Iterator[tuple[str | Path, Read]]:
    trainer = tiny.trainer(folder / TASK, folder / "state")
    last = trainer.folder.last
    state = next(folder.glob(f"{RUN}/state/*/last.safetensors"))
    weights, fields = load_tensors(state)
    save_tensors(last, weights, fields | {"training": last.parent.name})

    def restore(path: Path) -> object:
        trainer._restore(path)
        return load_tensors(path)

    yield last, restore
    yield state.with_name("best.safetensors"), load_tensors
    yield f"{RUN}/model.safetensors", _translate
    for name in ("dataset/train.arrow", "dataset/valid.arrow", "dataset/valid.json"):
        yield f"{TASK}/{name}", _task
    yield f"{TASK}/vocabulary/fr.tsv", _task
    yield "deflated.zip", _member
    yield "bzip2.zip", _member
    yield "lzma.zip", _corpus
    for suffix in COMPRESS:
        yield f"text.tar{suffix}", _corpus
        yield f"text{suffix}", read_lines


def _member(path: Path) -> object:
    with open_member(path, MEMBER) as stream:
        return stream.read()


def _corpus(path: Path) -> object:
    outputs = path.with_name("corpus.source"), path.with_name("corpus.target")
    files = [(f"{path}#{MEMBER}", str(path.with_name("links")))]
    extract_corpus(RawText(files, FilesBelow(path.parent)), output=outputs)
    return read_lines(outputs[0])


def _fields(path: Path) -> object:
    fields = ("title", "body[1]")
    return [list(read_field(read_lines(path), field, str(path))) for field in fields]


def _pairs(path: Path) -> object:
    return read_files([str(path)], Reading(Languages(source="en", target="fr")))


def _dictionary(links: Path) -> None:
    build_dictionary(
        source=links.with_name("text"),
        target=links.with_name("text"),
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
    files = FairseqFiles(checkpoint, source, DICTIONARIES / "dict.tgt.txt", None)
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


READERS: dict[str, Read] = {
    "text.tar": _member,
    "text": lambda path: read_line_pairs(path, path.with_name("links")),
    "segments": lambda path: list(read_segments(read_lines(path), str(path))),
    "records.jsonl": _fields,
    "pairs.tsv": _pairs,
    "pairs.csv": _pairs,
    "pairs.jsonl": _pairs,
    "pairs.tmx": _pairs,
    "pairs.xml": _pairs,
    "columns": lambda path: read_columns(
        read_lines(path), ("title", "body"), str(path)
    ),
    "vocabulary": read_vocabulary,
    "codes": lambda path: Bpe(read_codes(path)).split("lower lowest x"),
    "links": lambda path: list(read_links(path)),
    "alignment": _dictionary,
    "dictionary": read_dictionary,
    "candidates": lambda path: list(read_candidates(path)),
    "truecaser": read_truecaser,
    "exceptions": read_exceptions,
    "n-best": _rerank,
    "report.json": lambda path: added_reports([path, path]),
    "settings": read_training_settings,
    "translations": read_translations,
    "ledger.jsonl": read_ledger,
    "training": _training,
    "history": read_history,
    "unfinished.part.json": _go_on,
    "dict.txt": lambda path: _import(path.with_name("model.pt"), path),
    "store": _store,
    "description": read_description,
}
"""Kind of file -> what reads it; of most, the sample has that name."""

FILES = {
    "vocabulary": f"{TASK}/vocabulary/en.tsv",
    "settings": f"{TASK}/models/small/settings.json",
    "translations": f"{RUN}/test.beam5.jsonl",
    "training": f"{RUN}/training.json",
    "history": f"{RUN}/history.jsonl",
    "store": f"{TASK}/dataset/train.arrow",
    "description": f"{TASK}/dataset/train.json",
}
"""The samples of the others."""
