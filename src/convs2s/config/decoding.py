"""config/decodings.yaml: named ways to translate."""

from typing import Annotated, Literal

from pydantic import Field

from convs2s.config.section import NonNegativeFloat, PositiveInt, Section
from convs2s.errors import UserError
from convs2s.files.limits import LARGEST_LENGTH_PENALTY, LONGEST_OUTPUT, WIDEST_BEAM

LengthPenalty = Annotated[float, Field(ge=0, le=LARGEST_LENGTH_PENALTY)]


class TunedLengthPenalty(Section):
    """A length penalty that the workflow tunes for each run."""

    tuned_on: str
    """The test set of the task, or valid, on which alpha is tuned (docs/length_penalty.md)."""


class MaximumLength(Section):
    """The length at which an output is cut, by the length of its source."""

    factor: Annotated[float, Field(ge=0, le=LONGEST_OUTPUT)] = 1.5
    """Target tokens per source token."""
    offset: Annotated[int, Field(ge=1, le=LONGEST_OUTPUT)] = 10
    """Target tokens on top of that."""


class DecodingSettings(Section):
    """Named ways to translate: name -> the settings below.

    The name is part of the results' file names.
    """

    beam: Annotated[int, Field(ge=1, le=WIDEST_BEAM)] = 5
    """Hypotheses kept at each step; 1 is greedy search (section 4.3 of the paper uses 5)."""
    length_penalty: LengthPenalty | TunedLengthPenalty = 1.0
    """Exponent alpha of the final score, log-likelihood / length^alpha; 1 is the paper's but for
    en-de, where it is tuned; 0 does not normalize. In config/decodings.yaml a mapping in place of
    the number has the workflow tune it for each run."""
    minimum_length: Annotated[int, Field(ge=0, le=LONGEST_OUTPUT)] = 0
    """Tokens that an output has at least, its end token not counted (14 for summaries)."""
    maximum_length: MaximumLength = MaximumLength()
    """Tokens that an output has at most: factor x source tokens + offset, or minimum_length where
    that is more. Low enough to cut what repeats itself short (docs/translating.md)."""
    unknown_penalty: NonNegativeFloat = 0.0
    """Subtracted from the log-probability of the unknown word at each step."""
    finished: Literal["replace", "leave"] = "replace"
    """What becomes of a finished hypothesis's place in the beam: replace gives it to the next best
    one, leave narrows the beam (Sutskever et al. 2014, section 3.2)."""
    replace_unknown: bool = True
    """Whether an unknown word in the output is replaced by the dictionary's translation of the
    source word with the highest attention, or by that source word itself (section 4.3). A network
    without attention (kind: lstm) needs false."""
    vocabulary_selection: Literal["model", "full"] = "model"
    """Which target tokens a sentence's output may consist of: model leaves it to the model, which
    may select them by the source sentence (architecture.vocabulary_selection); full takes all."""
    ensemble: Literal["probabilities", "log_probabilities"] = "probabilities"
    """What an ensemble averages: probabilities (the authors' since May 2017), log_probabilities."""
    precision: Literal["auto", "fp32", "bf16", "int8"] = "fp32"
    """Arithmetic of the network; int8 rounds weights and activations to 8 bits, each output and
    each row with a scale of its own, on CPUs and for kind: convs2s alone. auto is int8 there, bf16
    on a GPU that has it, else fp32: scores may differ between machines (docs/translating.md)."""
    cuda_graphs: bool = False
    """Whether a GPU records a step once and replays it, where the CPU would start its operations
    one by one: for ConvS2S without vocabulary selection. No effect on a CPU. On an H100
    it was 1.8 to 5.1 times as fast (docs/notes/gpu.md)."""
    batch_sentences: PositiveInt = 64
    """Most sentences translated at a time; on a CPU only the speed depends on it."""
    batch_tokens: PositiveInt | None = 4000
    """Source tokens translated at a time, at most: sentences x the longest of them, unless one
    alone has more. It bounds memory and padding where sentences are long; on a CPU the result does
    not depend on it. null: no limit."""

    @property
    def most_n_best(self) -> int:
        """How many translations of a line a search finds at most."""
        return self.beam

    def check_n_best(self, wanted: int, place: str) -> None:
        """Check that a search finds so many translations of a line; errors begin with ``place``."""
        if wanted > self.beam:
            raise UserError(
                f"{place}: a beam of {self.beam} finds no more than {self.beam} translations: "
                "raise beam, or ask for fewer"
            )

    @property
    def alpha(self) -> float:
        """The length penalty as a number, which it is once it has been tuned."""
        assert not isinstance(self.length_penalty, TunedLengthPenalty)
        return self.length_penalty


GREEDY = DecodingSettings(beam=1)  # all else is as it comes
