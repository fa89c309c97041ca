"""The commands that write, as ``calls`` runs each of them in a forked process."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from convs2s.cli.main import commands_below
from convs2s.config.corpus import Languages, VocabularySettings
from convs2s.config.decoding import DecodingSettings
from convs2s.config.task import DatasetMetadata
from convs2s.data.corpus import RawText, extract_corpus, split_training_text
from convs2s.data.dataset import binarize, learn_bpe
from convs2s.data.word_counts import count_words
from convs2s.decoding.test_sets import decode_test_set
from convs2s.decoding.translate import LineTranslator
from convs2s.pipeline.job import job
from convs2s.scoring.evaluation import evaluate_bleu
from convs2s.text.align import align_words
from convs2s.text.corpus_filter import tokenize_and_filter
from convs2s.text.dictionary import build_dictionary
from convs2s.text.truecase import learn_truecaser
from tests.faults.campaign.commands import COMMANDS, Command, Place, perform_command
from tests.faults.campaign.samples import LINES, TABLES, stand_in
from tests.support.hub import REPOSITORY
from tests.support.local_files import FilesBelow
from tests.support.tiny import build_word_vocabulary

TASK = Path("results/tiny")
TEXT = (TASK / "train.en", TASK / "train.fr")
VOCABULARIES = (TASK / "vocabulary/en.tsv", TASK / "vocabulary/fr.tsv")
RUN = TASK / "models/small/seed1"
Files = list[Path]


def _job(outputs: str, work: Callable[[Files], object]) -> Command:
    """Return the job of a rule that makes files in ``made``."""
    paths = [Path("made", name) for name in outputs.split()]

    def perform(_: Place) -> None:
        with job(stand_in(Path("logs", paths[0].name), [], paths)):
            work(paths)

    return Command(perform)


def _extract(made: Files) -> None:
    text = RawText([(str(TEXT[0]), str(TEXT[1]))], FilesBelow(Path()))
    extract_corpus(text, (made[0], made[1]))


def _split(made: Files) -> None:
    text = RawText([(str(TEXT[0]), str(TEXT[1]))], FilesBelow(Path()))
    split_training_text(text, parts=[(made[0], made[1]), (made[2], made[3])])


def _filter(made: Files) -> None:
    tokenize_and_filter(
        ((line, line) for line in LINES),
        sides=(made[0], made[1]),
        report=made[2],
        minimum=1,
        maximum=8,
        ratio=None,
    )


def _binarize(made: Files) -> None:
    binarize(
        text=TEXT,
        bpe_codes=(),
        vocabularies=VOCABULARIES,
        store=made[0],
        description=made[1],
        metadata=DatasetMetadata(
            task="tiny",
            languages=Languages(source="en", target="fr"),
            preparation="moses_test",
            vocabulary=VocabularySettings(kind="word"),
        ),
    )


def _dictionary(made: Files) -> None:
    build_dictionary(
        source="lines.en",
        target="lines.en",
        links="links",
        dictionary=made[0],
        candidates=made[1],
    )


def _decode(made: Files) -> None:
    settings = DecodingSettings(beam=2)
    translator = LineTranslator([RUN / "model.safetensors"], settings, "cpu")
    decode_test_set(translator, source=Path("text.en"), lines=made[0], text=made[1])


def _evaluate(made: Files) -> None:
    evaluate_bleu(
        translations=RUN / "test.beam5.jsonl",
        raw=TASK / "corpus/raw/test.target.zst",
        tokenized=TASK / "corpus/tok/test.target.zst",
        output=made[0],
        test_set="test",
        manifest={},
    )


MODEL = "{models}/seed1/model.safetensors"
TYPED = {
    "translate": COMMANDS["translate"],
    "translate --json": Command(
        f"translate {MODEL} --input text.en --output out/text.jsonl.gz --json "
        "--device cpu --threads 1 --quiet"
    ),
    "translate-document": Command(
        f"translate-document {MODEL} --input page.html --output out/page.html "
        "--device cpu --threads 1 --quiet"
    ),
    "train": Command(f"{COMMANDS['train'].perform} --products blas"),
    "score rouge": COMMANDS["score"],
    "import fairseq": COMMANDS["import"],
    "mirror": COMMANDS["mirror"],
    "card": COMMANDS["card"],
    "export hub": Command(
        f"export hub {MODEL} out/hub --license mit", refusal="exists already"
    ),
    "export onnx": Command(f"export onnx {MODEL} out/onnx", refusal="exists already"),
    "pull": Command(f"pull {REPOSITORY} out/pulled", refusal="exists already"),
    "export-results zip": COMMANDS["export"],
    "export-results folder": Command(
        "export-results {task} out/exported", refusal="exists already"
    ),
    "results": COMMANDS["results"],
    "remove-states": COMMANDS["remove-states"],
    "new-task": Command(
        "new-task pairs.tsv --languages en fr --name mine", refusal="exists already"
    ),
    "tokenize": Command("tokenize --language en"),
    "detokenize": Command("detokenize --language en"),
}
"""Commands of ``convs2s``; the name begins with the words of the command."""

JOBS = {
    "download": COMMANDS["download"],
    "download known": COMMANDS["download known"],
    "published": COMMANDS["published"],
    "ledger": COMMANDS["ledger"],
    "extract_corpus": _job("a.zst b.zst", _extract),
    "split_training_text": _job("a1.zst b1.zst a2.zst b2.zst", _split),
    "tokenize_and_filter": _job("a.zst b.zst filter.json", _filter),
    "count_words": _job(
        "w.tsv", lambda made: count_words(text=TEXT[0], output=made[0])
    ),
    "build_vocabulary": _job(
        "v.tsv", lambda made: build_word_vocabulary(TASK / "words.tsv", made[0])
    ),
    "learn_bpe": _job(
        "codes.txt",
        lambda made: learn_bpe(words=[TASK / "words.tsv"], output=made[0], merges=9),
    ),
    "binarize": _job("train.arrow train.json", _binarize),
    "align_words": _job(
        "links.zst",
        lambda made: align_words(
            source=TEXT[0], target=TEXT[1], links=made[0], pairs=None
        ),
    ),
    "build_dictionary": _job("dictionary.tsv candidates.tsv", _dictionary),
    "learn_truecaser": _job(
        "truecaser.tsv",
        lambda made: learn_truecaser(text=Path("lines.en"), output=made[0]),
    ),
    "decode_test_set": _job("test.jsonl test.txt", _decode),
    "evaluate_bleu": _job("bleu.json", _evaluate),
}
"""Jobs of rules and of the plan."""

WRITING = TYPED | JOBS

REPLACES = {"translate", "translate --json", "translate-document", "score rouge"}
REPLACES |= {"import fairseq", "mirror"}
REPLACES |= {"results", *JOBS.keys() - {"download", "download known", "published"}}
"""What writes its outputs anew where there are older ones."""

TAKES_WHAT_IS_THERE = {"published"}
"""What does not write again, nor look for what was left, where its output is there."""

PRINTS = "only prints, in the way of `card` and `tokenize`, which are tried"
LEFT_OUT = {
    "serve": "writes no file; tests/faults/test_server_requests.py tries its streams",
    "get": "downloads and converts as `download` and `import fairseq` do, which are tried",
    "push": "writes to the Hub alone, in one commit",
    "kernels": "measures for seconds; what it keeps is written as `results` writes",
    **dict.fromkeys(
        (
            "status",
            "verify",
            "config",
            "completion",
            "attention",
            "compare-outputs",
            "score bleu",
            "score compare",
            "score oracle",
            "score-pairs",
            "rerank",
        ),
        PRINTS,
    ),
}
"""Command of ``convs2s`` that is not tried -> the reason."""


def typed_commands(parser: ArgumentParser, words: str = "") -> Iterator[str]:
    """Yield the words of each command of a parser that runs something."""
    below = commands_below(parser)
    if not below:
        yield words.strip()
    for name, command in below.items():
        yield from typed_commands(command, f"{words} {name}")


def add_further_inputs(folder: Path) -> None:
    """Write what the jobs read beside what the commands of ``pairs`` do."""
    for name in ("made", "logs", "downloads"):
        (folder / name).mkdir()
    (folder / "page.html").write_text("<p>w1 w2</p>\n<p>w3 <b>w4</b></p>\n")
    (folder / "lines.en").write_text("".join(f"{line}\n" for line in LINES))
    pairs = [f"one {number}\tun {number}\n" for number in range(200)]
    (folder / "pairs.tsv").write_text("".join(pairs))
    (folder / "links").write_text("".join(f"{line}\n" for line in TABLES["links"]))


def perform_when_told(
    connection: Connection, name: str, place: Place, said: Path
) -> None:
    """Say that this process is ready, and run a command as soon as something is received."""
    sys.stdin = (place.folder / "text.en").open()
    connection.send(None)
    connection.recv()
    perform_command(WRITING[name], place, said)
