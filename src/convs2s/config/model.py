"""config/models.yaml: named architectures with their training recipes."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from convs2s.config.architecture import Architecture, NetworkSettings
from convs2s.config.file_reference import check_model_reference
from convs2s.config.section import (
    FileName,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    Probability,
    Processes,
    Section,
)
from convs2s.errors import UserError


class Start(Section):
    """A trained model that a training begins with."""

    model_config = ConfigDict(serialize_by_alias=True)  # both keys are words of Python

    model: FileName = Field(alias="from")
    """The model file: a path, or an http(s) URL, whose checksum config/downloads.yaml may state.
    Its vocabularies, BPE codes and network must be the training's (a task's vocabulary_of)."""
    mode: Literal["continue", "initialise"] = Field(alias="as")
    """initialise takes its weights and nothing else, as for fine-tuning on other data; continue
    resumes after its best epoch with the data that it was trained on, by the same recipe except
    learning_rate, schedule and maximum_epochs. The optimizer starts anew in either case."""


class BatchLimits(Section):
    """How large the batch of one update is, and how it is split where a device cannot take it."""

    sentences: PositiveInt | None = 64
    """Most sentence pairs of one update; null sets no limit."""
    tokens: PositiveInt | None = None
    """Most tokens of one update: sentences x longest side, padding included; null sets no limit."""
    micro_batch_tokens: PositiveInt | None = 4000
    """Most tokens that a device takes at a time, as a micro-batch; null sets no limit."""
    lengths: Literal["mixed"] | None = None
    """mixed: pairs of any lengths in a batch, in random order; null: of about the same lengths
    (Sutskever et al. 2014, section 3.4), which leaves little padding."""
    split: Literal["accumulate", "separate"] = "accumulate"
    """What becomes of the micro-batches: accumulate sums their gradients into one update, separate
    makes each its own update as the authors' code did."""


class ScheduleSettings(Section):
    """How the learning rate changes and when training ends."""

    kind: Literal["plateau", "step", "cosine"] = "plateau"
    """plateau: once the validation perplexity stops improving, divided after every epoch; step:
    divided at fixed times; cosine: a rise, then half a cosine to 0 at maximum_epochs (needed)."""
    divide_by: Annotated[float, Field(gt=1)] = 10.0
    """plateau, step: what the learning rate is divided by."""
    minimum: PositiveFloat = 0.0001
    """plateau, step: training ends when the learning rate is below this."""
    hold: NonNegativeFloat = 5.0
    """step: epochs before the first division."""
    every: PositiveFloat = 1.0
    """step: epochs between two divisions."""
    warmup: NonNegativeFloat = 0.5
    """cosine: epochs in which the learning rate rises from 0."""


class Recipe(Section):
    """How a model is trained, from the batch of one update to the end of the training."""

    start: Start | None = None
    """A trained model to begin with (docs/fine_tuning.md); null: the seed draws the parameters."""
    batch: BatchLimits = BatchLimits()
    """The batch of one update, over all workers; at least one of sentences and tokens is stated."""
    optimizer: Literal["nesterov", "sgd", "adam"] = "nesterov"
    """nesterov (the paper's), sgd (the LSTM's) or adam: fewer epochs on small corpora."""
    learning_rate: PositiveFloat = 0.25
    """Learning rate of the first epochs; of a cosine schedule the highest one."""
    momentum: Probability = 0.99
    """Nesterov's momentum."""
    normalize: Literal["tokens", "sentences"] = "tokens"
    """What a batch's gradient is divided by: target tokens (section 4.2), or sentences (LSTM)."""
    clip: PositiveFloat = 0.1
    """Largest norm of the gradient over all parameters; a larger one is rescaled to it."""
    label_smoothing: Probability = 0.0
    """Probability mass spread over the vocabulary; 0 in the paper."""
    schedule: ScheduleSettings = ScheduleSettings()
    """How the learning rate changes and when training ends."""
    velocity: Literal["keep", "rescale"] = "keep"
    """Nesterov's velocity at a change of the rate: keep (the authors' code), rescale (fairseq)."""
    maximum_epochs: PositiveFloat | None = None
    """Epochs after which training ends, perhaps with a part of one; null: by the schedule."""
    best_by: Literal["bleu"] | None = None
    """What makes an epoch better, so that its parameters are kept and a plateau's rate stays: bleu
    is the BLEU of at most 2,000 validation pairs, translated greedily after each epoch; null takes
    the validation loss, as the paper does."""
    average: Annotated[int, Field(ge=2)] | None = None
    """The result is the mean of so many last epochs; null: the best epoch, as in the paper."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Arithmetic of training; parameters are kept in fp32 in any case."""
    compile: bool = False
    """Compile the network with torch.compile: for long trainings on GPUs. It takes minutes at the
    start, needs a C compiler (on a CPU one of C++), and was slower on a CPU."""
    checkpoint_minutes: PositiveFloat = 15.0
    """Minutes between states, from which a killed training resumes; each epoch ends with one."""
    tensorboard: bool = False
    """Write event files for TensorBoard beside the states; needs the extra convs2s[tensorboard]."""
    threads: Processes = 4
    """CPU threads of one training, where config.yaml leaves cores at null."""


class ModelSettings(Section):
    """Named architectures with their training recipes: name -> the settings below.

    A model that says "extends: OTHER" has all of OTHER's values but those that it states itself.
    """

    description: str
    """One line: what the model is and where in the papers it comes from."""
    extends: str | None = None
    """The model whose values this one starts from; null starts from the defaults."""
    architecture: Architecture
    """The network: its kind, and the settings of that kind."""
    training: Recipe = Recipe()
    """The training recipe; the defaults are the paper's (section 4.2)."""


def check_model(where: str, network: NetworkSettings, recipe: Recipe) -> None:
    """Check what no single key of a model says; a UserError begins with ``where``."""
    schedule = recipe.schedule
    if recipe.start is not None:
        check_model_reference(recipe.start.model, f"{where}.training.start.from")
    if recipe.batch.sentences is None and recipe.batch.tokens is None:
        raise UserError(f"{where}.training.batch: expected a number of sentences, tokens or both")
    last = recipe.maximum_epochs
    if schedule.kind == "cosine" and (last is None or last <= schedule.warmup):
        raise UserError(
            f"{where}.training: a cosine schedule needs maximum_epochs above its warmup "
            f"({schedule.warmup:g}), not {last}"
        )
    if schedule.kind == "step" and recipe.learning_rate < schedule.minimum:
        raise UserError(
            f"{where}.training: learning_rate {recipe.learning_rate:g} is below the schedule's "
            f"minimum, {schedule.minimum:g}, where training ends: lower the minimum"
        )
    network.check(f"{where}.architecture")
