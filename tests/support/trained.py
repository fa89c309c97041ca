"""fairseq's small trained network, whose outputs are in tests/reference/data/fairseq."""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from convs2s.interop.fairseq import FairseqFiles, import_fairseq
from tests.support.golden import DATA

TRAINED = DATA / "fairseq"


def import_trained(folder: Path, **changes: Any) -> Path:
    """Write its checkpoint, some arguments changed, and import that; return the model file."""
    arguments = json.loads((TRAINED / "args.json").read_text("utf-8"))
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
