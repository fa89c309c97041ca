"""config.yaml: every knob that a user turns; and the bounds of options of commands."""

import os
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from convs2s.config.runs import MOST_SEED
from convs2s.config.section import (
    DistinctItems,
    Expecting,
    FileName,
    Items,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Processes,
    Section,
    SomeItems,
    Text,
    Values,
)
from convs2s.files.limits import MOST_LINES_SHOWN, MOST_PROCESSES, MOST_RESAMPLES

HomePath = Annotated[FileName, AfterValidator(os.path.expanduser)]  # may start with ~

Device = Literal["auto", "cpu", "cuda"]  # where work is done; auto is a GPU where there is one
Products = Literal["auto", "blas", "onednn"]


class Plots(Section):
    """What the attention plots show."""

    sentences: Items[PositiveInt] = (1, 2, 3)
    """Sentences of the test set to plot, counted from 1."""


class Overrides(Section):
    """Single values to change without editing config/."""

    tasks: dict[str, Values] = {}
    """Task name -> keys of config/tasks/NAME.yaml to replace."""
    models: dict[str, Values] = {}
    """Model name -> keys of config/models.yaml to replace."""
    decodings: dict[str, Values] = {}
    """Decoding name -> keys of config/decodings.yaml to replace."""


class Options(Section):
    """The options of a user.

    Settings of one machine (mirrors, cores) go in config.local.yaml, which has the same keys, is
    not under version control and wins.
    """

    scale: str = "paper"
    """What stands for the paper's data and models: one of config/scales, such as multi30k, demo."""
    tasks: SomeItems[str] | None = None
    """Tasks that preflight and the stage targets (download, prepare, align, train, decode,
    evaluate, figures) cover; null takes those of the paper's tables."""
    mirrors: Items[HomePath] = ()
    """Folders or URLs asked before the hosts; each has https://HOST/PATH as MIRROR/HOST/PATH."""
    scatter_above: NonNegativeInt = 100
    """Megabytes of a task's files of training text from which on the text is prepared in parts,
    side by side (16, or as many as snakemake --set-scatter parts=N says); below, by one job.
    Results do not depend on it."""
    cores: Processes | None = None
    """CPU threads of one training or decoding; null: the recipe's, in config/models.yaml."""
    device: Device = "auto"
    """Where to train and decode; auto takes a GPU where there is one."""
    products: Products = "auto"
    """Library of the matrix products of a training in fp32 on a CPU: blas (MKL on x86), onednn, or
    auto: the faster one on this machine, which is measured once and kept below the user's cache
    folder (convs2s kernels prints it). They round differently; training.json names it."""
    gpus: Processes | None = None
    """GPUs of one training, on each of its nodes; each has a worker that takes its share of every
    batch; null takes one."""
    nodes: Processes = 1
    """Machines of one training: a Slurm job of so many nodes, with so many GPUs on each as gpus
    says, or with one worker each on CPUs. The global batch stays as it is."""
    states: Text | None = None
    """Folder or URL, such as s3://BUCKET/states, where trainings keep their states as well as
    beside their models: for jobs whose machines share no disk (docs/cloud.md). null: nowhere."""
    container: Text | None = None
    """Image in which snakemake --sdm apptainer runs jobs: a .sif file, or docker://NAME."""
    rouge_exceptions: HomePath | None = None
    """File of irregular forms for ROUGE's stemmer, a word, a tab and its base form a line
    (docs/rouge.md says how to make it); null: it stems without."""
    published: HomePath | None = None
    """Ledger that somebody published, a file or the http(s) URL of one (docs/ledger.md): the
    paper's tables take from it the runs whose inputs are the very same, mark them, and nothing is
    trained for them; null: every run is made here."""
    extensions: DistinctItems[FileName] = ()
    """Files of Python that add networks, preparations or metrics (docs/extending.md): paths from
    the folder where the workflow runs. They are run as the workflow's own code is."""
    plots: Plots = Plots()
    """What the attention plots show."""
    overrides: Overrides = Overrides()
    """Single values to change without editing config/, for example models: {small: {training:
    {clip: 1.0}}}."""


class CommandOptions(Section):
    """What options of commands may be; each by the name of its option."""

    threads: Processes = 1
    cpus: Processes | None = None
    workers: Annotated[NonNegativeInt, Field(le=MOST_PROCESSES)] = 1
    nodes: Processes = 1
    seed: Annotated[NonNegativeInt, Field(le=MOST_SEED)] = 1
    time_limit: PositiveFloat | None = None  # in minutes
    checkpoint_minutes: PositiveFloat | None = None
    bytes: PositiveInt | None = None
    samples: Annotated[PositiveInt, Field(le=MOST_RESAMPLES)] = 1000
    most: Annotated[PositiveInt, Field(le=MOST_LINES_SHOWN)] = 100
    feature: Annotated[
        str, Expecting("expected a name without blanks, '=' and '|'", pattern=r"^[^\s=|]+$")
    ] = "Model"
