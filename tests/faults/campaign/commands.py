"""The commands and jobs that ``pairs`` and ``calls`` run; a forked process has all of it loaded."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
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
from tests.support.local_files import FilesBelow
from tests.support.tiny import build_word_vocabulary

# What the commands import when they begin.
for late in (
    "interop.fairseq",
    "mirror.write",
    "paper.results_page",
    "publish.results",
):
    import_module(f"convs2s.{late}")

TABLE = "table4"
TASK = Path("results/tiny")
TEXT = (TASK / "train.en", TASK / "train.fr")
RUN = TASK / "models/small/seed1"
CPU = "--device cpu --threads 1 --quiet"
IMPORT = (
    "import fairseq fairseq/checkpoint_tiny_oldstyle.pt --languages en fr "
    "--source-dictionary fairseq/dict.src.txt --target-dictionary fairseq/dict.tgt.txt "
    "--output out/imported.safetensors"
)
TRAIN = (
    "train {task} --settings {models}/settings.json --seed 2 --workers 0 "
    f"--output {{second}} {CPU}"
)
PAIRS = "new-task pairs.tsv --languages en fr --name mine"

Perform = Callable[[], object]
"""Does something in the current folder, as a process of its own."""


def url(path: str) -> str:
    """Return the URL of a file of the server: ``corpus.en``, ``known.en`` or ``runs.jsonl``."""
    return f"{os.environ['SERVER']}/{path}"


def _job(outputs: str, work: Callable[..., object]) -> Perform:
    """Return the job of a rule: ``work`` makes the files that are given to it."""
    paths = [Path(name) for name in outputs.split()]

    def perform() -> None:
        with job(stand_in(Path("logs", paths[0].name), [], paths)):
            work(*paths)

    return perform


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


def _raw_text() -> RawText:
    return RawText([(str(TEXT[0]), str(TEXT[1]))], FilesBelow(Path()))


def _filter(source: Path, target: Path, report: Path) -> None:
    tokenize_and_filter(
        ((line, line) for line in LINES),
        sides=(source, target),
        report=report,
        minimum=1,
        maximum=8,
        ratio=None,
    )


def _binarize(store: Path, description: Path) -> None:
    metadata = DatasetMetadata(
        task="tiny",
        languages=Languages(source="en", target="fr"),
        preparation="moses_test",
        vocabulary=VocabularySettings(kind="word"),
    )
    binarize(
        text=TEXT,
        bpe_codes=(),
        vocabularies=(TASK / "vocabulary/en.tsv", TASK / "vocabulary/fr.tsv"),
        store=store,
        description=description,
        metadata=metadata,
    )


def _decode(lines: Path, text: Path) -> None:
    settings = DecodingSettings(beam=2)
    translator = LineTranslator([RUN / "model.safetensors"], settings, "cpu")
    decode_test_set(translator, source=Path("text.en"), lines=lines, text=text)


TYPED = {
    "translate": (
        "translate {first} --input text.en --output out/text.fr --batch-sentences 4 "
        f"{CPU}"
    ),
    "translate --json": (
        f"translate {{first}} --input text.en --output out/text.jsonl.gz --json {CPU}"
    ),
    "translate-document": (
        f"translate-document {{first}} --input page.html --output out/page.html {CPU}"
    ),
    "train": TRAIN,
    "train --products": f"{TRAIN} --products blas",
    "score rouge": "score rouge --reference text.en --items out/items.tsv text.en",
    "import fairseq": IMPORT,
    "mirror": "mirror out/mirror",
    "card": "card {first}",
    "status": "status results --json",
    "export hub": "export hub {first} out/hub --license mit",
    "export onnx": "export onnx {first} out/onnx",
    "pull": f"pull {REPOSITORY} out/pulled",
    "export-results zip": "export-results {task} out/exported.zip",
    "export-results folder": "export-results {task} out/exported",
    "results": "results runs.jsonl --scale multi30k --output out/page.md",
    "remove-states": "remove-states results --yes",
    "new-task": PAIRS,
    "tokenize": "tokenize --language en",
    "detokenize": "detokenize --language en",
}
"""Commands of ``convs2s``; the name begins with the words of the command."""

WORKFLOW = {"plan": "--dry-run {second}", "workflow": "{second}"}
"""Commands of ``snakemake``, which need a checkout."""

JOBS: dict[str, Perform] = {
    "download": _job(
        "downloads/corpus.en",
        lambda output: download_file(url("corpus.en"), output),
    ),
    "download known": _job(
        "downloads/known.en",
        lambda output: download_file(
            url("known.en"), output, sha256=sha256(OTHER).hexdigest()
        ),
    ),
    "published": _fetch_published,
    "ledger": _job("paper/ledger.jsonl", _write_ledger),
    "extract_corpus": _job(
        "made/a.zst made/b.zst", lambda *made: extract_corpus(_raw_text(), made)
    ),
    "split_training_text": _job(
        "made/a1.zst made/b1.zst made/a2.zst made/b2.zst",
        lambda *made: split_training_text(_raw_text(), parts=[made[:2], made[2:]]),
    ),
    "tokenize_and_filter": _job("made/a.zst made/b.zst made/filter.json", _filter),
    "count_words": _job(
        "made/w.tsv", lambda output: count_words(text=TEXT[0], output=output)
    ),
    "build_vocabulary": _job(
        "made/v.tsv", lambda output: build_word_vocabulary(TASK / "words.tsv", output)
    ),
    "learn_bpe": _job(
        "made/codes.txt",
        lambda output: learn_bpe(words=[TASK / "words.tsv"], output=output, merges=9),
    ),
    "binarize": _job("made/train.arrow made/train.json", _binarize),
    "align_words": _job(
        "made/links.zst",
        lambda output: align_words(
            source=TEXT[0], target=TEXT[1], links=output, pairs=None
        ),
    ),
    "build_dictionary": _job(
        "made/dictionary.tsv made/candidates.tsv",
        lambda dictionary, candidates: build_dictionary(
            source="text.en",
            target="text.en",
            links="links",
            dictionary=dictionary,
            candidates=candidates,
        ),
    ),
    "learn_truecaser": _job(
        "made/truecaser.tsv",
        lambda output: learn_truecaser(text=Path("text.en"), output=output),
    ),
    "decode_test_set": _job("made/test.jsonl made/test.txt", _decode),
    "evaluate_bleu": _job(
        "made/bleu.json",
        lambda output: evaluate_bleu(
            translations=RUN / "test.beam5.jsonl",
            raw=TASK / "corpus/raw/test.target.zst",
            tokenized=TASK / "corpus/tok/test.target.zst",
            output=output,
            test_set="test",
            manifest={},
        ),
    ),
}
"""Jobs of rules and of the plan."""

REFUSAL = "exists already"
REFUSED = {"export hub", "export onnx", "pull", "new-task"}
REFUSED |= {"export-results zip", "export-results folder"}
"""What may say so in place of doing its work again."""


def typed(text: str) -> list[str]:
    """Return the words of a command; seed 1 is a run that has ended, seed 2 has not begun."""
    task = Path("task").read_text()
    models = f"{task}/models/small"
    first, second = (f"{models}/seed{seed}/model.safetensors" for seed in (1, 2))
    return text.format(task=task, models=models, first=first, second=second).split()


def perform(connection: Connection, name: str, folder: Path, said: Path) -> None:
    """Run a command in a folder as soon as this process is told to.

    Its streams go to ``said`` with .out and .err.
    """
    for number, suffix in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{said}.{suffix}", os.O_WRONLY | os.O_CREAT, 0o644), number)
    os.chdir(folder)
    os.environ["SERVER"] = Path("server").read_text()
    sys.stdin = (folder / "text.en").open()
    words = typed((TYPED | WORKFLOW).get(name, ""))
    torch.set_num_threads(1)
    connection.send(None)
    connection.recv()
    try:
        if name in JOBS:
            with failures_of_system():
                JOBS[name]()
        elif name in TYPED:
            main(words)
        else:
            snakemake = [sys.executable, "-m", "snakemake", "--cores", "1"]
            os.execv(sys.executable, [*snakemake, *words])
    except UserError as error:  # of what is no command of `convs2s`
        sys.exit(f"error: {error}")
    finally:
        with suppress(OSError):
            sys.stdout.flush()
