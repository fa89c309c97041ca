"""The commands and jobs that ``pairs`` and ``calls`` run; a forked process has all of it loaded."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from convs2s.cli.main import main
from convs2s.config.corpus import Languages, VocabularySettings
from convs2s.config.decoding import DecodingSettings
from convs2s.config.load import load
from convs2s.config.options import Options
from convs2s.config.settings import Settings
from convs2s.config.task import DatasetMetadata
from convs2s.data.corpus import RawText, extract_corpus, split_training_text
from convs2s.data.dataset import binarize, learn_bpe
from convs2s.data.word_counts import count_words
from convs2s.decoding.test_sets import decode_test_set
from convs2s.decoding.translate import LineTranslator
from convs2s.download.download import download_file
from convs2s.errors import UserError, failures_of_system
from convs2s.paper.cells import cells
from convs2s.paper.ledger import published_file, read_ledger
from convs2s.paper.results import write_ledger
from convs2s.pipeline.job import job
from convs2s.scoring.evaluation import evaluate_bleu
from convs2s.text.align import align_words
from convs2s.text.corpus_filter import tokenize_and_filter
from convs2s.text.dictionary import build_dictionary
from convs2s.text.truecase import learn_truecaser
from tests.faults.campaign.samples import LINES, stand_in
from tests.faults.downloads import OTHER
from tests.faults.hub import REPOSITORY
from tests.support.archives import FilesBelow
from tests.support.refusals import rows
from tests.support.tiny import build_word_vocabulary

LATE = [
    "convs2s.interop.fairseq",
    "convs2s.mirror.write",
    "convs2s.paper.results_page",
    "convs2s.publish.results",
]
"""What the commands import when they begin."""

TABLE = "table4"
TASK = Path("results/tiny")
TEXT = (TASK / "train.en", TASK / "train.fr")
RUN = TASK / "models/small/seed1"
MODEL = RUN / "model.safetensors"
CPU = "--device cpu --threads 1 --quiet"
IMPORT = (
    "import fairseq fairseq/checkpoint_tiny_oldstyle.pt --languages en fr "
    "--source-dictionary fairseq/dict.src.txt --target-dictionary fairseq/dict.tgt.txt "
    "--output out/imported.safetensors"
)
SECOND = RUN.with_name("seed2")
TRAIN = (
    f"train {TASK} --settings {TASK}/models/small/settings.json --seed 2 --workers 0 "
    f"--output {SECOND}/model.safetensors {CPU}"
)


def url(path: str) -> str:
    """Return the URL of a file of the server: ``corpus.en``, ``known.en`` or ``runs.jsonl``."""
    return f"{os.environ['SERVER']}/{path}"


def _do(name: str) -> None:
    """Do a job, which makes the files that are given to it, or what the plan does."""
    made = {key: Path(path) for one, key, path in rows(OUTPUTS) if one == name}
    if not made:
        JOBS[name]()
        return
    first, *_ = made.values()
    with job(stand_in(f"logs/{first.name}", [], [*made.values()])):
        JOBS[name](**made)


def _fetch_published() -> None:
    """Do what a plan does with a published ledger."""
    file = published_file(Options(published=url("runs.jsonl")), Path("published"))
    assert file is not None
    read_ledger(file)


def scored_cells() -> tuple[Settings, list[str]]:
    """Return settings of which the ledger and a table are made, and the scores that are there."""
    settings = load(Path.cwd(), {"scale": "demo"})
    paths = {path for cell in cells(settings, TABLE) for path in cell.paths}
    return settings, sorted(path for path in paths if Path(path).is_file())


def _write_ledger(output: Path) -> None:
    settings, scores = scored_cells()
    shown = cells(settings, TABLE)
    write_ledger(settings, cells=shown, scores=scores, published=None, output=output)


def _decode(lines: Path, text: Path) -> None:
    settings = DecodingSettings(beam=2)
    translator = LineTranslator([MODEL], settings, "cpu")
    decode_test_set(translator, source=Path("text.en"), lines=lines, text=text)


TYPED = dict(
    rows(f"""
translate => translate {MODEL} --input text.en --output out/text.fr --batch-sentences 4 {CPU}
translate --json => translate {MODEL} --input text.en --output out/text.jsonl.gz --json {CPU}
translate-document => translate-document {MODEL} --input page.html --output out/page.html {CPU}
train => {TRAIN}
train --products => {TRAIN} --products blas
score rouge => score rouge --reference text.en --items out/items.tsv text.en
import fairseq => {IMPORT}
mirror => mirror out/mirror
card => card {MODEL}
status => status results --json
export hub => export hub {MODEL} out/hub --license mit
export onnx => export onnx {MODEL} out/onnx
pull => pull {REPOSITORY} out/pulled
export-results zip => export-results {TASK} out/exported.zip
export-results folder => export-results {TASK} out/exported
results => results runs.jsonl --scale multi30k --output out/page.md
remove-states => remove-states results --yes
new-task => new-task pairs.tsv --languages en fr --name mine
tokenize => tokenize --language en
detokenize => detokenize --language en
""")
)
"""Commands of ``convs2s``; the name begins with the words of the command.

Seed 1 is a run that has ended, seed 2 has not begun.
"""

RAW_TEXT = RawText([(str(TEXT[0]), str(TEXT[1]))], FilesBelow(Path()))
METADATA = DatasetMetadata(
    task="tiny",
    languages=Languages(source="en", target="fr"),
    preparation="moses_test",
    vocabulary=VocabularySettings(kind="word"),
)
JOBS: dict[str, Callable[..., object]] = {
    "download": lambda output: download_file(url("corpus.en"), output),
    "download known": lambda output: download_file(
        url("known.en"), output, sha256=sha256(OTHER).hexdigest()
    ),
    "published": _fetch_published,
    "ledger": _write_ledger,
    "extract_corpus": lambda a, b: extract_corpus(RAW_TEXT, (a, b)),
    "split_training_text": lambda a, b, c, d: split_training_text(
        RAW_TEXT, parts=[(a, b), (c, d)]
    ),
    "tokenize_and_filter": lambda a, b, report: tokenize_and_filter(
        [(line, line) for line in LINES],
        sides=(a, b),
        report=report,
        minimum=1,
        maximum=8,
        ratio=None,
    ),
    "count_words": partial(count_words, text=TEXT[0]),
    "build_vocabulary": partial(build_word_vocabulary, words=TASK / "words.tsv"),
    "learn_bpe": partial(learn_bpe, words=[TASK / "words.tsv"], merges=9),
    "binarize": partial(
        binarize,
        text=TEXT,
        bpe_codes=(),
        vocabularies=(TASK / "vocabulary/en.tsv", TASK / "vocabulary/fr.tsv"),
        metadata=METADATA,
    ),
    "align_words": partial(align_words, source=TEXT[0], target=TEXT[1], pairs=None),
    "build_dictionary": partial(
        build_dictionary, source="text.en", target="text.en", links="links"
    ),
    "learn_truecaser": partial(learn_truecaser, text=Path("text.en")),
    "decode_test_set": _decode,
    "evaluate_bleu": partial(
        evaluate_bleu,
        translations=RUN / "test.beam5.jsonl",
        raw=TASK / "corpus/raw/test.target.zst",
        tokenized=TASK / "corpus/tok/test.target.zst",
        test_set="test",
        manifest={},
    ),
}
"""Jobs of rules, and ``published``, which is a step of the plan."""

OUTPUTS = """
download => output => downloads/corpus.en
download known => output => downloads/known.en
ledger => output => paper/ledger.jsonl
extract_corpus => a => made/a.zst
extract_corpus => b => made/b.zst
split_training_text => a => made/a1.zst
split_training_text => b => made/b1.zst
split_training_text => c => made/a2.zst
split_training_text => d => made/b2.zst
tokenize_and_filter => a => made/a.zst
tokenize_and_filter => b => made/b.zst
tokenize_and_filter => report => made/filter.json
count_words => output => made/w.tsv
build_vocabulary => table => made/v.tsv
learn_bpe => output => made/codes.txt
binarize => store => made/train.arrow
binarize => description => made/train.json
align_words => links => made/links.zst
build_dictionary => dictionary => made/dictionary.tsv
build_dictionary => candidates => made/candidates.tsv
learn_truecaser => output => made/truecaser.tsv
decode_test_set => lines => made/test.jsonl
decode_test_set => text => made/test.txt
evaluate_bleu => output => made/bleu.json
"""
"""What each job makes, by the names that it knows its outputs by."""

REFUSAL = "exists already"
REFUSED = {"export hub", "export onnx", "pull", "new-task"}
REFUSED |= {"export-results zip", "export-results folder"}
"""What may say so in place of doing its work again."""


def perform(connection: Connection, name: str, folder: Path, said: Path) -> None:
    """Run a command in a folder as soon as this process is told to.

    Its streams go to ``said`` with .out and .err.
    """
    for number, suffix in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{said}.{suffix}", os.O_WRONLY | os.O_CREAT, 0o644), number)
    os.chdir(folder)
    os.environ["SERVER"] = Path("server").read_text()
    sys.stdin = (folder / "text.en").open()
    torch.set_num_threads(1)
    connection.send(None)
    connection.recv()
    try:
        if name in JOBS:
            with failures_of_system():
                _do(name)
        else:
            main(TYPED[name].split())
    except UserError as error:  # of what is no command of `convs2s`
        sys.exit(f"error: {error}")
    finally:
        with suppress(OSError):
            sys.stdout.flush()
