"""A released model's archive as fairseq's authors pack theirs; the network's weights are chance."""

import argparse
import io
import random
from collections import Counter
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from convs2s.mirror.packing import packed_tar_bz2, text
from convs2s.mirror.sentences import SentencePairs

_WIDTH = 16
_KERNEL = 3
_LAYERS = 2
_POSITIONS = 258
_SPECIAL_TOKENS = 4  # <s>, <pad>, </s> and <unk> have rows, but stand in no dictionary
_WHOLE_WORDS = 150


def released_archive(folder: str, languages: tuple[str, str], pairs: SentencePairs) -> bytes:
    """Return the archive of a model for a language pair.

    Args:
        folder: the folder in the archive.
        languages: of both sides.
        pairs: lower-cased words of their sentences make the dictionaries.
    """
    counts = [Counter(" ".join(side).split()) for side in zip(*pairs, strict=True)]
    words = [[word for word, _ in count.most_common(_WHOLE_WORDS)] for count in counts]
    characters = [sorted(set("".join(count))) for count in counts]
    types = [_types(side, known) for side, known in zip(words, characters, strict=True)]
    source, target = languages
    merges = dict.fromkeys(merge for side in words for word in side for merge in _merges(word))
    members = {
        "model.pt": _checkpoint(languages, len(types[0]), len(types[1])),
        f"dict.{source}.txt": _dictionary(types[0]),
        f"dict.{target}.txt": _dictionary(types[1]),
        "bpecodes": text(["#version: 0.2", *merges]),
    }
    return packed_tar_bz2({f"{folder}/{name}": content for name, content in members.items()})


def _merges(word: str) -> Iterator[str]:
    """Yield the merges that join a word's characters from the left; its last ends the word."""
    for end in range(1, len(word)):
        ending = "</w>" if end == len(word) - 1 else ""
        yield f"{word[:end]} {word[end]}{ending}"


def _types(words: Iterable[str], characters: Iterable[str]) -> list[str]:
    """Return all tokens that the merges make: words, what they begin with, characters."""
    pieces = (f"{word[:end]}@@" for word in words for end in range(2, len(word)))
    singles = (f"{one}{mark}" for one in characters for mark in ("", "@@"))
    return list(dict.fromkeys([*words, *pieces, *singles]))


def _dictionary(types: list[str]) -> bytes:
    """Return a dictionary: each type with its count, the most frequent first."""
    return text(f"{token} {len(types) - rank}" for rank, token in enumerate(types))


def _checkpoint(languages: tuple[str, str], source_types: int, target_types: int) -> bytes:
    """Return a checkpoint in fairseq's layout of 2018."""
    layers = f"[({_WIDTH}, {_KERNEL})] * {_LAYERS}"
    arguments = argparse.Namespace(
        arch="fconv",
        source_lang=languages[0],
        target_lang=languages[1],
        encoder_layers=layers,
        decoder_layers=layers,
        decoder_attention="True",
        encoder_embed_dim=_WIDTH,
        decoder_embed_dim=_WIDTH,
        decoder_out_embed_dim=_WIDTH,
        dropout=0.1,
    )
    rng = random.Random("-".join(languages))
    types = {"encoder": source_types, "decoder": target_types}
    weights = {name: _weight(rng, name, shape) for name, shape in _shapes(types)}
    stream = io.BytesIO()
    torch.save({"args": arguments, "epoch": 1, "model": weights}, stream)
    return stream.getvalue()


def _weight(rng: random.Random, name: str, shape: tuple[int, ...]) -> Tensor:
    if name.endswith("weight_g"):
        return torch.ones(shape)
    values = [rng.gauss(0, 0.1) for _ in range(torch.Size(shape).numel())]
    return torch.tensor(values).view(shape)


def _shapes(types: dict[str, int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the name and shape of each parameter."""
    for side, count in types.items():
        yield f"{side}.embed_tokens.weight", (count + _SPECIAL_TOKENS, _WIDTH)
        yield f"{side}.embed_positions.weight", (_POSITIONS, _WIDTH)
        yield from _linear(f"{side}.fc1", _WIDTH)
        yield from _linear(f"{side}.fc2", _WIDTH)
        for layer in range(_LAYERS):
            name = f"{side}.convolutions.{layer}"
            yield f"{name}.weight_v", (_KERNEL, _WIDTH, 2 * _WIDTH)
            yield f"{name}.weight_g", (1, 1, 2 * _WIDTH)
            yield f"{name}.bias", (2 * _WIDTH,)
    for layer in range(_LAYERS):
        yield from _linear(f"decoder.attention.{layer}.in_projection", _WIDTH)
        yield from _linear(f"decoder.attention.{layer}.out_projection", _WIDTH)
    yield from _linear("decoder.fc3", types["decoder"] + _SPECIAL_TOKENS)


def _linear(name: str, outputs: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight_v", (outputs, _WIDTH)
    yield f"{name}.weight_g", (outputs, 1)
    yield f"{name}.bias", (outputs,)
