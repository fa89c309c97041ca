"""The input functions of rules/training.smk."""

import os

from convs2s.pipeline.process import granted_gpus, logged
from convs2s.training.version import TRAINING_VERSION

# What a training is granted. A scheduler ends a job at its time limit; on this machine nobody does.
GRANTED = "--workers {resources.gpu}"
if workflow.remote_exec:
    GRANTED += " --time-limit {resources.runtime}"

# Where the trainer itself keeps what it says.
LOG_OF_ALL_TRIES = "$(dirname {output.model})/state/train.log"

TRAINING_OPTIONS = (
    "{params.folder} --settings {input.settings} --seed {wildcards.seed}"
    " --output {output.model} {params.tables} {resources.machine}"
)


def gpus(wildcards):
    """GPUs of one training: what config.yaml says, else all that --resources gpu=N grants, else 1.

    Where fewer are granted, Snakemake lowers the number to that. It tells a cluster's job nothing
    of --resources, but there the scheduler tells which GPUs it has granted: those of one node. What
    is submitted asks for those of all nodes.
    """
    if options.device == "cpu":
        return 0
    if workflow.remote_exec and granted_gpus(os.environ):
        return granted_gpus(os.environ)
    granted = workflow.global_resources.get("gpu").value
    if options.gpus is None and granted is not None:
        return granted
    return (options.gpus or 1) * (1 if workflow.remote_exec else options.nodes)


OF_A_TRAINING = {
    "mem_mb": lambda w, attempt: attempt * 16000,
    "runtime": "1d",  # at every attempt, as each goes on from the state of the one before
    "machine": lambda w: (
        f"--device {options.device} --products {options.products} --threads {threads(w)}"
        f" --nodes {options.nodes}"
    ),
}

# The job of several nodes runs on the first one, and starts a task on each by srun itself: the Slurm
# plugin knows this by `mpi`, and takes `tasks` for those of each GPU unless it is told of those too.
if options.nodes > 1:
    OF_A_TRAINING |= {"mpi": "srun", "tasks": options.nodes, "tasks_per_gpu": 0}


def tables_of_text(wildcards):
    """The tables of a text that a training takes, by the names of its options, and its beginning.

    Only models over words replace unknown ones by the dictionary, unless the task has them copied;
    some select their vocabulary; some read truecased text; some start from another model.
    """
    task, folder, tables = tasks[wildcards.task], text_folder(wildcards), {}
    start = settings.models[wildcards.model].training.start
    if start is not None:
        tables["start"] = local_files([start.model])
    if task.has_dictionary:
        tables["dictionary"] = [folder.dictionary]
    if settings.models[wildcards.model].architecture.selects_vocabulary:
        tables["candidates"] = [folder.candidates]
    if task.preparation.truecase:
        tables["truecasers"] = [folder.truecaser(language) for language in languages(wildcards)]
    return tables


def table_options(wildcards):
    """Those tables as options of a training's command."""
    tables = tables_of_text(wildcards).items()
    return " ".join(f"--{name} {' '.join(map(prefixed, paths))}" for name, paths in tables)
