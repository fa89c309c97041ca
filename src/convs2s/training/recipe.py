"""How a model is trained: what ``training`` in config/models.yaml says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from convs2s.data.batches import BatchLimits


@dataclass(frozen=True)
class Recipe:
    """A training recipe; the defaults, the paper's (section 4.2), are the schema's.

    Attributes:
        batch: limits of one update and of one micro-batch of it.
        split: ``accumulate`` sums the micro-batches of a batch into one update; ``separate``
            makes each an update.
        optimizer: ``nesterov``, ``sgd`` or ``adam``.
        learning_rate: of the first epochs, or the highest.
        momentum: Nesterov's.
        normalize: whether the summed gradient is divided by the batch's target ``tokens`` or by its
            ``sentences``.
        clip: largest norm of the gradient.
        label_smoothing: probability mass spread evenly over the vocabulary.
        schedule: ``plateau``, ``step`` or ``cosine``.
        compare: plateau: whether an epoch must beat the ``previous`` or the ``best`` validation
            loss.
        divide_by: plateau, step: the learning rate's divisor.
        minimum: plateau, step: training ends when the learning rate is below it.
        hold: step: epochs before the first division.
        every: step: epochs between two divisions.
        warmup: cosine: epochs in which the learning rate rises from 0.
        velocity: at a change of the learning rate, ``keep`` the velocity or ``rescale`` it.
        maximum_epochs: the most epochs, or None; the last one may be a part of an epoch.
        average: the last epochs whose mean parameters are the result, or None for the best epoch's.
        precision: ``fp32``, or ``bf16`` arithmetic over fp32 parameters.
        compile: whether torch.compile makes kernels of the network's own.
    """

    batch: BatchLimits
    split: Literal["accumulate", "separate"]
    optimizer: Literal["nesterov", "sgd", "adam"]
    learning_rate: float
    momentum: float
    normalize: Literal["tokens", "sentences"]
    clip: float
    label_smoothing: float
    schedule: Literal["plateau", "step", "cosine"]
    compare: Literal["previous", "best"]
    divide_by: float
    minimum: float
    hold: float
    every: float
    warmup: float
    velocity: Literal["keep", "rescale"]
    maximum_epochs: float | None
    average: int | None
    precision: Literal["fp32", "bf16"]
    compile: bool

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Recipe":
        """Read a validated ``training`` section of config/models.yaml."""
        batch, schedule = settings["batch"], settings["schedule"]
        return cls(
            batch=BatchLimits(batch["sentences"], batch["tokens"], batch["micro_batch_tokens"]),
            split=batch["split"],
            optimizer=settings["optimizer"],
            learning_rate=settings["learning_rate"],
            momentum=settings["momentum"],
            normalize=settings["normalize"],
            clip=settings["clip"],
            label_smoothing=settings["label_smoothing"],
            schedule=schedule["kind"],
            compare=schedule["compare"],
            divide_by=schedule["divide_by"],
            minimum=schedule["minimum"],
            hold=schedule["hold"],
            every=schedule["every"],
            warmup=schedule["warmup"],
            velocity=settings["velocity"],
            maximum_epochs=settings["maximum_epochs"],
            average=settings["average"],
            precision=settings["precision"],
            compile=settings["compile"],
        )
