"""config/models.yaml: named architectures with their training recipes."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from convs2s.config.architecture import Architecture
from convs2s.config.file_reference import ModelFile
from convs2s.config.section import (
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    Probability,
    Processes,
    Section,
)

MICRO_BATCH_TOKENS = 4000
"""Default of ``batch.micro_batch_tokens``. On a GPU it stands for a number that grows with the
memory (`tokens_for_memory`)."""


def tokens_for_memory(memory: float) -> int:
    """Return the maximum tokens of a micro-batch on a GPU with ``memory`` bytes.

    This is for recipes that keep the default of ``batch.micro_batch_tokens``.

    It is 4,000 tokens for each 10 GB, but not more than 32,000: larger micro-batches are hardly
    faster. WMT'14 English-French takes 4 GB for 4,000 tokens in fp32
    (tests/contract/test_gpu_budgets.py), and twice as much if micro-batches of some shapes are
    replayed as CUDA graphs (`convs2s.training.recorded`) and others are not.
    """
    return MICRO_BATCH_TOKENS * min(8, max(1, int(memory // 10**10)))


class Start(Section):
    """A trained model that a training begins with."""

    # The keys from and as are keywords of Python, so the fields have other names.
    model_config = ConfigDict(serialize_by_alias=True)

    model: ModelFile = Field(alias="from")
    """The model file, as a path or an http(s) URL. config/downloads.yaml may state the checksum of
    the file at the URL. The model must have the same vocabularies, BPE codes and network as the
    training. The key vocabulary_of of a task takes the vocabularies and codes from the file."""
    mode: Literal["continue", "initialise"] = Field(alias="as")
    """initialise takes only the model's weights, for example for fine-tuning on other data.
    continue resumes after the model's best epoch. It needs the data that the model was trained on
    and the same recipe, except learning_rate, schedule and maximum_epochs. The optimizer starts
    anew in both cases."""


class BatchLimits(Section):
    """The size of the batch of one update, and how it is split into micro-batches."""

    sentences: PositiveInt | None = 64
    """Maximum number of sentence pairs in one update; null sets no limit."""
    tokens: PositiveInt | None = None
    """Maximum number of tokens in one update, counted as the number of pairs x the longest side,
    which includes padding; null sets no limit."""
    micro_batch_tokens: PositiveInt | None = MICRO_BATCH_TOKENS
    """Maximum number of tokens that a device computes at a time. A larger batch is split into
    micro-batches of this size. null sets no limit. On a GPU the default, 4000, stands for 4,000
    tokens for each 10 GB of memory, at most 32,000; any other number is the limit on every device.
    With split: separate, each micro-batch is an update, so every number, also the default, is the
    limit on every device."""
    lengths: Literal["mixed"] | None = None
    """mixed: a batch has pairs of any lengths, in random order. null: a batch has pairs of about
    the same lengths, which leaves little padding (Sutskever et al. 2014, section 3.4)."""
    split: Literal["accumulate", "separate"] = "accumulate"
    """What is done with the micro-batches of a batch: accumulate sums their gradients into one
    update; separate makes an update of each, as the authors' code did."""


class ScheduleSettings(Section):
    """How the learning rate changes and when training ends."""

    kind: Literal["plateau", "step", "cosine"] = "plateau"
    """plateau: once an epoch is not better than the best epoch before it, the learning rate is
    divided after every epoch. With best_by, this begins after three epochs in a row in which
    neither BLEU nor the validation loss was better than before. step: it is divided at fixed times.
    cosine: it rises, and then falls to 0 at maximum_epochs along half a cosine; maximum_epochs must
    be stated."""
    divide_by: Annotated[float, Field(gt=1)] = 10.0
    """plateau and step: the number by which the learning rate is divided."""
    minimum: PositiveFloat = 0.0001
    """plateau and step: training ends when the learning rate is below this value. With plateau,
    this applies only after the first division."""
    hold: NonNegativeFloat = 5.0
    """step: number of epochs before the first division."""
    every: PositiveFloat = 1.0
    """step: number of epochs between two divisions."""
    warmup: NonNegativeFloat = 0.5
    """cosine: number of epochs in which the learning rate rises from 0 to learning_rate."""


class Recipe(Section):
    """How a model is trained, from the batch of one update to the end of the training."""

    start: Start | None = None
    """A trained model to begin with (docs/fine_tuning.md). null: the parameters are drawn at random
    with the seed of the run."""
    batch: BatchLimits = BatchLimits()
    """The batch of one update, over all workers. At least one of sentences and tokens must be a
    number."""
    optimizer: Literal["nesterov", "sgd", "adam"] = "nesterov"
    """The optimizer: nesterov (the paper's), sgd (the LSTM paper's) or adam, which needs fewer
    epochs on small corpora."""
    learning_rate: PositiveFloat = 0.25
    """Learning rate of the first epochs; with a cosine schedule, the highest learning rate."""
    momentum: Probability = 0.99
    """Momentum of the optimizer nesterov."""
    normalize: Literal["tokens", "sentences"] = "tokens"
    """What the gradient of a batch is divided by: the number of target tokens (section 4.2), or
    the number of sentences (the LSTM paper)."""
    clip: PositiveFloat = 0.1
    """Maximum norm of the gradient over all parameters. A gradient with a larger norm is scaled
    down to it."""
    label_smoothing: Probability = 0.0
    """Probability mass that the loss spreads over the whole vocabulary; 0 in the paper."""
    schedule: ScheduleSettings = ScheduleSettings()
    """How the learning rate changes and when training ends."""
    velocity: Literal["keep", "rescale"] = "keep"
    """What happens to Nesterov's velocity when the learning rate changes: keep does not change it,
    as in the authors' code; rescale multiplies it by the same factor as the rate, as in
    fairseq."""
    maximum_epochs: PositiveFloat | None = None
    """Number of epochs after which training ends; it may be a fraction. null: the schedule ends
    the training."""
    best_by: Literal["bleu"] | None = None
    """The measure by which an epoch is better than those before. The parameters of the best epoch
    are kept, and a plateau schedule keeps the learning rate as long as epochs get better. bleu: the
    BLEU of greedy translations of at most 2,000 validation pairs after each epoch; the validation
    loss decides between epochs of equal BLEU, and as long as BLEU is below 5. null: the validation
    loss, as in the paper."""
    average: Annotated[int, Field(ge=2)] | None = None
    """How many of the last epochs have their parameters averaged into the resulting model. null:
    the model has the parameters of the best epoch, as in the paper."""
    precision: Literal["auto", "fp32", "bf16"] = "fp32"
    """Number format in which training computes. Parameters are always kept in fp32. auto takes bf16
    where it is faster: on GPUs that have it, and on CPUs where a measurement finds it faster
    (docs/training.md). The choice is kept with the states, so a resumed training keeps it."""
    compile: bool = False
    """Whether the network is compiled with torch.compile, for long trainings on GPUs. Compilation
    takes minutes at the start of a training and needs a C compiler (a C++ compiler on a CPU). On a
    CPU, the compiled network was slower."""
    checkpoint_minutes: PositiveFloat = 15.0
    """Minutes from one saved state to the next. A killed training resumes from the last state. A
    state is also saved at the end of each epoch."""
    tensorboard: bool = False
    """Whether event files for TensorBoard are written beside the states; needs the extra
    convs2s[tensorboard]."""
    threads: Processes = 4
    """CPU threads of one training if cores in config.yaml is null."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Check that the keys fit each other."""
        schedule = self.schedule
        epochs = self.maximum_epochs
        if self.batch.sentences is None and self.batch.tokens is None:
            raise PydanticCustomError(
                "keys", "expected a number of sentences, tokens or both in batch"
            )
        if schedule.kind == "cosine" and (epochs is None or epochs <= schedule.warmup):
            raise PydanticCustomError(
                "keys",
                f"a cosine schedule needs maximum_epochs above its warmup ({schedule.warmup:g}), "
                f"not {'null' if epochs is None else epochs}",
            )
        # A plateau may start below the minimum, which applies only after the first division.
        if schedule.kind == "step" and self.learning_rate < schedule.minimum:
            raise PydanticCustomError(
                "keys",
                f"learning_rate {self.learning_rate:g} is below the schedule's minimum, "
                f"{schedule.minimum:g}, where training ends: lower the minimum",
            )
        return self


class ModelSettings(Section):
    """Named architectures with their training recipes: name -> the settings below.

    Models of your own stand in files of their own, config/models.d/NAME.yaml, with the same keys; a
    name must be new in all files. A model with "extends: OTHER" has all of OTHER's values except
    those that it states itself.
    """

    description: str
    """One line: what the model is and which part of the papers describes it."""
    extends: str | None = None
    """Name of another model, whose values are used for the keys that this model does not state.
    null: those keys have their defaults."""
    architecture: Architecture
    """The network: its kind, and the settings of that kind."""
    training: Recipe = Recipe()
    """The training recipe; the defaults are the paper's (section 4.2)."""
