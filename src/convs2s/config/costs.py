"""config/costs.yaml: what work costs, for the budget of ``snakemake preflight``."""

from typing import Literal

from convs2s.config.fields import Items, PositiveFloat
from convs2s.config.section import Section


class Figure(Section):
    """A measured number."""

    value: PositiveFloat
    """The figure."""
    source: str
    """Where it comes from."""


class KnownTraining(Section):
    """A training whose time is known."""

    text: str
    """The task whose text is trained on."""
    model: str
    """A model of config/models.yaml."""
    device: Literal["GPU", "core"]
    """What the hours are counted of."""
    hours: PositiveFloat
    """Hours of one training, over all its devices."""
    source: str
    """Where the figure comes from."""


class Costs(Section):
    """What work costs, for the budget of "snakemake preflight".

    Each figure stands with where it comes from.
    """

    line_bytes: Figure
    """Bytes of a sentence of one side, as plain text."""
    compressed_line_bytes: Figure
    """Bytes of a sentence of one side in a compressed file."""
    growth: Figure
    """Bytes of text that a byte of a compressed file becomes."""
    store_bytes: Figure
    """Bytes of a pair in a token store."""
    link_bytes: Figure
    """Bytes of a pair's word alignment."""
    extract_rate: Figure
    """Pairs a second that one core reads from an archive."""
    prepare_rate: Figure
    """Pairs a second that one core normalizes, tokenizes and filters."""
    truecase_rate: Figure
    """Pairs a second that one core truecases, learning included."""
    count_rate: Figure
    """Pairs a second whose words one core counts."""
    merge_rate: Figure
    """BPE merges a second that one core learns."""
    encode_rate: Figure
    """Pairs a second that one core splits into tokens and writes to a token store."""
    align_rate: Figure
    """Pairs a second that one core aligns."""
    align_bytes: Figure
    """Bytes of memory for a pair that is aligned."""
    trainings: Items[KnownTraining]
    """Trainings whose time is known; the time of any other one is not."""
