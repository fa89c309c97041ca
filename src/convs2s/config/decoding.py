"""config/decodings.yaml: named ways to translate."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from convs2s.config.section import NonNegativeFloat, PositiveInt, Section
from convs2s.errors import UserError
from convs2s.files.limits import LARGEST_LENGTH_PENALTY, LONGEST_OUTPUT, WIDEST_BEAM

SPLIT_SENTENCES = True
"""Whether Python, the server and documents translate each sentence of a text by itself by default.

``convs2s translate`` has another default. Like the workflow with its test sets, the command takes
each line as one sentence, so that its translations can be compared with the workflow's.
"""

LengthPenalty = Annotated[float, Field(ge=0, le=LARGEST_LENGTH_PENALTY)]


class TunedLengthPenalty(Section):
    """A length penalty that the workflow tunes for each run."""

    tuned_on: str
    """The set on which alpha is tuned: a test set of the task, or valid
    (docs/length_penalty.md)."""


class MaximumLength(Section):
    """The maximum length of an output, as a function of the length of its source."""

    factor: Annotated[float, Field(ge=0, le=LONGEST_OUTPUT)] = 1.5
    """Target tokens allowed for each source token."""
    offset: Annotated[int, Field(ge=1, le=LONGEST_OUTPUT)] = 10
    """Target tokens allowed in addition."""


class DecodingSettings(Section):
    """Named ways to translate: name -> the settings below.

    The name is part of the results' file names.
    """

    beam: Annotated[int, Field(ge=1, le=WIDEST_BEAM)] = 5
    """Number of hypotheses kept at each step. 1 is greedy search; the paper uses 5 (section
    4.3)."""
    length_penalty: LengthPenalty | TunedLengthPenalty = 1.0
    """Exponent alpha of the final score, log-likelihood / length^alpha. 0 does not normalize by
    length. The paper uses 1, except for English-German, where it tunes alpha. In
    config/decodings.yaml, the mapping {tuned_on: SET} in place of the number makes the workflow
    tune alpha for each run."""
    minimum_length: Annotated[int, Field(ge=0, le=LONGEST_OUTPUT)] = 0
    """Minimum number of tokens in an output, not counting the end token (14 for the paper's
    summaries, section 4.1). If the maximum length of an output is lower, the output has the maximum
    length."""
    maximum_length: MaximumLength = MaximumLength()
    """Maximum number of tokens in an output, not counting the end token: factor x source tokens +
    offset, and never more than the model's positions. The default is low, so that an output that
    repeats itself without end is cut early (docs/translating.md)."""
    unknown_penalty: NonNegativeFloat = 0.0
    """Number that is subtracted from the log-probability of the unknown word at each step."""
    finished: Literal["replace", "leave"] = "replace"
    """What happens to the beam when a hypothesis is finished: replace gives its place to the next
    best hypothesis; leave makes the beam narrower by one (Sutskever et al. 2014, section 3.2)."""
    replace_unknown: bool = True
    """Whether the unknown words in an output are replaced (section 4.3). Each is replaced by the
    dictionary's translation of the source word with the highest attention or, if the dictionary
    does not have that source word, by the source word itself. A network without attention (kind:
    lstm) needs false."""
    vocabulary_selection: Literal["model", "full"] = "model"
    """Which target tokens may occur in the translation of a sentence: model leaves the choice to
    the model, which may select them by the source sentence (architecture.vocabulary_selection);
    full allows all of them."""
    ensemble: Literal["probabilities", "log_probabilities"] = "probabilities"
    """What an ensemble averages: probabilities, as the authors' code does since May 2017, or
    log_probabilities."""
    precision: Literal["auto", "fp32", "bf16", "int8"] = "fp32"
    """Number format in which the network computes. int8 rounds weights and activations to 8 bits,
    with one scale for each output of a weight matrix and for each place at which activations are
    read; only kind: convs2s on a CPU supports it. auto chooses int8 for kind: convs2s on a CPU,
    bf16 on a GPU that supports it, and fp32 otherwise. With auto, scores may therefore differ
    between machines (docs/translating.md)."""
    cuda_graphs: bool = True
    """Whether a GPU records a step of the search once and replays it. Without it, the CPU starts
    each operation of each step, and on an H100 the search took 1.8 to 5.1 times as long
    (docs/notes/gpu.md). The key has an effect only on a GPU, for ConvS2S without vocabulary
    selection."""
    batch_sentences: PositiveInt = 64
    """Maximum number of sentences translated at a time. On a CPU, only the speed depends on it."""
    batch_tokens: PositiveInt | None = 4000
    """Maximum number of source tokens translated at a time, counted as the number of sentences x
    the length of the longest one. A sentence that is longer than the limit is translated alone. The
    limit bounds memory and padding if sentences are long. On a CPU, translations do not depend on
    it. null: no limit."""

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        """Check that outputs can have the minimum length, if all have the same maximum length."""
        limit = self.maximum_length
        if limit.factor == 0 and self.minimum_length > limit.offset:
            raise PydanticCustomError(
                "lengths",
                f"minimum_length {self.minimum_length} is above the maximum length of every "
                f"output, {limit.offset} (maximum_length): lower minimum_length or raise "
                "maximum_length.offset",
            )
        return self

    @property
    def most_n_best(self) -> int:
        """The maximum number of translations that a search finds for a line."""
        return self.beam

    def check_n_best(self, wanted: int, place: str) -> None:
        """Check that a search finds ``wanted`` translations of a line.

        Raises:
            UserError: The beam is narrower than ``wanted``. The message begins with ``place``.
        """
        if wanted > self.beam:
            raise UserError(
                f"{place}: a beam of {self.beam} finds no more than {self.beam} translations: "
                "raise beam, or ask for fewer"
            )

    @property
    def alpha(self) -> float:
        """The length penalty as a number; a tuned penalty must have been replaced by its value."""
        assert not isinstance(self.length_penalty, TunedLengthPenalty)
        return self.length_penalty


GREEDY = DecodingSettings(beam=1)  # everything else at its default
