"""Sound files of every kind that is read, small, in one folder."""

import json
import shutil
import zipfile
from contextlib import chdir
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.data.word_counts import count_words
from convs2s.decoding.streams import ChunkTranslator
from convs2s.decoding.translate import LineTranslator
from convs2s.files.checksums import note_checksums
from convs2s.files.text import write_json, write_lines
from convs2s.text.bpe import learn_codes
from convs2s.training.trainer import Trainer
from tests.support import tiny
from tests.support.archives import COMPRESS, make_archive
from tests.support.golden import DATA
from tests.support.refusals import rows

MEMBER = "corpus/news.en"
ROOT = Path(__file__).resolve().parents[3]
LINES = [f"the man number {number} sees two red cars ." for number in range(12)]
SEGMENTS = [f'<seg id="{number}">{line}</seg>' for number, line in enumerate(LINES)]
TABLES = {
    "text": LINES,
    "segments": ['<doc docid="a">', *SEGMENTS, "</doc>"],
    "links": ["0-0 1-2 3-1"] * 12,
    "alignment": ["0-0 1-2 3-1"] * 12,
    "records.jsonl": [json.dumps({"title": LINES[0], "body": LINES[:2]})] * 3,
    "pairs.tsv": [f"{line}\tl' homme ." for line in LINES],
    "pairs.csv": ["en,fr", *(f'"{line}","l\'homme, ""oui"""' for line in LINES)],
    "pairs.jsonl": ['{"translation": {"en": "the man", "fr": "l\'homme"}}'] * 3,
    "pairs.tmx": [
        '<tmx><tu><tuv xml:lang="en"><seg>the man</seg></tuv>',
        '<tuv xml:lang="fr"><seg>l\'homme</seg></tuv></tu></tmx>',
    ],
    "pairs.xml": [
        '<doc id="a"><src lang="en"><seg id="0">the man</seg></src>',
        '<ref lang="fr" translator="A"><seg id="0">l\'homme</seg></ref></doc>',
    ],
}
"""The files of text, by name."""

SMALL = r"""
dictionary => source\ttarget\tcount\tsource_count\nman\thomme\t3\t4\n
candidates => source\ttargets\nman\thomme gens\ncar\tvoiture\n
truecaser => word\tcount\nParis\t3\nparis\t1\n
columns => title\tbody\na\t"b\tc"\nd\te\n
exceptions => mice\tmouse\nmen\tman\n
report.json => {"read": 9, "kept": 7, "dropped": {"empty": 1}, "settings": "all"}\n
unfinished.part.json => {"identity": {"model": "a"}, "lines": 1, "bytes": 4}\n
"""

TASK = "root/results/tiny"
RUN = f"{TASK}/models/small/seed1"


def prepare_by_hand(folder: Path) -> None:
    """Write a configuration, and a task's results into results/tiny, without the workflow."""
    shutil.copytree(ROOT / "config", folder / "config")
    shutil.copy(ROOT / "config.yaml", folder)
    # Manifests hold paths as the workflow names them.
    with chdir(folder), mock.patch.object(Trainer, "drop_unneeded"):
        tiny.write_results()


def make_samples(folder: Path) -> None:
    """Write every sample; those of a task and a training lie in ``TASK`` and ``RUN``."""
    prepare_by_hand(folder / "root")
    for name, lines in TABLES.items():
        write_lines(folder / name, lines)
    for name, text in rows(SMALL):
        (folder / name).write_text(text)
    codes = learn_codes([("lower", 5), ("lowest", 7)], 9)
    write_lines(folder / "codes", codes.splitlines())
    members = {"corpus/readme": b"0-0 1-2\n", MEMBER: (folder / "text").read_bytes()}
    make_archive(folder / "text.tar", members)
    for suffix in COMPRESS:
        write_lines(folder / f"text{suffix}", LINES)
        make_archive(folder / f"text.tar{suffix}", members)
    for name, method in {"deflated": 8, "bzip2": 12, "lzma": 14}.items():
        with zipfile.ZipFile(folder / f"{name}.zip", "w", method) as archive:
            for member, held in members.items():
                archive.writestr(member, held)
    ledger = (ROOT / "docs/results/multi30k.ledger.jsonl").read_text("utf-8")
    write_lines(folder / "ledger.jsonl", ledger.splitlines()[:2])
    model = folder / RUN / "model.safetensors"
    translator = LineTranslator([model], DecodingSettings(beam=2), "cpu")
    best_two = ChunkTranslator(translator, False, 2)
    (folder / "n-best").write_text(best_two([(1, "w1 w2 w3"), (2, "w4 unheard")]))
    sound = DATA / "fairseq_random/checkpoint_tiny_oldstyle.pt"
    content = torch.load(sound, weights_only=False)
    small = {"args": content["args"], "model": content["model"]}  # little is weights
    torch.save(small, folder / "model.pt")
    shutil.copy(DATA / "fairseq_random/dict.src.txt", folder / "dict.txt")
    count_words(text=folder / TASK / "train.en", output=folder / "words")
    write_json(folder / "scores", {"bleu": 24.31, "test_set": {"lines": 1000}})
    noted = [
        "words",
        "scores",
        f"{TASK}/vocabulary/fr.tsv",
        f"{TASK}/dataset/valid.json",
    ]
    note_checksums([folder / name for name in noted], None)


def stand_in(log: str, inputs: list[Path], outputs: list[Path]) -> SimpleNamespace:
    """Return what Snakemake hands a script, as far as the job itself asks for it."""
    return SimpleNamespace(log=[log], input=inputs, output=outputs, params={})
