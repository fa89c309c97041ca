"""Checkpoints, dictionaries and settings that are hostile, damaged or another model's."""

import argparse
import os
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch

from convs2s.interop.checkpoint import evaluate, read_checkpoint
from convs2s.interop.fairseq import FairseqFiles, import_fairseq, import_released
from tests.support.archives import FilesBelow, flipped, make_archive
from tests.support.golden import DATA
from tests.support.refusals import refusal, refuses, rows, says

VECTORS = DATA / "fairseq_random"
OLD_STYLE = VECTORS / "checkpoint_tiny_oldstyle.pt"
SOURCE = VECTORS / "dict.src.txt"
TARGET = VECTORS / "dict.tgt.txt"
TYPES = SOURCE.read_text("utf-8").splitlines()
ARGUMENTS = argparse.Namespace(dropout=0.1)


class Hostile(NamedTuple):
    """Runs a function when it is unpickled."""

    function: Any
    argument: str

    def __reduce__(self) -> Any:
        return self.function, (self.argument,)


def save(path: Path, content: object, layout: str = "zip") -> None:
    """Write a file as torch does now, as it did until 2020, as a plain pickle, or as it is."""
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif layout == "pickle":
        path.write_bytes(pickle.dumps(content, protocol=2))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=layout == "zip")


@pytest.mark.parametrize("layout", ["zip", "legacy", "pickle"])
@pytest.mark.parametrize("function", [os.system, eval])
def test_a_hostile_pickle_is_refused_without_running(
    tmp_path: Path, layout: str, function: Any
) -> None:
    ran = tmp_path / "ran"
    command = f"touch {ran}" if function is os.system else f"open({str(ran)!r}, 'w')"
    content = {"args": Hostile(function, command), "model": {}}
    save(tmp_path / "model.pt", content, layout)
    message = refusal(read_checkpoint, tmp_path / "model.pt")
    says(message, "model.pt: refused, not a fairseq checkpoint: ")
    if layout != "pickle":
        name = "posix.system" if function is os.system else "eval"
        says(message, f"it asks for {name}, which no checkpoint needs")
    assert not ran.exists()
    pickle.loads(pickle.dumps(content))  # as any other reader would have
    assert ran.exists()


@pytest.mark.parametrize("layout", ["zip", "legacy"])
def test_meters_of_2018_are_read_as_objects_that_do_nothing(
    tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter = type("AverageMeter", (), {"__module__": "fairseq.meters"})
    content = holding(torch.zeros(1)) | {"extra_state": {"train_meters": meter()}}
    with monkeypatch.context() as patched:
        module = SimpleNamespace(AverageMeter=meter)
        patched.setitem(sys.modules, "fairseq", module)
        patched.setitem(sys.modules, "fairseq.meters", module)
        save(tmp_path / "model.pt", content, layout)
    assert read_checkpoint(tmp_path / "model.pt").arguments == {"dropout": 0.1}


def holding(tensor: torch.Tensor) -> dict[str, Any]:
    return {"model": {"a": tensor}, "args": ARGUMENTS}


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    cut = (VECTORS / "checkpoint_tiny.pt").read_bytes()[:200_000]
    unnamed = torch.zeros(4, dtype=torch.uint8).view(torch.bits8)
    packed = make_archive(tmp_path / "a.zip", {"archive/data.pkl": bytes(1 << 20)})
    odd = "'a' is not a tensor of finite real numbers that are all in"
    contents: list[tuple[object, str]] = [
        (b"", "refused, not a fairseq checkpoint"),
        (cut, "truncated or damaged"),
        (packed.read_bytes(), "members are compressed"),
        ([1, 2], "it holds no weights under 'model'"),
        ({"model": {"a": "b"}}, "it holds no weights under 'model'"),
        ({"model": {}, "args": None, "cfg": None}, "no settings under 'args' or 'cfg'"),
        (holding(unnamed), "Bits8"),
        (holding(torch.ones(2, 2).to_sparse()), "not a fairseq checkpoint"),
        (holding(torch.zeros(1).expand(1 << 20)), odd),
        (holding(torch.zeros(6).as_strided((4, 3), (1, 1))), odd),
        (holding(torch.tensor(1j)), odd),
        (holding(torch.tensor([1.0, torch.nan])), odd),
    ]
    for content, words in contents:
        save(path, content)
        says(refusal(read_checkpoint, path), f"{path}: ", words)


def test_a_flipped_weight_is_said_with_the_member_that_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    save(path, holding(torch.zeros(1000)))
    content = path.read_bytes()
    path.write_bytes(flipped(content, 8 * (content.index(bytes(4000)) + 2000)))
    message = refusal(read_checkpoint, path)
    says(message, "model.pt: damaged: fetch or copy the file again ... /data/0'")


def import_tiny(
    folder: Path,
    types: list[str] = TYPES,
    weights: dict[str, torch.Tensor] | None = None,
    **changes: Any,
) -> Path:
    """Import fairseq's tiny model with another source dictionary, weights or settings."""
    content = torch.load(OLD_STYLE, weights_only=False)
    vars(content["args"]).update(changes)
    content["model"].update(weights or {})
    save(folder / "model.pt", content)
    dictionary = folder / "dictionary"
    dictionary.write_text("".join(f"{line}\n" for line in types), "utf-8")
    files = FairseqFiles(folder / "model.pt", dictionary, TARGET, None)
    output = folder / "2.st"
    import_fairseq(files, output, task="tiny", languages=None, preparation="moses_test")
    return output


DICTIONARIES = """
=> has 43 types, but the checkpoint's encoder knows 44
word => dictionary:44: expected 'TYPE COUNT' ... 'word'
s09 72 => dictionary:44: has the type ... a second time
<s> 1 => dictionary:44: has the type '<s>' a second
s17@@ 37 => dictionary: has parts of words ... --bpe-codes
"""


def test_a_dictionary_that_does_not_fit_is_named(tmp_path: Path) -> None:
    for last, words in rows(DICTIONARIES):
        types = [*TYPES[:-1], *filter(None, [last])]
        refuses(words, import_tiny, tmp_path, types)
        assert not (tmp_path / "2.st").exists()


SETTINGS = r"""
encoder_layers => [(32, 3)] * 2 => it has 'encoder.
encoder_layers => [(32, 3, 2)] * 3 => layers: expected ... without a residual connection
encoder_layers => [(0, 3)] => encoder[0].width: expected at least
encoder_layers => exit() => encoder_layers: expected ... 'exit()'
decoder_out_embed_dim => 17 => 'decoder. ... was expected
decoder_attention => [True] => True or False for each of 3 layers
source_lang => => state its languages: give --languages
source_lang => \ud800 => 2.st: contains half a surrogate pair ... ud800
"""


def test_settings_that_do_not_fit_are_named(tmp_path: Path) -> None:
    for key, value, words in rows(SETTINGS):
        changes: dict[str, Any] = {
            key: int(value) if value.isdigit() else value or None
        }
        refuses(words, import_tiny, tmp_path, **changes)
        assert not (tmp_path / "2.st").exists()


def test_weights_that_are_no_parameter_are_named(tmp_path: Path) -> None:
    """Copies that some versions left behind are no matter."""
    copy = {"decoder.convolutions.0._linearized_weight": torch.zeros(64, 96)}
    import_tiny(tmp_path, weights=copy)
    other = {"decoder.version2": torch.zeros(1)}
    refuses("it has 'decoder.version2'", import_tiny, tmp_path, weights=other)


def test_weights_may_share_their_memory(tmp_path: Path) -> None:
    content = holding(torch.ones(6))
    content["model"]["b"] = content["model"]["a"][:4].view(2, 2)
    save(tmp_path / "model.pt", content)
    assert read_checkpoint(tmp_path / "model.pt").weights.keys() == {"a", "b"}


def test_codes_that_are_none_or_another_vocabularys_are_refused(tmp_path: Path) -> None:
    """The files are read from copies, in a folder that is gone when somebody looks for it."""
    codes = tmp_path / "codes"
    for line, words in (
        ("a b</w>", ": cannot have made"),
        ("a b\nthree tokens here", ":3: expected two tokens and a space between"),
    ):
        codes.write_text(f"#version: 0.2\n{line}\n")
        message = refusal(
            import_released,
            references={
                "model": str(OLD_STYLE),
                "source_dictionary": str(SOURCE),
                "target_dictionary": str(TARGET),
                "bpe_codes": str(codes),
            },
            files=FilesBelow(tmp_path),
            output=tmp_path / "2.st",
            task="tiny",
            languages={"source": "en", "target": "fr"},
            preparation="moses_test",
        )
        says(message, f"{codes}{words}")


def test_expressions_are_those_of_lists() -> None:
    for expression in (
        "[(512, 3)] * 2 + 1 * [(768, 3)] + [(4096, 1, 1)]",
        "[True] * 2 + [False]",
        "[(512, 3)] * 300",
    ):
        assert evaluate(expression, "layers") == eval(expression)
    assert evaluate(" True", "layers") is True


def test_what_is_no_expression_of_a_list_is_refused() -> None:
    for expression in (
        "__import__('os').system('true')",
        "[(1, 1)] * 10**9",
        "[(1, 1)] * 1000000000",
        "[[[(8,3)]*1000]*1000]*1000",
        "[1] + 2",
        "[x for x in y]",
        "(" * 300,
        "[1" + " + [1]" * 5000,
        "",
        "\0",
        7,
        None,
    ):
        said = refusal(evaluate, expression, "layers")
        says(said, "layers: expected text such as")
