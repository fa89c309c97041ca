"""The description of a ConvS2S network: what ``architecture`` in config/models.yaml says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

GradientScaling = Literal["paper", "fairseq", "none"]


@dataclass(frozen=True)
class Layer:
    """One convolutional block: its number of channels d and kernel width k."""

    width: int
    kernel: int


@dataclass(frozen=True)
class Architecture:
    """Everything that fixes a ConvS2S network's shape but its vocabularies.

    Attributes:
        embedding: f, width of the embeddings.
        output_embedding: width of the layer before the softmax.
        encoder: encoder blocks, bottom first.
        decoder: decoder blocks, bottom first.
        attention: for each decoder block, whether it attends to the source.
        source_positions: rows of the source position table; None without positions.
        target_positions: likewise for the target.
        dropout: probability that dropout zeroes a value.
        gradient_scaling: how the encoder's gradients are scaled (section 3.5): ``paper`` divides
            those of its parameters but the embeddings by the number of attention layers;
            ``fairseq`` divides the gradient that enters the encoder stack by twice that number; ``none``.
        selects_vocabulary: whether the output layer is a lookup table, some rows of which are
            used at a time (section 5.4), and not weight-normalized.
    """

    embedding: int
    output_embedding: int
    encoder: tuple[Layer, ...]
    decoder: tuple[Layer, ...]
    attention: tuple[bool, ...]
    source_positions: int | None
    target_positions: int | None
    dropout: float
    gradient_scaling: GradientScaling
    selects_vocabulary: bool = False

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Architecture":
        """Read a validated ``architecture`` section of config/models.yaml."""
        decoder = _layers(settings["decoder"])
        attention, positions = settings["attention"], settings["positions"]
        maximum = positions["maximum"]
        return cls(
            embedding=settings["embedding"],
            output_embedding=settings["output_embedding"],
            encoder=_layers(settings["encoder"]),
            decoder=decoder,
            attention=tuple(
                attention == "all" or number in attention for number in range(1, len(decoder) + 1)
            ),
            source_positions=maximum if positions["source"] else None,
            target_positions=maximum if positions["target"] else None,
            dropout=settings["dropout"],
            gradient_scaling=settings["gradient_scaling"],
            # Model files from before there was such a setting do not state it.
            selects_vocabulary=settings.get("vocabulary_selection") is not None,
        )


def _layers(stacks: list[dict[str, int]]) -> tuple[Layer, ...]:
    return tuple(
        Layer(stack["width"], stack["kernel"]) for stack in stacks for _ in range(stack["layers"])
    )
