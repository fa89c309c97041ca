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
from convs2s.files.text import write_json, write_lines
from convs2s.pipeline.job import job
from convs2s.text.bpe import learn_codes
from convs2s.training.trainer import Trainer
from tests.faults.campaign.formats import MEMBER
from tests.support import tiny
from tests.support.archives import COMPRESS, make_archive
from tests.support.golden import DATA

ROOT = Path(__file__).resolve().parents[3]
LINES = [f"the man number {number} sees two red cars ." for number in range(12)]
SEGMENTS = [f'<seg id="{number}">{line}</seg>' for number, line in enumerate(LINES)]
TABLES = {
    "text": LINES,
    "sgm": ['<doc docid="a">', *SEGMENTS, "</doc>"],
    "links": ["0-0 1-2 3-1"] * 12,
    "dictionary": ["source\ttarget\tcount\tsource_count", "man\thomme\t3\t4"],
    "candidates": ["source\ttargets", "man\thomme gens", "car\tvoiture"],
    "truecaser": ["word\tcount", "Paris\t3", "paris\t1"],
    "records": [json.dumps({"title": LINES[0], "body": LINES[:2]})] * 3,
    "columns": ["title\tbody", 'a\t"b\tc"', "d\te"],
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
    "exceptions": ["mice\tmouse", "men\tman"],
    "filter": ['{"read": 9, "kept": 7, "dropped": {"empty": 1}, "settings": "all"}'],
    "unfinished.part.json": ['{"identity": {"model": "a"}, "lines": 1, "bytes": 4}'],
}
"""The files of text, by name."""


TASK = "results/tiny"
RUN = f"{TASK}/models/small/seed1"


def make_samples(folder: Path) -> None:
    """Write every sample; those of a task and a training lie in ``TASK`` and ``RUN``."""
    folder.mkdir(exist_ok=True)
    with chdir(folder), mock.patch.object(Trainer, "drop_unneeded"):
        tiny.write_results()
    for name, lines in TABLES.items():
        write_lines(folder / name, lines)
    codes = learn_codes([("lower", 5), ("lowest", 7)], 9)
    write_lines(folder / "codes", codes.splitlines())
    _archives(folder)
    ledger = (ROOT / "docs/results/multi30k.ledger.jsonl").read_text("utf-8")
    write_lines(folder / "ledger", ledger.splitlines()[:2])
    settings = DecodingSettings(beam=2)
    translator = LineTranslator([folder / f"{RUN}/model.safetensors"], settings, "cpu")
    best_two = ChunkTranslator(translator, False, 2)
    (folder / "list").write_text(best_two([(1, "w1 w2 w3"), (2, "w4 unheard")]))
    sound = DATA / "fairseq_random/checkpoint_tiny_oldstyle.pt"
    content = torch.load(sound, weights_only=False)
    small = {"args": content["args"], "model": content["model"]}  # little is weights
    torch.save(small, folder / "model.pt")
    shutil.copy(DATA / "fairseq_random/dict.src.txt", folder / "dict.txt")
    shutil.copytree(ROOT / "config", folder / "root/config")
    shutil.copy(ROOT / "config.yaml", folder / "root")
    task = folder / TASK
    made = [folder / "words", folder / "scores"]
    kept = [task / "vocabulary/fr.tsv", task / "dataset/valid.json"]
    with job(stand_in(folder, [], made + kept)):
        count_words(text=task / "train.en", output=made[0])
        write_json(made[1], {"bleu": 24.31, "test_set": {"lines": 1000}})


def stand_in(folder: Path, inputs: list[Path], outputs: list[Path]) -> SimpleNamespace:
    """Return what Snakemake hands a script, as far as the job itself asks for it."""
    return SimpleNamespace(
        log=[str(folder / "job.log")],
        input=list(map(str, inputs)),
        output=outputs,
        params={},
    )


def _archives(folder: Path) -> None:
    members = {"corpus/readme": b"0-0 1-2\n", MEMBER: (folder / "text").read_bytes()}
    make_archive(folder / "text.tar", members)
    for suffix in COMPRESS:
        write_lines(folder / f"text{suffix}", LINES)
        make_archive(folder / f"text.tar{suffix}", members)
    for name, method in (("deflated", 8), ("bzip2", 12), ("lzma", 14)):
        with zipfile.ZipFile(folder / f"{name}.zip", "w", method) as archive:
            for member, content in members.items():
                archive.writestr(member, content)
