"""Sound files of every kind that is read, small, in one folder."""

import argparse
import io
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.config.identity import training_settings
from convs2s.decoding.streams import ChunkTranslator
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import write_json, write_lines
from convs2s.text.bpe import learn_codes
from convs2s.training.run import train
from tests.support import tiny
from tests.support.golden import DATA

MEMBER = "corpus/news.en"
LINES = [f"the man number {number} sees two red cars ." for number in range(12)]
NAMES = ("train.en", "train.fr")


def make_samples(folder: Path, root: Path) -> None:
    """Write every sample; those of a training lie in ``task`` and ``run``."""
    task = tiny.prepare(folder / "task", pairs=40)
    with tiny.whole_states():
        train(tiny.job(task, folder / "run/model.safetensors"))
    (state,) = (folder / "run/state").glob("*/last.safetensors")
    shutil.copy(state, folder / "last.safetensors")
    _archives(folder)
    _texts(folder)
    _translations(folder)
    _checkpoint(folder / "model.pt")
    write_json(folder / "settings.json", training_settings(tiny.settings()))
    shutil.copytree(root / "config", folder / "config")
    shutil.copy(root / "config.yaml", folder)
    ledger = (
        (root / "docs/results/multi30k.ledger.jsonl")
        .read_text("utf-8")
        .splitlines()[:2]
    )
    write_lines(folder / "ledger.jsonl", ledger)


def _archives(folder: Path) -> None:
    text = "".join(f"{line}\n" for line in LINES).encode()
    for suffix in ("", ".gz", ".bz2", ".xz", ".zst"):
        write_lines(folder / f"text{suffix}", LINES)
    with tarfile.open(folder / "text.tar", "w") as archive:
        for name in ("corpus/readme", MEMBER):
            header = tarfile.TarInfo(name)
            header.size = len(text)
            archive.addfile(header, io.BytesIO(text))
    methods = {
        "": zipfile.ZIP_DEFLATED,
        "_bzip2": zipfile.ZIP_BZIP2,
        "_lzma": zipfile.ZIP_LZMA,
    }
    for suffix, method in methods.items():
        with zipfile.ZipFile(folder / f"text{suffix}.zip", "w", method) as zipped:
            for name in ("corpus/readme", MEMBER):
                zipped.writestr(name, text)


def _texts(folder: Path) -> None:
    segments = [
        f'<seg id="{number}">{line}</seg>' for number, line in enumerate(LINES[:4], 1)
    ]
    write_lines(folder / "test.sgm", ['<doc docid="a">', *segments, "</doc>"])
    write_lines(
        folder / "bpe.codes", learn_codes([("lower", 5), ("lowest", 7)], 9).splitlines()
    )
    links = ["0-0 1-2 3-1"] * 12
    write_lines(folder / "links", links)
    table = [
        "source\ttarget\tcount\tsource_count",
        "man\thomme\t3\t4",
        "car\tvoiture\t1\t2",
    ]
    write_lines(folder / "dictionary.tsv", table)
    write_lines(
        folder / "candidates.tsv",
        ["source\ttargets", "man\thomme gens", "car\tvoiture"],
    )
    write_lines(folder / "truecaser.tsv", ["word\tcount", "Paris\t3", "paris\t1"])
    write_lines(
        folder / "records.jsonl",
        [json.dumps({"title": LINES[0], "body": LINES[:2]})] * 3,
    )
    write_lines(folder / "columns.tsv", ["title\tbody", 'a\t"b\tc"', "d\te"])
    write_lines(folder / "exceptions.tsv", ["mice\tmouse", "men\tman"])
    report = {"read": 9, "kept": 7, "dropped": {"empty": 1}, "settings": "all"}
    write_json(folder / "filter.json", report)


def _translations(folder: Path) -> None:
    translator = LineTranslator(
        [folder / "run/model.safetensors"], DecodingSettings(beam=2), "cpu"
    )
    texts = ["w1 w2 w3", "w4 unheard"]
    translators = {
        "translations.jsonl": ChunkTranslator(translator, True, None),
        "list.nbest": ChunkTranslator(translator, False, 2),
    }
    for name, translate in translators.items():
        (folder / name).write_text(translate(list(enumerate(texts, start=1))), "utf-8")


def _checkpoint(path: Path) -> None:
    """Write a checkpoint of fairseq's, of which most is settings rather than weights."""
    sound = DATA / "fairseq_random/checkpoint_tiny_oldstyle.pt"
    content = torch.load(sound, weights_only=False)
    assert isinstance(content["args"], argparse.Namespace)
    torch.save({"args": content["args"], "model": content["model"]}, path)
