"""config/costs.yaml: the figures from which ``snakemake preflight`` estimates the cost of work."""

from convs2s.config.section import Items, PositiveFloat, Section


class CostFigure(Section):
    """A figure and its source."""

    value: PositiveFloat
    """The figure."""
    source: str
    """Where the figure comes from."""


class PrintedTraining(Section):
    """A training whose time a paper states."""

    text: str
    """The task whose training text the model is trained on."""
    model: str
    """A model of config/models.yaml."""
    hours: PositiveFloat
    """Hours of one training, summed over all its GPUs."""
    source: str
    """Where the figure comes from."""


class GpuRates(Section):
    """The peak rates of a GPU, as its maker states them, without sparsity."""

    name: str
    """Name of the GPU."""
    fp32: PositiveFloat
    """Rate in fp32, in TFLOP/s."""
    tf32: PositiveFloat | None = None
    """Rate of matrix products in TF32, in TFLOP/s; null: the GPU does not support TF32, and
    multiplies in fp32."""
    bf16: PositiveFloat | None = None
    """Rate of matrix products in bf16, in TFLOP/s; null: the GPU does not support bf16."""
    bandwidth: PositiveFloat
    """Bandwidth of the GPU's memory, in GB/s."""
    memory: PositiveFloat
    """Size of the GPU's memory, in GB."""
    link: PositiveFloat | None = None
    """Rate at which a GPU sends to the others of its node, in GB/s; null: trainings on several GPUs
    get no estimate."""
    network: PositiveFloat | None = None
    """Rate at which a node of eight GPUs sends to other nodes, in GB/s; null: trainings on several
    nodes get no estimate."""
    source: str
    """Where the figures come from."""


class Costs(Section):
    """Figures from which `snakemake preflight` estimates the cost of work, each with its source."""

    line_bytes: CostFigure
    """Bytes of a sentence in one language, as plain text."""
    compressed_line_bytes: CostFigure
    """Bytes of a sentence in one language, in a compressed file."""
    growth: CostFigure
    """Bytes of text for each byte of a compressed file."""
    store_bytes: CostFigure
    """Bytes of a sentence pair in a token store."""
    link_bytes: CostFigure
    """Bytes of the word alignment of a sentence pair."""
    extract_rate: CostFigure
    """Sentence pairs per second that one core reads from an archive."""
    prepare_rate: CostFigure
    """Sentence pairs per second that one core normalizes, tokenizes and filters."""
    truecase_rate: CostFigure
    """Sentence pairs per second that one core truecases, including the training of the
    truecaser."""
    count_rate: CostFigure
    """Sentence pairs per second whose words one core counts."""
    merge_rate: CostFigure
    """BPE merges per second that one core learns."""
    encode_rate: CostFigure
    """Sentence pairs per second that one core splits into tokens and writes to a token store."""
    align_rate: CostFigure
    """Sentence pairs per second that one core aligns."""
    align_bytes: CostFigure
    """Bytes of memory for each sentence pair that is aligned."""
    sentence_tokens: CostFigure
    """Tokens of a sentence in one language."""
    share_of_peak: CostFigure
    """Share of a GPU's peak rate that matrix products are assumed to reach."""
    block_passes: CostFigure
    """How often one forward and backward pass through a convolutional block reads or writes an
    array of the size of the block's output."""
    block_launches: CostFigure
    """Number of operations that the CPU starts on the GPU for each convolutional block and
    micro-batch, forward and backward."""
    new_shapes: CostFigure
    """Share of micro-batches whose shape is new, so that no recorded CUDA graph can be replayed."""
    update_launches: CostFigure
    """Number of operations that the CPU starts for each update in addition to the replayed ones."""
    launch_microseconds: CostFigure
    """Microseconds that the CPU takes to start one operation on the GPU."""
    paper_gpu: GpuRates
    """The GPU on which the papers measured their hours."""
    gpus: Items[GpuRates]
    """GPUs for which `snakemake preflight` can calculate the hours of trainings."""
    trainings: Items[PrintedTraining]
    """Trainings whose time a paper states."""

    def training(self, text: str, model: str) -> PrintedTraining | None:
        """Return what a paper states about the training of a model on a task's text, or None.

        NAME_fp32 is the model NAME without bf16 and compilation, as in the paper, so the hours that
        are listed for NAME apply to it as well.
        """
        model = model.removesuffix("_fp32")
        stated = {(entry.text, entry.model): entry for entry in self.trainings}
        return stated.get((text, model))
