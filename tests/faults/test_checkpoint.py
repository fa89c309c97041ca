"""Checkpoints, dictionaries and settings that are hostile, damaged or another model's."""

import argparse
import os
import pickle
import sys
import types
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.interop.checkpoint import evaluate, read_checkpoint
from convs2s.interop.fairseq import FairseqFiles, import_fairseq, import_released
from convs2s.model_file import load_model
from tests.support.damage import flipped
from tests.support.golden import DATA
from tests.support.local_files import FilesBelow
from tests.support.refusals import refusal, says

VECTORS = DATA / "fairseq_random"
OLD_STYLE = VECTORS / "checkpoint_tiny_oldstyle.pt"
SOURCE = VECTORS / "dict.src.txt"
TYPES = SOURCE.read_text("utf-8").splitlines()
ARGUMENTS = argparse.Namespace(dropout=0.1)
NOT_PLAIN = "'a' is not a tensor of finite real numbers that are all in the file"


class Hostile:
    """Runs a function when it is unpickled."""

    def __init__(self, function: Any, argument: str) -> None:
        self.call = function, (argument,)

    def __reduce__(self) -> Any:
        return self.call


def save(path: Path, content: object, layout: str = "zip") -> None:
    """Write a file as torch does now, as it did until 2020, as a plain pickle, or as it is."""
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif layout == "pickle":
        path.write_bytes(pickle.dumps(content, protocol=2))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=layout == "zip")


@pytest.mark.parametrize("layout", ["zip", "legacy", "pickle"])
@pytest.mark.parametrize(
    ("function", "name"), [(os.system, "posix.system"), (eval, "eval")]
)
def test_a_hostile_pickle_is_refused_without_running(
    tmp_path: Path, layout: str, function: Any, name: str
) -> None:
    ran = tmp_path / "ran"
    command = f"touch {ran}" if function is os.system else f"open({str(ran)!r}, 'w')"
    content = {"args": Hostile(function, command), "model": {}}
    save(tmp_path / "model.pt", content, layout)
    message = refusal(read_checkpoint, tmp_path / "model.pt")
    says(message, "model.pt: refused, not a fairseq checkpoint: ")
    if layout != "pickle":
        says(message, f"it asks for {name}, which no checkpoint needs")
    assert not ran.exists()
    pickle.loads(pickle.dumps(content))  # as any other reader would have
    assert ran.exists()


@pytest.mark.parametrize("layout", ["zip", "legacy"])
def test_meters_of_2018_are_read_as_objects_that_do_nothing(
    tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("fairseq.meters")
    meter = type("AverageMeter", (), {"__module__": "fairseq.meters"})
    vars(module)["AverageMeter"] = meter
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "fairseq", types.ModuleType("fairseq"))
        patched.setitem(sys.modules, "fairseq.meters", module)
        meters = {"train_meters": {"train_loss": meter()}}
        content = {"args": ARGUMENTS, "model": {"a": torch.zeros(1)}}
        save(tmp_path / "model.pt", content | {"extra_state": meters}, layout)
    assert read_checkpoint(tmp_path / "model.pt").arguments == {"dropout": 0.1}


def holding(tensor: torch.Tensor) -> dict[str, Any]:
    return {"model": {"a": tensor}, "args": ARGUMENTS}


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "refused, not a fairseq checkpoint"),
        (b"BLEU 34.1\n", "refused, not a fairseq checkpoint"),
        (b"PK\x03\x04", "truncated or damaged; fetch the file again"),
        (b"\x80\x02.", "refused, not a fairseq checkpoint"),
        (
            (VECTORS / "checkpoint_tiny.pt").read_bytes()[:200_000],
            "truncated or damaged",
        ),
        ([1, 2], "it holds no weights under 'model'"),
        ({"model": {"a": "b"}}, "it holds no weights under 'model'"),
        ({"model": {}, "args": None, "cfg": None}, "no settings under 'args' or 'cfg'"),
        (holding(torch.zeros(1).expand(1 << 20)), NOT_PLAIN),
        (holding(torch.zeros(6).as_strided((4, 3), (1, 1))), NOT_PLAIN),
        (holding(torch.tensor(1j)), NOT_PLAIN),
        (holding(torch.tensor([1.0, torch.nan])), NOT_PLAIN),
        (holding(torch.zeros(4, dtype=torch.uint8).view(torch.bits8)), "Bits8"),
        (holding(torch.ones(2, 2).to_sparse()), "not a fairseq checkpoint"),
        (
            holding(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)),
            "not a fairseq checkpoint",
        ),
    ],
)
def test_what_is_no_checkpoint_is_refused(
    tmp_path: Path, content: object, word: str
) -> None:
    path = tmp_path / "model.pt"
    save(path, content)
    says(refusal(read_checkpoint, path), f"{path}: ", word)


def test_a_flipped_weight_is_said_with_the_member_that_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    save(path, holding(torch.zeros(1000)))
    content = path.read_bytes()
    path.write_bytes(flipped(content, 8 * (content.index(bytes(4000)) + 2000)))
    message = refusal(read_checkpoint, path)
    says(message, "model.pt: damaged: fetch or copy the file again", "/data/0'")


def test_a_checkpoint_whose_members_are_compressed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(1 << 20))
    says(refusal(read_checkpoint, path), "members are compressed")


def import_tiny(
    folder: Path,
    types: list[str],
    changes: dict[str, Any],
    *,
    codes: Path | None = None,
    checkpoint: Path = OLD_STYLE,
) -> Path:
    """Import fairseq's tiny model with another source dictionary, or other settings."""
    content = torch.load(checkpoint, weights_only=False)
    vars(content["args"]).update(changes)
    save(folder / "model.pt", content)
    dictionary = folder / "dictionary"
    dictionary.write_text("".join(f"{line}\n" for line in types), "utf-8")
    target = VECTORS / "dict.tgt.txt"
    files = FairseqFiles(folder / "model.pt", dictionary, target, codes)
    output = folder / "2.st"
    import_fairseq(files, output, task="tiny", languages=None, preparation="moses_test")
    return output


@pytest.mark.parametrize(
    ("types", "changes", "words"),
    [
        (TYPES[:-1], {}, ["has 43 types, but the checkpoint's encoder knows 44"]),
        ([*TYPES[:-1], "word"], {}, ["dictionary:44: expected 'TYPE COUNT'", "'word'"]),
        ([*TYPES[:-1], TYPES[0]], {}, ["dictionary:44: has the type", "a second time"]),
        ([*TYPES[:-1], "<s> 1"], {}, ["dictionary:44: has the type '<s>' a second"]),
        (TYPES, {"encoder_layers": "[(32, 3)] * 2"}, ["it has 'encoder."]),
        (TYPES, {"decoder_out_embed_dim": 17}, ["'decoder.", "was expected"]),
        (
            TYPES,
            {"decoder_attention": "[True]"},
            ["True or False for each of 3 layers"],
        ),
        (
            TYPES,
            {"encoder_layers": "[(0, 3)]"},
            ["encoder[0].width: expected at least"],
        ),
        (TYPES, {"encoder_layers": "exit()"}, ["encoder_layers: expected", "'exit()'"]),
        (TYPES, {"source_lang": None}, ["state its languages: give --languages"]),
        (
            TYPES,
            {"source_lang": "\ud800"},
            ["2.st: contains half a surrogate pair", "ud800"],
        ),
    ],
)
def test_what_does_not_fit_the_weights_is_named(
    tmp_path: Path, types: list[str], changes: dict[str, Any], words: list[str]
) -> None:
    says(refusal(import_tiny, tmp_path, types, changes), *words)
    assert not (tmp_path / "2.st").exists()


def test_weights_may_share_their_memory(tmp_path: Path) -> None:
    content = torch.load(OLD_STYLE, weights_only=False)
    memory = torch.ones(max(weight.numel() for weight in content["model"].values()))
    for name, weight in content["model"].items():
        content["model"][name] = memory[: weight.numel()].view(weight.shape)
    shared = tmp_path / "shared.pt"
    save(shared, content)
    network, _ = load_model(import_tiny(tmp_path, TYPES, {}, checkpoint=shared))
    assert all(weight.isfinite().all() for weight in network.state_dict().values())


def test_codes_that_are_none_are_refused_with_their_line(tmp_path: Path) -> None:
    codes = tmp_path / "codes"
    codes.write_text("#version: 0.2\na b\nthree tokens here\n", "utf-8")
    message = refusal(import_tiny, tmp_path, TYPES, {}, codes=codes)
    says(message, f"{codes}:3: expected two tokens and a space between")
    # The task's files are read from copies, in a folder that is gone when somebody looks for it.
    references = {
        "model": str(OLD_STYLE),
        "source_dictionary": str(SOURCE),
        "target_dictionary": str(VECTORS / "dict.tgt.txt"),
        "bpe_codes": str(codes),
    }
    message = refusal(
        import_released,
        references=references,
        files=FilesBelow(tmp_path),
        output=tmp_path / "2.st",
        task="tiny",
        languages={"source": "en", "target": "fr"},
        preparation="moses_test",
    )
    says(message, f"{codes}:3: expected two tokens and a space between")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (
            "[(512, 3)] * 2 + 1 * [(768, 3)] + [(4096, 1, 1)]",
            [(512, 3), (512, 3), (768, 3), (4096, 1, 1)],
        ),
        (" True", True),
        ("[True] * 2 + [False]", [True, True, False]),
        ("[(512, 3)] * 300", [(512, 3)] * 300),
        ("__import__('os').system('true')", None),
        ("[(1, 1)] * 10**9", None),
        ("[(1, 1)] * 1000000000", None),
        ("[[[(8,3)]*1000]*1000]*1000", None),
        ("[1] + 2", None),
        ("[x for x in y]", None),
        ("(" * 300, None),
        ("[1" + " + [1]" * 5000, None),
        ("", None),
        ("\0", None),
        (7, None),
        (None, None),
    ],
)
def test_expressions_are_those_of_lists(expression: object, value: object) -> None:
    if value is None:
        says(refusal(evaluate, expression, "layers"), "layers: expected text such as")
    else:
        assert evaluate(expression, "layers") == value
