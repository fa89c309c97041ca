"""Every network, recipe and decoding of the papers, field by field, as the papers state them.

The tables here are typed from the papers (and their authors' code, where the papers are silent),
not made from config/: who changes a value there has to mean it here as well.
"""

from typing import Any

import pytest

from convs2s.config.architecture import ConvS2SArchitecture
from convs2s.config.model import Recipe
from convs2s.config.settings import Settings

Json = dict[str, Any]
Stack = list[tuple[int, int, int]]
"""Layers, width and kernel of each of some equal blocks, bottom first."""

# ---- what all have in common ----

CONVS2S: Json = {
    "kind": "convs2s",
    "embedding": 512,
    "output_embedding": 512,
    "attention": "all",
    "attention_weights": None,
    "positions": {"source": True, "target": True, "maximum": 1024},
    "vocabulary_selection": None,
    "gradient_scaling": "paper",
}
SELECTION = {"frequent": 500, "candidates": 100}

PLATEAU: Json = {
    "kind": "plateau",
    "divide_by": 10.0,
    "minimum": 1e-4,
    "hold": 5.0,
    "every": 1.0,
    "warmup": 0.5,
}
BATCH: Json = {
    "sentences": 64,
    "tokens": None,
    "micro_batch_tokens": 4000,
    "lengths": None,
    "split": "accumulate",
}
RECIPE: Json = {
    "best_by": None,
    "batch": BATCH,
    "optimizer": "nesterov",
    "learning_rate": 0.25,
    "momentum": 0.99,
    "normalize": "tokens",
    "clip": 0.1,
    "label_smoothing": 0.0,
    "schedule": PLATEAU,
    "velocity": "keep",
    "maximum_epochs": None,
    "average": None,
    "precision": "fp32",
    "compile": False,
}
"""Section 4.2 of the paper."""


def convs2s(encoder: Stack, decoder: Stack, dropout: float, **others: Any) -> Json:
    stacks = {
        side: [
            {"layers": n, "width": width, "kernel": kernel}
            for n, width, kernel in stack
        ]
        for side, stack in (("encoder", encoder), ("decoder", decoder))
    }
    return {**CONVS2S, **stacks, "dropout": dropout, **others}


def ablation(
    encoder: tuple[int, int] = (13, 3),
    decoder: tuple[int, int] = (5, 5),
    **changes: Any,
) -> Json:
    """Return section 5.4's network, its layers and kernels as stated."""
    stacks: tuple[Stack, Stack] = (
        [(encoder[0], 512, encoder[1])],
        [(decoder[0], 512, decoder[1])],
    )
    return convs2s(*stacks, 0.2, vocabulary_selection=SELECTION, **changes)


def positions(source: bool, target: bool) -> Json:
    return {"positions": {"source": source, "target": target, "maximum": 1024}}


def sentences(number: int) -> Json:
    return {**RECIPE, "batch": {**BATCH, "sentences": number}}


def fairseq_recipe(tokens: int) -> Json:
    return {
        **RECIPE,
        "batch": {**BATCH, "sentences": None, "tokens": tokens},
        "learning_rate": 0.5,
        "label_smoothing": 0.1,
        "schedule": {
            **PLATEAU,
            "kind": "step",
            "hold": 49.0,
            "every": 1.0,
            "divide_by": 10.0,
        },
        "velocity": "rescale",
    }


# ---- the networks ----

ROMANIAN: Stack = [(20, 512, 3)]
GERMAN: Stack = [(10, 512, 3), (3, 768, 3), (2, 2048, 1)]
FRENCH: Stack = [(5, 512, 3), (4, 768, 3), (3, 1024, 3), (1, 2048, 1), (1, 4096, 1)]
FAIRSEQ_GERMAN: Stack = [(9, 512, 3), (4, 1024, 3), (2, 2048, 1)]
FAIRSEQ_FRENCH: Stack = [
    (6, 512, 3),
    (4, 768, 3),
    (3, 1024, 3),
    (1, 2048, 1),
    (1, 4096, 1),
]
FAIRSEQ: Json = {"gradient_scaling": "fairseq"}

NETWORKS: dict[str, Json] = {
    "wmt16_en_ro": convs2s(ROMANIAN, ROMANIAN, 0.1),
    "wmt14_en_de": convs2s(GERMAN, GERMAN, 0.2),
    "wmt14_en_fr": convs2s(FRENCH, FRENCH, 0.1),
    "wmt14_en_fr_small": convs2s(GERMAN, GERMAN, 0.1),
    "convs2s_beside_lstm": convs2s(GERMAN, GERMAN, 0.1),
    "summarization": convs2s([(6, 256, 3)], [(6, 256, 3)], 0.1),
    "attention_plot": convs2s([(13, 512, 3)], [(8, 512, 5)], 0.2),
    "fconv_wmt_en_de": convs2s(
        FAIRSEQ_GERMAN, FAIRSEQ_GERMAN, 0.2, embedding=768, **FAIRSEQ
    ),
    "fconv_wmt_en_fr": convs2s(
        FAIRSEQ_FRENCH, FAIRSEQ_FRENCH, 0.1, embedding=768, **FAIRSEQ
    ),
    "fconv_wmt_en_ro": convs2s(ROMANIAN, ROMANIAN, 0.1, **FAIRSEQ),
    "fconv_iwslt_de_en": convs2s(
        [(4, 256, 3)],
        [(3, 256, 3)],
        0.2,
        embedding=256,
        output_embedding=256,
        **FAIRSEQ,
    ),
    "tutorial_de_en": convs2s(
        [(10, 512, 3)],
        [(10, 512, 3)],
        0.25,
        embedding=256,
        output_embedding=256,
        attention_weights="shared",
        positions={"source": True, "target": True, "maximum": 100},
        gradient_scaling="none",
    ),
    "ablation": ablation(),
    # Table 4
    "ablation_no_source_position": ablation(**positions(False, True)),
    "ablation_no_target_position": ablation(**positions(True, False)),
    "ablation_no_position": ablation(**positions(False, False)),
    # Table 5
    "ablation_attention_1_2_3_4": ablation(attention=[1, 2, 3, 4]),
    "ablation_attention_1_2_3": ablation(attention=[1, 2, 3]),
    "ablation_attention_1_2": ablation(attention=[1, 2]),
    "ablation_attention_1_3_5": ablation(attention=[1, 3, 5]),
    "ablation_attention_1": ablation(attention=[1]),
    "ablation_attention_2": ablation(attention=[2]),
    "ablation_attention_3": ablation(attention=[3]),
    "ablation_attention_4": ablation(attention=[4]),
    "ablation_attention_5": ablation(attention=[5]),
    # Table 7
    **{
        f"ablation_encoder_{layers}_k{kernel}": ablation(encoder=(layers, kernel))
        for kernel in (5, 7)
        for layers in (5, 9, 13)
    },
    # Table 8
    **{
        f"ablation_decoder_{layers}_k{kernel}": ablation(decoder=(layers, kernel))
        for kernel in (3, 7)
        for layers in (3, 5, 7)
    },
    # Figure 2, but for the base
    **{
        f"ablation_encoder_{n}_k3": ablation(encoder=(n, 3))
        for n in range(1, 26)
        if n != 13
    },
    **{
        f"ablation_decoder_{n}_k5": ablation(decoder=(n, 5))
        for n in range(1, 26)
        if n != 5
    },
}

LSTM: Json = {
    "kind": "lstm",
    "layers": 4,
    "cells": 1000,
    "embedding": 1000,
    "dropout": 0.0,
    "initialization": 0.08,
    "reverse_source": True,
}
LSTM_RECIPE: Json = {
    **RECIPE,
    "batch": {**BATCH, "sentences": 128},
    "optimizer": "sgd",
    "learning_rate": 0.7,
    "normalize": "sentences",
    "clip": 5.0,
    "schedule": {
        **PLATEAU,
        "kind": "step",
        "hold": 5.0,
        "every": 0.5,
        "divide_by": 2.0,
    },
    "maximum_epochs": 7.5,
}
"""Sutskever et al. (2014), section 3.4."""
TODAYS = ("wmt16_en_ro", "wmt14_en_de", "wmt14_en_fr", "wmt14_en_fr_small")
"""Those that run in bf16 and compiled, each with a variant in fp32, which the paper states."""
NETWORKS |= {f"{name}_fp32": NETWORKS[name] for name in TODAYS}
NETWORKS |= {"ablation_own_recipe": NETWORKS["ablation"], "lstm_mixed_lengths": LSTM}
NETWORKS |= {"lstm": LSTM, "lstm_forward": {**LSTM, "reverse_source": False}}
# Section 3.4.
SHALLOW = {f"lstm_{n}_layer{'s' if n > 1 else ''}": n for n in (1, 2, 3, 4)}
NETWORKS |= {name: {**LSTM, "layers": layers} for name, layers in SHALLOW.items()}

RECIPES: dict[str, Json] = {
    **dict.fromkeys(NETWORKS, RECIPE),
    "wmt14_en_de": sentences(48),
    "wmt14_en_fr": sentences(8 * 32),
    "wmt14_en_fr_small": sentences(8 * 32),
    "convs2s_beside_lstm": sentences(8 * 32),
    "summarization": sentences(128),
    "fconv_wmt_en_de": fairseq_recipe(4000),
    "fconv_wmt_en_fr": fairseq_recipe(3000),
    "fconv_wmt_en_ro": fairseq_recipe(4000),
    # fairseq's getting-started page
    "fconv_iwslt_de_en": {
        **RECIPE,
        "batch": {**BATCH, "sentences": None, "tokens": 4000},
        "schedule": {**PLATEAU, "minimum": 1e-5},
        "velocity": "rescale",
    },
    # the tutorial's: the same rate for ten epochs
    "tutorial_de_en": {
        **sentences(128),
        "optimizer": "adam",
        "learning_rate": 1e-3,
        "schedule": {**PLATEAU, "kind": "step", "hold": 10.0},
        "maximum_epochs": 10.0,
    },
    "lstm": LSTM_RECIPE,
    "lstm_forward": LSTM_RECIPE,
    **dict.fromkeys(SHALLOW, LSTM_RECIPE),
    "lstm_mixed_lengths": {
        **LSTM_RECIPE,
        "batch": {**BATCH, "sentences": 128, "lengths": "mixed"},
    },
}

RECIPES |= {f"{name}_fp32": RECIPES[name] for name in TODAYS}
RECIPES |= {
    name: {**RECIPES[name], "precision": "bf16", "compile": True}
    for name in (*TODAYS, "convs2s_beside_lstm")
}

# ---- the decodings ----

SEARCH: Json = {
    "beam": 5,
    "length_penalty": 1.0,
    "minimum_length": 0,
    "maximum_length": {"factor": 1.5, "offset": 10},
    "unknown_penalty": 0.0,
    "finished": "replace",
    "replace_unknown": True,
    "vocabulary_selection": "model",
    "ensemble": "probabilities",
    "precision": "fp32",
    "batch_sentences": 64,
    "batch_tokens": 4000,
    "cuda_graphs": False,
}
SPEED: Json = {**SEARCH, "batch_sentences": 128, "batch_tokens": None}
LSTM_SEARCH: Json = {
    **SEARCH,
    "length_penalty": 0.0,
    "finished": "leave",
    "replace_unknown": False,
}
DECODINGS: dict[str, Json] = {
    "greedy": {**SEARCH, "beam": 1},
    "greedy_unknown": {
        **SEARCH,
        "beam": 1,
        "replace_unknown": False,
        "maximum_length": {"factor": 0.0, "offset": 50},
    },
    "beam5": SEARCH,
    "beam5_bf16": {**SEARCH, "precision": "bf16"},
    "beam5_int8": {**SEARCH, "precision": "int8"},
    "beam5_fairseq": {**SEARCH, "maximum_length": {"factor": 0.0, "offset": 200}},
    "beam5_en_de": {**SEARCH, "length_penalty": {"tuned_on": "newstest2015"}},
    "table3_beam1": {**SPEED, "beam": 1},
    "table3_beam5": SPEED,
    "table3_beam1_bf16": {**SPEED, "beam": 1, "precision": "bf16"},
    "table3_beam5_bf16": {**SPEED, "precision": "bf16"},
    "lstm_beam1": {**LSTM_SEARCH, "beam": 1},
    "lstm_beam2": {**LSTM_SEARCH, "beam": 2},
    "lstm_beam12": {**LSTM_SEARCH, "beam": 12},
    "list20": {**SEARCH, "beam": 20},
    "list100": {**SEARCH, "beam": 100},
    "small_lstm_beam2": {
        **LSTM_SEARCH,
        "beam": 2,
        "length_penalty": {"tuned_on": "valid"},
    },
    "small_lstm_beam12": {
        **LSTM_SEARCH,
        "beam": 12,
        "length_penalty": {"tuned_on": "valid"},
    },
    "beam5_minimum14": {**SEARCH, "minimum_length": 14},
}

OF_THIS_PROJECT = ("small", "demo", "long")
"""What the names of models begin with that are in no paper."""

WITHOUT_EFFECT = {"threads", "checkpoint_minutes", "start", "tensorboard"}


def test_every_model_of_the_papers_is_here(settings: Settings) -> None:
    assert {
        name for name in settings.models if not name.startswith(OF_THIS_PROJECT)
    } == set(NETWORKS)
    assert set(settings.decodings) == set(DECODINGS)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(settings: Settings, name: str) -> None:
    assert settings.models[name].architecture.model_dump(mode="json") == NETWORKS[name]


@pytest.mark.parametrize("name", RECIPES)
def test_recipes(settings: Settings, name: str) -> None:
    found = settings.models[name].training.model_dump(
        mode="json", exclude=WITHOUT_EFFECT
    )
    assert found == RECIPES[name]


@pytest.mark.parametrize("name", DECODINGS)
def test_decodings(settings: Settings, name: str) -> None:
    assert settings.decodings[name].model_dump(mode="json") == DECODINGS[name]


def test_the_defaults_are_the_papers() -> None:
    found = Recipe().model_dump(mode="json", exclude=WITHOUT_EFFECT)
    assert found == RECIPE


def test_the_stand_ins_of_table_4_lack_what_the_ablations_lack(
    settings: Settings,
) -> None:
    whole = settings.models["demo"].model_dump(
        mode="json", exclude={"description", "extends"}
    )
    for name in ("no_source_position", "no_target_position", "no_position"):
        stand_in, original = (
            settings.models[f"demo_{name}"],
            settings.models[f"ablation_{name}"],
        )
        architecture = stand_in.architecture
        assert isinstance(architecture, ConvS2SArchitecture)
        assert isinstance(original.architecture, ConvS2SArchitecture)
        assert architecture.positions == original.architecture.positions
        found = stand_in.model_dump(mode="json", exclude={"description", "extends"})
        found["architecture"]["positions"] = whole["architecture"]["positions"]
        assert found == whole
