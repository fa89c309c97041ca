"""config/costs.yaml: what work costs, for the budget of ``snakemake preflight``."""

from typing import Literal

from convs2s.config.section import Items, PositiveFloat, Section


class CostFigure(Section):
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
    printed: bool = False
    """Whether a paper states it, of its own devices; false: it was measured here."""
    source: str
    """Where the figure comes from."""


class GpuRates(Section):
    """The peak rates of a GPU, as its maker states them, without sparsity."""

    name: str
    """Its name."""
    fp32: PositiveFloat
    """TFLOP/s in fp32."""
    tf32: PositiveFloat | None = None
    """TFLOP/s of matrices in TF32; null: it has none, and multiplies in fp32."""
    bf16: PositiveFloat | None = None
    """TFLOP/s of matrices in bf16; null: it has none."""
    bandwidth: PositiveFloat
    """GB/s of its memory."""
    source: str
    """Where the figures come from."""


class Costs(Section):
    """What work costs, for the budget of "snakemake preflight".

    Each figure stands with where it comes from.
    """

    line_bytes: CostFigure
    """Bytes of a sentence of one side, as plain text."""
    compressed_line_bytes: CostFigure
    """Bytes of a sentence of one side in a compressed file."""
    growth: CostFigure
    """Bytes of text that a byte of a compressed file becomes."""
    store_bytes: CostFigure
    """Bytes of a pair in a token store."""
    link_bytes: CostFigure
    """Bytes of a pair's word alignment."""
    extract_rate: CostFigure
    """Pairs a second that one core reads from an archive."""
    prepare_rate: CostFigure
    """Pairs a second that one core normalizes, tokenizes and filters."""
    truecase_rate: CostFigure
    """Pairs a second that one core truecases, learning included."""
    count_rate: CostFigure
    """Pairs a second whose words one core counts."""
    merge_rate: CostFigure
    """BPE merges a second that one core learns."""
    encode_rate: CostFigure
    """Pairs a second that one core splits into tokens and writes to a token store."""
    align_rate: CostFigure
    """Pairs a second that one core aligns."""
    align_bytes: CostFigure
    """Bytes of memory for a pair that is aligned."""
    sentence_tokens: CostFigure
    """Tokens of a sentence of one side."""
    share_of_peak: CostFigure
    """Share of a GPU's matrix rate that products reach, for the estimates of GPUs."""
    block_passes: CostFigure
    """How often a training reads or writes as many numbers as the outputs of a block."""
    block_operations: CostFigure
    """Operations that the host starts for each block of a micro-batch, forward and backward."""
    operation_microseconds: CostFigure
    """Microseconds in which the host starts one of them."""
    paper_gpu: GpuRates
    """The GPU that the papers' hours are of."""
    gpus: Items[GpuRates]
    """GPUs for which the hours of the papers' trainings are estimated."""
    trainings: Items[KnownTraining]
    """Trainings whose time is known; the time of any other one is not."""

    def training(self, text: str, model: str) -> KnownTraining | None:
        """Return what a training of a model on a task's text takes; None where it is not known.

        A paper's hours are those of its recipe, which models ending in _fp32 have too.
        """
        known = {(entry.text, entry.model): entry for entry in self.trainings}
        if (text, model) in known:
            return known[text, model]
        papers = known.get((text, model.removesuffix("_fp32")))
        return papers if papers and papers.printed else None
