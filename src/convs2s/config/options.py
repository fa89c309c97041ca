"""The keys of config.yaml, and the bounds of the commands' options."""

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
    Values,
)
from convs2s.files.limits import MOST_LINES_SHOWN, MOST_PROCESSES, MOST_RESAMPLES

# A leading ~ is expanded.
HomePath = Annotated[FileName, AfterValidator(os.path.expanduser)]

# auto: a GPU if the machine has one, otherwise the CPU.
Device = Literal["auto", "cpu", "cuda"]
# Library of the matrix products in fp32 on a CPU.
Products = Literal["auto", "blas", "onednn"]


class Plots(Section):
    """What the attention plots show."""

    sentences: Items[PositiveInt] = (1, 2, 3)
    """Line numbers, from 1, of the sentences of the test set that are plotted."""


class Overrides(Section):
    """Values that replace single values of the files in config/."""

    tasks: dict[str, Values] = {}
    """Task name -> keys of config/tasks/NAME.yaml, with their new values."""
    models: dict[str, Values] = {}
    """Model name -> keys of its entry in config/models.yaml, with their new values."""
    decodings: dict[str, Values] = {}
    """Decoding name -> keys of its entry in config/decodings.yaml, with their new values."""


class Options(Section):
    """The options of the workflow.

    Put the settings of one machine (mirrors, cores) into config.local.yaml. It has the same keys,
    overrides config.yaml and is not under version control.
    """

    scale: str = "paper"
    """The data and models that stand in for the paper's: the name of a file in config/scales, such
    as multi30k or demo. The scale named paper has the paper's data and models."""
    tasks: SomeItems[str] | None = None
    """Tasks that preflight and the stage targets (download, prepare, align, train, decode,
    evaluate, figures) cover. null: the tasks of the paper's tables."""
    preflight_gpu: str | None = None
    """The GPU for which preflight calculates the hours of trainings: a name in gpus of
    config/costs.yaml, such as H100. null: preflight measures updates on this machine or, if the
    jobs run on other machines, takes the first GPU in gpus of config/costs.yaml."""
    mirrors: Items[HomePath] = ()
    """Folders or base URLs in which a download is looked up before its host is asked. A mirror has
    the file of https://HOST/PATH at MIRROR/HOST/PATH."""
    scatter_above: NonNegativeInt = 100
    """Size in megabytes of a task's training files. From this size on, parallel jobs prepare the
    training text in parts: 16 parts, or N with `snakemake --set-scatter parts=N`. A smaller text is
    prepared by one job. Results do not depend on it."""
    cores: Processes | None = None
    """CPU threads of one training or decoding. null: training.threads of the model
    (config/models.yaml)."""
    device: Device = "auto"
    """Device for training and decoding. auto takes a GPU if the machine has one."""
    products: Products = "auto"
    """Library that computes the matrix products of a training in fp32 on a CPU: blas (MKL on x86),
    onednn, or auto. auto takes the library that is faster on this machine; the speeds are measured
    once and kept in the user's cache folder (`convs2s kernels` prints them). The libraries round
    differently, so training.json records which one was used."""
    gpus: Processes | None = None
    """Number of GPUs that one training uses on each of its nodes. Each GPU has a worker, which
    takes its share of every batch. null: one GPU."""
    nodes: Processes = 1
    """Number of machines that one training uses, as a Slurm job with this many nodes. Each node has
    the number of GPUs that gpus states or, on CPUs, one worker. The batch of an update has the same
    size for any number of nodes."""
    states: FileName | None = None
    """Folder or URL, such as s3://BUCKET/states, to which trainings copy the states that they keep
    beside their models. State it if the jobs' machines do not share a disk (docs/cloud.md). null:
    no copies are made."""
    container: FileName | None = None
    """Container image in which `snakemake --sdm apptainer` runs the jobs: a .sif file or
    docker://NAME. null: jobs run without a container."""
    rouge_exceptions: HomePath | None = None
    """File of irregular forms for ROUGE's stemmer. Each line has a word, a tab and the word's base
    form (docs/rouge.md says how to make the file). null: the stemmer knows no irregular forms."""
    published: HomePath | None = None
    """A published ledger, as a file or an http(s) URL (docs/ledger.md). If it has a run with
    identical inputs, the paper's tables show the scores of that run and mark them, and no model is
    trained. null: every run is made here."""
    extensions: DistinctItems[FileName] = ()
    """Python files that add networks, preparations or metrics (docs/extending.md), as paths
    relative to the folder where the workflow runs. Their code runs with the user's rights, like the
    workflow's own."""
    plots: Plots = Plots()
    """What the attention plots show."""
    overrides: Overrides = Overrides()
    """Values that replace single values of the files in config/, for example models: {small:
    {training: {clip: 1.0}}}."""


class CommandOptions(Section):
    """The types and bounds of options of the commands, by the name of the option."""

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
        str,
        Expecting("expected a name without blanks, '=' and '|'", pattern=r"^[^\s=|]+$"),
    ] = "Model"
