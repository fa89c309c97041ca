"""Checkpoints, dictionaries and settings that are hostile, damaged or another model's."""

import argparse
import os
import pickle
import re
import sys
import types
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.cli.main import main
from convs2s.errors import UserError
from convs2s.interop.checkpoint import evaluate, read_checkpoint
from convs2s.interop.fairseq import FairseqFiles, import_fairseq, import_released
from tests.support.damage import bits, flipped
from tests.support.golden import DATA
from tests.support.local_files import FilesBelow

VECTORS = DATA / "fairseq_random"


class Hostile:
    """Runs a function when it is unpickled."""

    def __init__(self, function: Any, argument: str) -> None:
        self.call = function, (argument,)

    def __reduce__(self) -> Any:
        return self.call


def save(path: Path, content: object, layout: str) -> None:
    """Write a file as torch does now, as it did until 2020, or as a plain pickle."""
    if layout == "pickle":
        path.write_bytes(pickle.dumps(content, protocol=2))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=layout == "zip")


@pytest.mark.parametrize("layout", ["zip", "legacy", "pickle"])
@pytest.mark.parametrize("function", [os.system, eval])
def test_a_hostile_pickle_is_refused_without_running(
    tmp_path: Path, layout: str, function: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = tmp_path / "ran"
    command = f"touch {ran}" if function is os.system else f"open({str(ran)!r}, 'w')"
    content = {"args": Hostile(function, command), "model": {}}
    path = tmp_path / "model.pt"
    save(path, content, layout)
    options = ["--source-dictionary", "a", "--target-dictionary", "b", "--output", "c"]
    with pytest.raises(SystemExit) as ended:
        main(["import", "fairseq", str(path), *options])
    said = str(ended.value)
    assert re.fullmatch(
        rf"convs2s: error: {path}: refused, not a fairseq checkpoint: .+", said
    )
    assert layout == "pickle" or re.search(
        r"it asks for (posix\.system|eval), which no", said
    )
    assert not ran.exists()
    pickle.loads(pickle.dumps(content))  # as any other reader would have
    assert ran.exists()


@pytest.mark.parametrize("layout", ["zip", "legacy"])
def test_meters_of_2018_are_read_as_objects_that_do_nothing(
    tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("fairseq.meters")
    meter = type("AverageMeter", (), {"__module__": "fairseq.meters"})
    module.AverageMeter = meter  # type: ignore[attr-defined]
    one = meter()
    one.val = 1.5
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "fairseq", types.ModuleType("fairseq"))
        patched.setitem(sys.modules, "fairseq.meters", module)
        content = {
            "args": argparse.Namespace(dropout=0.1),
            "model": {"a": torch.zeros(1)},
            "extra_state": {"train_meters": {"train_loss": one}},
        }
        save(tmp_path / "model.pt", content, layout)
    assert read_checkpoint(tmp_path / "model.pt").arguments == {"dropout": 0.1}


@pytest.mark.parametrize("content", [b"", b"BLEU 34.1\n", b"PK\x03\x04", b"\x80\x02."])
def test_what_is_no_checkpoint_is_refused_in_one_line(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    said = (
        "refused, not a fairseq checkpoint|truncated or damaged; fetch the file again"
    )
    with pytest.raises(UserError, match=rf"^{path}: ({said}): .+$"):
        read_checkpoint(path)


def test_a_flipped_bit_in_a_checkpoint_is_noticed_or_changes_nothing(
    tmp_path: Path,
) -> None:
    content = (VECTORS / "checkpoint_tiny_oldstyle.pt").read_bytes()
    sound = read_checkpoint(VECTORS / "checkpoint_tiny_oldstyle.pt")
    path, noticed = tmp_path / "model.pt", 0
    for bit in bits(content, 150):
        path.write_bytes(flipped(content, bit))
        try:
            checkpoint = read_checkpoint(path)
        except UserError:
            noticed += 1
        else:
            assert checkpoint.arguments == sound.arguments
            assert all(
                torch.equal(checkpoint.weights[name], sound.weights[name])
                for name in sound.weights
            )
    assert noticed > 100


def test_a_flipped_weight_is_said_with_the_member_that_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save({"model": {"a": torch.zeros(1000)}, "args": argparse.Namespace()}, path)
    path.write_bytes(
        flipped(path.read_bytes(), 8 * (path.read_bytes().index(bytes(4000)) + 2000))
    )
    said = r"model\.pt: damaged: fetch or copy the file again: its member '.*/data/0'"
    with pytest.raises(UserError, match=said):
        read_checkpoint(path)


def test_a_checkpoint_whose_members_are_compressed_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(1 << 20))
    with pytest.raises(UserError, match="members are compressed"):
        read_checkpoint(tmp_path / "model.pt")


def test_a_truncated_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes((VECTORS / "checkpoint_tiny.pt").read_bytes()[:200_000])
    with pytest.raises(
        UserError, match=r"model\.pt: truncated or damaged; fetch the file again"
    ):
        read_checkpoint(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], "it holds no weights under 'model'"),
        ({"model": {"a": "b"}}, "it holds no weights under 'model'"),
        ({"model": {}, "args": None, "cfg": None}, "no settings under 'args' or 'cfg'"),
    ],
)
def test_other_files_of_torchs_are_refused(
    tmp_path: Path, content: object, message: str
) -> None:
    torch.save(content, tmp_path / "model.pt")
    with pytest.raises(UserError, match=message):
        read_checkpoint(tmp_path / "model.pt")


@pytest.mark.parametrize(
    "weights",
    [
        torch.zeros(1).expand(1 << 20),
        torch.zeros(6).as_strided((4, 3), (1, 1)),
        torch.tensor(1j),
    ],
    ids=["one number a million times", "numbers that overlap", "a complex number"],
)
def test_tensors_that_are_not_in_the_file_as_they_are_are_refused(
    tmp_path: Path, weights: torch.Tensor
) -> None:
    torch.save(
        {"model": {"a": weights}, "args": argparse.Namespace()}, tmp_path / "model.pt"
    )
    said = "'a' is not a tensor of finite real numbers that are all in the file$"
    with pytest.raises(UserError, match=said):
        read_checkpoint(tmp_path / "model.pt")


def import_tiny(output: Path, dictionary: Path, changes: dict[str, Any]) -> None:
    """Import fairseq's tiny model with another source dictionary, or other settings."""
    content = torch.load(VECTORS / "checkpoint_tiny_oldstyle.pt", weights_only=False)
    vars(content["args"]).update(changes)
    torch.save(content, output.with_name("model.pt"))
    files = FairseqFiles(
        output.with_name("model.pt"), dictionary, VECTORS / "dict.tgt.txt", None
    )
    import_fairseq(files, output, task="tiny", languages=None, preparation="moses_test")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda lines: lines[:-1],
            "has 43 types, but the checkpoint's encoder knows 44: give the",
        ),
        (
            lambda lines: [*lines[:-1], "word"],
            r"dictionary:44: expected 'TYPE COUNT', found 'word'",
        ),
        (
            lambda lines: [*lines[:-1], lines[0]],
            r"dictionary:44: has the type '.*' a second time",
        ),
        (
            lambda lines: [*lines[:-1], "<s> 1"],
            "dictionary:44: has the type '<s>' a second time",
        ),
    ],
)
def test_another_dictionary_is_named(tmp_path: Path, edit: Any, message: str) -> None:
    lines = (VECTORS / "dict.src.txt").read_text("utf-8").splitlines()
    dictionary = tmp_path / "dictionary"
    dictionary.write_text("".join(f"{line}\n" for line in edit(lines)), "utf-8")
    with pytest.raises(UserError, match=message):
        import_tiny(tmp_path / "model.safetensors", dictionary, {})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder_layers": "[(32, 3)] * 2"}, r"it has 'encoder\..*'"),
        (
            {"decoder_out_embed_dim": 17},
            r"'decoder\..*' makes \(.*\) where \(.*\) was expected",
        ),
        (
            {"decoder_attention": "[True]"},
            "expected True or False for each of 3 layers",
        ),
        (
            {"encoder_layers": "[(0, 3)]"},
            r"encoder\[0\]\.width: expected at least 1, not 0",
        ),
        (
            {"encoder_layers": "exit()"},
            r"encoder_layers: expected text such as .*, not 'exit\(\)'",
        ),
        ({"source_lang": None}, "does not state its languages: give --languages"),
    ],
)
def test_settings_that_are_not_the_weights_are_named(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    dictionary = VECTORS / "dict.src.txt"
    with pytest.raises(UserError, match=message):
        import_tiny(tmp_path / "model.safetensors", dictionary, changes)
    assert not (tmp_path / "model.safetensors").exists()


def test_codes_that_are_none_are_refused_with_their_line(tmp_path: Path) -> None:
    codes = tmp_path / "codes"
    codes.write_text("#version: 0.2\na b\nthree tokens here\n", "utf-8")
    source, target = (VECTORS / f"dict.{side}.txt" for side in ("src", "tgt"))
    files = FairseqFiles(VECTORS / "checkpoint_tiny_oldstyle.pt", source, target, codes)
    output = tmp_path / "model.safetensors"
    with pytest.raises(
        UserError, match=rf"^{codes}:3: expected two tokens and a space between"
    ):
        import_fairseq(
            files, output, task="tiny", languages=None, preparation="moses_test"
        )
    assert not output.exists()


def test_a_released_model_is_named_as_its_task_names_it(tmp_path: Path) -> None:
    """It is read from copies, in a folder that is gone when somebody looks for it."""
    codes = tmp_path / "bpecodes"
    codes.write_text("a b\nnone\n", "utf-8")
    references = {
        "model": str(VECTORS / "checkpoint_tiny_oldstyle.pt"),
        "source_dictionary": str(VECTORS / "dict.src.txt"),
        "target_dictionary": str(VECTORS / "dict.tgt.txt"),
        "bpe_codes": str(codes),
    }
    with pytest.raises(
        UserError, match=rf"^{codes}:2: expected two tokens and a space between"
    ):
        import_released(
            references=references,
            files=FilesBelow(tmp_path),
            output=tmp_path / "model.safetensors",
            task="tiny",
            languages={"source": "en", "target": "fr"},
            preparation="moses_test",
        )


def test_expressions_are_those_of_lists() -> None:
    layers = evaluate("[(512, 3)] * 2 + 1 * [(768, 3)] + [(4096, 1, 1)]", "layers")
    assert layers == [(512, 3), (512, 3), (768, 3), (4096, 1, 1)]
    assert evaluate(" True", "attention") is True
    assert evaluate("[True] * 2 + [False]", "attention") == [True, True, False]


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "[(1, 1)] * 10**9",
        "[(1, 1)] * 1000000000",
        "[1] + 2",
        "[x for x in y]",
        "(" * 300,
        "[1" + " + [1]" * 5000,
        "",
        "\0",
        7,
        None,
    ],
)
def test_other_expressions_are_refused(expression: object) -> None:
    with pytest.raises(UserError, match=r"^layers: expected text such as"):
        evaluate(expression, "layers")
