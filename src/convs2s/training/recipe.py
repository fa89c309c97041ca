"""How a model is trained: what ``training`` in config/models.yaml says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from convs2s.data.batches import BatchLimits


@dataclass(frozen=True)
class Recipe:
    """A training recipe; the defaults, the paper's (section 4.2), are the schema's.

    Attributes:
        batch: limits of one update and of one part of it.
        split: ``accumulate`` sums the parts of a batch into one update; ``separate`` makes each
            part an update.
        learning_rate: of the first epochs.
        momentum: Nesterov's.
        clip: largest norm of the gradient.
        label_smoothing: probability mass spread evenly over the vocabulary.
        compare: whether an epoch must beat the ``previous`` or the ``best`` validation loss.
        divide_by: the learning rate's divisor once an epoch did not.
        minimum: training ends when the learning rate is below it.
        velocity: at a change of the learning rate, ``keep`` the velocity or ``rescale`` it.
        maximum_epochs: the most epochs, or None.
        precision: ``fp32``, or ``bf16`` arithmetic over fp32 parameters.
    """

    batch: BatchLimits
    split: Literal["accumulate", "separate"]
    learning_rate: float
    momentum: float
    clip: float
    label_smoothing: float
    compare: Literal["previous", "best"]
    divide_by: float
    minimum: float
    velocity: Literal["keep", "rescale"]
    maximum_epochs: int | None
    precision: Literal["fp32", "bf16"]

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Recipe":
        """Read a validated ``training`` section of config/models.yaml."""
        batch, schedule = settings["batch"], settings["schedule"]
        return cls(
            batch=BatchLimits(batch["sentences"], batch["words"], batch["part_words"]),
            split=batch["split"],
            learning_rate=settings["learning_rate"],
            momentum=settings["momentum"],
            clip=settings["clip"],
            label_smoothing=settings["label_smoothing"],
            compare=schedule["compare"],
            divide_by=schedule["divide_by"],
            minimum=schedule["minimum"],
            velocity=settings["velocity"],
            maximum_epochs=settings["maximum_epochs"],
            precision=settings["precision"],
        )
