"""What the original tools computed from this project's own text: tests/reference/data."""

import argparse
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from convs2s.files.text import read_json, read_lines
from convs2s.interop.fairseq import FairseqFiles, import_fairseq

DATA = Path(__file__).resolve().parents[1] / "reference" / "data"
TRAINED = DATA / "fairseq"
"""fairseq's small trained network, and its outputs."""


def plain_or_packed(folder: Path, name: str) -> Path:
    """Return the path of a text file, which may be there in a compressed form."""
    path = folder / name
    return path if path.exists() else path.with_name(f"{name}.gz")


def golden_lines(folder: Path, name: str) -> list[str]:
    """Return the lines of a text file, which may be there in a compressed form."""
    return list(read_lines(plain_or_packed(folder, name)))


def import_trained(folder: Path, **changes: Any) -> Path:
    """Write that network's checkpoint, some arguments changed, and import it; return the model."""
    arguments: Any = read_json(TRAINED / "args.json")
    # fairseq read the weights as float32 before it computed with them.
    weights = load_file(TRAINED / "model.fp16.safetensors")
    content = {
        "args": argparse.Namespace(**(arguments | changes)),
        "model": {name: weight.float() for name, weight in weights.items()},
    }
    torch.save(content, folder / "model.pt")
    dictionaries = TRAINED / "dict.en.txt", TRAINED / "dict.fr.txt"
    files = FairseqFiles(folder / "model.pt", *dictionaries, TRAINED / "codes.3000")
    model = folder / "model.safetensors"
    import_fairseq(files, model, task="demo", languages=None, preparation="moses_test")
    return model
