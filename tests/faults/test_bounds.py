"""Small files that were made to take all memory, all day, or a library by surprise."""

import io
import json
import resource
import tarfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.config.architecture import parse_architecture
from convs2s.config.decoding import DecodingSettings
from convs2s.config.yaml_file import read_yaml
from convs2s.data.formats import read_segments
from convs2s.data.store import TokenStore
from convs2s.decoding.translate import LineTranslator
from convs2s.download.archives import open_member
from convs2s.errors import UserError
from convs2s.files import tensors
from convs2s.files.tensors import load_tensors, save_tensors
from convs2s.files.text import read_json
from convs2s.interop.checkpoint import evaluate, read_checkpoint
from convs2s.model_file import load_model
from convs2s.text.links import read_links
from convs2s.training.history import perplexity

SECONDS = 10.0
"""What no input may take; each of these takes a small part of it."""


@contextmanager
def quick() -> Iterator[None]:
    started = time.process_time()
    yield
    assert time.process_time() - started < SECONDS


def test_lists_of_lists_in_a_checkpoint_are_counted_whole() -> None:
    with quick(), pytest.raises(UserError, match="layers: expected text such as"):
        evaluate("[[[(8,3)]*1000]*1000]*1000", "layers")
    assert len(evaluate("[(512, 3)] * 300", "layers")) == 300


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"encoder": [{"layers": 10**9, "width": 8, "kernel": 3}]},
            r"layers: expected at most",
        ),
        (
            {"encoder": [{"layers": 600, "width": 8, "kernel": 3}] * 2},
            "at most 1000 blocks in all",
        ),
        (
            {"encoder": [{"layers": 1, "width": 10**9, "kernel": 3}]},
            r"width: expected at most",
        ),
        ({"positions": {"maximum": 10**12}}, r"positions\.maximum: expected at most"),
    ],
)
def test_architectures_have_bounds(change: dict[str, Any], message: str) -> None:
    blocks = [{"layers": 1, "width": 8, "kernel": 3}]
    with quick(), pytest.raises(UserError, match=message):
        parse_architecture({"encoder": blocks, "decoder": blocks, **change})


def test_aliases_are_counted_where_they_stand(tmp_path: Path) -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    (tmp_path / "bomb.yaml").write_text("\n".join(lines))
    (tmp_path / "deep.yaml").write_text("[" * 500 + "]" * 500)
    with (
        quick(),
        pytest.raises(UserError, match=r"bomb\.yaml:6: more than 200000 values"),
    ):
        read_yaml(tmp_path / "bomb.yaml", "bomb.yaml")
    with (
        quick(),
        pytest.raises(UserError, match=r"deep\.yaml:1: more than 60 nested lists"),
    ):
        read_yaml(tmp_path / "deep.yaml", "deep.yaml")


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000])
def test_odd_json_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UserError, match=r"a\.json: not JSON: "):
        read_json(tmp_path / "a.json")


def test_segments_take_linear_time() -> None:
    with quick(), pytest.raises(UserError, match="no <seg>"):
        list(read_segments(["<seg " * 200_000], "a.sgm"))
    with pytest.raises(UserError, match=r"a\.sgm:1: this <seg> is too long"):
        list(read_segments(["<seg>", *["word " * 1000] * 1000], "a.sgm"))
    line = "<seg>&#99999999999999999999;</seg>"
    assert list(read_segments([line], "a.sgm")) == ["&#99999999999999999999;"]


def test_an_absent_member_among_many_is_named_soon(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(20_000):
            archive.writestr(f"folder/member-{number}-of-many.txt", b"")
        archive.writestr("elsewhere/news.en", b"")
    with (
        quick(),
        pytest.raises(UserError, match=r"of its 20001 are: elsewhere/news\.en,"),
        open_member(path, "folder/news.en"),
    ):
        pass


def tar_with(header: tarfile.TarInfo, data: bytes = b"") -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("first"))
        header.size = len(data)
        archive.addfile(header, io.BytesIO(data))
        archive.addfile(tarfile.TarInfo("last"))
    return plain.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"99999999 path=a\n",
        b"-5 path=a\n",
        b"12 size=abc\n",
        b"14 size=-512\n",
        b"x" * 100_000,
    ],
)
def test_odd_headers_of_tar_archives_are_one_line(tmp_path: Path, data: bytes) -> None:
    header = tarfile.TarInfo("header")
    header.type = tarfile.XHDTYPE
    path = tmp_path / "a.tar"
    path.write_bytes(tar_with(header, data))
    with (
        quick(),
        pytest.raises(UserError, match=r"a\.tar: "),
        open_member(path, "absent") as one,
    ):
        one.read()


def test_a_zip_archives_lzma_takes_memory_for_what_it_holds_alone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a/b.txt", "A line.\n")
    with open_member(path, "a/b.txt") as stream:
        assert stream.read() == b"A line.\n"
    content = bytearray(path.read_bytes())
    dictionary = content.index(b"b.txt") + len("b.txt") + 5
    content[dictionary : dictionary + 4] = (1 << 30).to_bytes(4, "little")
    path.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes
    with quick(), open_member(path, "a/b.txt") as stream:
        assert stream.read() == b"A line.\n"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_odd_versions_of_zip_archives_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("one", b"text")
    content = path.read_bytes()
    entry = content.index(b"PK\1\2")
    for place in range(4, 46):
        changed = bytearray(content)
        changed[entry + place] ^= 0xFF
        path.write_bytes(changed)
        with suppress(UserError), open_member(path, "one") as stream:
            stream.read()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source_types": 5}, "source_types: expected a list"),
        ({"languages": {"source": "en"}}, "languages: key 'target' is missing"),
        ({"architecture": None}, "architecture: expected"),
        ({"unknown": 1}, "unknown key 'unknown'"),
        ({"bpe_codes": [1]}, "bpe_codes: "),
        ({"preparation": ""}, "preparation: "),
    ],
)
def test_metadata_of_another_shape_is_named(
    model: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    weights, fields = load_tensors(model)
    save_tensors(tmp_path / "m", weights, {**fields, **change})
    with pytest.raises(UserError, match=f"m: {message}"):
        load_model(tmp_path / "m")


def test_weights_that_cannot_translate_are_refused(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other writers have it.
    monkeypatch.setitem(tensors._TYPES, "torch.complex64", "C64")
    weights, fields = load_tensors(model)
    name = "encoder.embedding.tokens"
    for changed, message in (
        (weights[name] * torch.nan, "contains NaN or infinity"),
        (weights[name].to(torch.complex64), "is complex64"),
        (weights[name][:, :0], "was expected"),
        (weights[name][0, 0], "do not match its weights"),
    ):
        save_tensors(tmp_path / "m", {**weights, name: changed}, fields)
        with pytest.raises(UserError, match=message):
            load_model(tmp_path / "m")
    save_tensors(tmp_path / "m", {**weights, name: weights[name] * 3e38}, fields)
    with pytest.raises(
        UserError, match="m: finds no translation, because its scores are not finite"
    ):
        list(
            LineTranslator([tmp_path / "m"], DecodingSettings(), "cpu").translate(
                ["w1 w2"]
            )
        )
    del weights["encoder.embedding.tokens"]
    save_tensors(tmp_path / "m", weights, fields)
    with pytest.raises(UserError, match="do not match its weights"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([1.0, torch.nan]),
        torch.ones(2, 2).to_sparse(),
        torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    ],
)
def test_a_checkpoint_of_other_than_plain_numbers_is_refused(
    tmp_path: Path, tensor: torch.Tensor
) -> None:
    torch.save({"model": {"a": tensor}, "args": None}, tmp_path / "model.pt")
    with pytest.raises(
        UserError, match=r"model\.pt: (not|refused, not) a fairseq checkpoint"
    ):
        read_checkpoint(tmp_path / "model.pt")


@pytest.mark.parametrize(
    "content", [b"ARROW1\0\0", b"ARROW1\0\0" + bytes(64) + b"ARROW1"]
)
def test_what_is_no_token_store_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "train.arrow").write_bytes(content)
    with pytest.raises(UserError, match=r"train\.arrow: not a token store"):
        TokenStore(tmp_path / "train.arrow")


@pytest.mark.parametrize(
    "link", ["0-x", "0--1", "-1-0", "9" * 5000 + "-0", "1-", "0-\u0661"]
)
def test_links_that_are_none_are_named(tmp_path: Path, link: str) -> None:
    (tmp_path / "links").write_text(f"0-0\n{link}\n")
    with pytest.raises(
        UserError, match=r"links:2: expected links such as 0-0 1-2, found '"
    ):
        list(read_links(tmp_path / "links"))


def test_a_large_loss_has_a_perplexity() -> None:
    assert json.dumps(perplexity(1e6)) == json.dumps(perplexity(700.0))
