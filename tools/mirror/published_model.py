"""A released model's archive as fairseq's authors pack theirs; the network's weights are chance."""

import argparse
import io
import random
from collections import Counter
from collections.abc import Iterator

import torch

from mirror.formats import Content
from mirror.sentences import SentencePairs

MODEL_WIDTH = 16
KERNEL = 3
LAYERS = 2
POSITIONS = 258
SPECIAL_ROWS = 4  # <s>, <pad>, </s> and <unk> have rows, but stand in no dictionary
WHOLE_WORDS = 150


def model_members(
    folder: str, languages: tuple[str, str], pairs: SentencePairs
) -> dict[str, Content]:
    """Return the members of the archive of a model for a language pair, all in a folder.

    The words of the pairs' sentences, in small letters, make the dictionaries.
    """
    members: dict[str, Content] = {}
    merges: dict[str, None] = {}
    sizes = []
    for language, side in zip(languages, zip(*pairs, strict=True), strict=True):
        count = Counter(" ".join(side).split())
        words = [word for word, _ in count.most_common(WHOLE_WORDS)]
        for word in words:
            # They join a word's characters from the left; the last ends the word.
            for end in range(1, len(word)):
                ending = "</w>" if end == len(word) - 1 else ""
                merges[f"{word[:end]} {word[end]}{ending}"] = None
        # All tokens that the merges make: words, what they begin with, characters.
        openings = [f"{word[:end]}@@" for word in words for end in range(2, len(word))]
        letters = sorted(set("".join(count)))
        singles = [f"{letter}{mark}" for letter in letters for mark in ("", "@@")]
        types = list(dict.fromkeys([*words, *openings, *singles]))
        sizes.append(len(types) + SPECIAL_ROWS)
        ranked = [f"{token} {len(types) - rank}" for rank, token in enumerate(types)]
        members[f"{folder}/dict.{language}.txt"] = ranked
    members[f"{folder}/bpecodes"] = ["#version: 0.2", *merges]
    members[f"{folder}/model.pt"] = checkpoint(languages, (sizes[0], sizes[1]))
    return members


def checkpoint(languages: tuple[str, str], sizes: tuple[int, int]) -> bytes:
    """Return a checkpoint in fairseq's layout of 2018, for vocabularies of these sizes."""
    layers = f"[({MODEL_WIDTH}, {KERNEL})] * {LAYERS}"
    arguments = argparse.Namespace(
        arch="fconv",
        source_lang=languages[0],
        target_lang=languages[1],
        encoder_layers=layers,
        decoder_layers=layers,
        decoder_attention="True",
        encoder_embed_dim=MODEL_WIDTH,
        decoder_embed_dim=MODEL_WIDTH,
        decoder_out_embed_dim=MODEL_WIDTH,
        dropout=0.1,
    )
    rng = random.Random("-".join(languages))
    weights = {}
    for name, shape in parameter_shapes(*sizes):
        weights[name] = torch.ones(shape)
        if not name.endswith("weight_g"):
            values = [rng.gauss(0, 0.1) for _ in range(weights[name].numel())]
            weights[name] = torch.tensor(values).view(shape)
    stream = io.BytesIO()
    torch.save({"args": arguments, "epoch": 1, "model": weights}, stream)
    return stream.getvalue()


def parameter_shapes(
    source_size: int, target_size: int
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the name and shape of each parameter."""
    for side, size in (("encoder", source_size), ("decoder", target_size)):
        yield f"{side}.embed_tokens.weight", (size, MODEL_WIDTH)
        yield f"{side}.embed_positions.weight", (POSITIONS, MODEL_WIDTH)
        yield from linear_shapes(f"{side}.fc1", MODEL_WIDTH)
        yield from linear_shapes(f"{side}.fc2", MODEL_WIDTH)
        for layer in range(LAYERS):
            name = f"{side}.convolutions.{layer}"
            yield f"{name}.weight_v", (KERNEL, MODEL_WIDTH, 2 * MODEL_WIDTH)
            yield f"{name}.weight_g", (1, 1, 2 * MODEL_WIDTH)
            yield f"{name}.bias", (2 * MODEL_WIDTH,)
    for layer in range(LAYERS):
        yield from linear_shapes(
            f"decoder.attention.{layer}.in_projection", MODEL_WIDTH
        )
        yield from linear_shapes(
            f"decoder.attention.{layer}.out_projection", MODEL_WIDTH
        )
    yield from linear_shapes("decoder.fc3", target_size)


def linear_shapes(name: str, outputs: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield those of a linear layer whose weight is normalized."""
    yield f"{name}.weight_v", (outputs, MODEL_WIDTH)
    yield f"{name}.weight_g", (outputs, 1)
    yield f"{name}.bias", (outputs,)
