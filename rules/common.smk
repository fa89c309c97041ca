"""The configuration, and the input functions and constraints that several rules share."""

import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

# Jobs find this checkout's package and the Python that runs Snakemake; a conda environment's own
# Python still comes first.
ROOT = Path(str(workflow.current_basedir)).parent
sys.path.insert(0, str(ROOT / "src"))
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

from convs2s import workflow as flow
from convs2s.config import load
from convs2s.data.corpus import parse_file_reference
from convs2s.errors import UserError

try:
    settings = load(Path.cwd(), config)
except UserError as error:
    raise WorkflowError(str(error))

options, scale, tasks = settings.options, settings.scale, settings.tasks
RESULTS, DOWNLOADS = scale["results_dir"], scale["downloads_dir"]


pathvars:
    results=RESULTS,
    downloads=DOWNLOADS,
    logs=f"{RESULTS}/logs",


scattergather:
    shards=options["shards"],


wildcard_constraints:
    task=flow.alternatives(tasks),
    lang="[a-z]+(_[a-z]+)?",
    split="[a-z][a-z0-9_]*",
    testset="[a-z][a-z0-9_]*",
    model=flow.alternatives(settings.models),
    run="seed[0-9]+|ensemble[0-9]+",
    decoding=flow.alternatives(settings.decodings),


def script_code(name):
    """The fingerprint of a script and of everything in the package that it runs."""
    return flow.fingerprint(ROOT / "workflow" / "scripts" / name)


def files_of(task, split):
    """The files that a split is extracted from, where downloads put them."""
    pairs = flow.file_pairs(tasks[task], split)
    files = [parse_file_reference(reference) for pair in pairs for reference in pair]
    return list(dict.fromkeys(str(file.path(Path(DOWNLOADS))) for file in files))


def text_path(wildcards, path):
    """A path below the folder of the task whose text the wildcards' task shares."""
    return f"{RESULTS}/{flow.text_of(tasks, wildcards.task)}/{path}"


def languages_of(wildcards):
    """The source and target languages of the wildcards' task."""
    return [tasks[wildcards.task]["languages"][side] for side in ("source", "target")]


def both_sides(wildcards, stage, part):
    """The source and target files of a part of the corpus at a stage."""
    return [
        text_path(wildcards, f"corpus/{stage}/{part}.{lang}.zst")
        for lang in languages_of(wildcards)
    ]


def codes(wildcards, language):
    """The BPE codes of a language, or no file where words are kept whole."""
    name = flow.codes_name(tasks[wildcards.task]["vocabulary"], language)
    return [f"{RESULTS}/{wildcards.task}/vocabulary/{name}"] if name else []


def threads(wildcards):
    """CPU threads of a training or decoding. Rounding depends on their number, so a machine with
    fewer cores runs as many, only slower."""
    return options["cores"] or settings.models[wildcards.model]["training"]["threads"]


def test_side(wildcards, stage, side):
    """One side of a test set, raw or tokenized.

    Raises:
        UserError: the task has no such test set.
    """
    flow.file_pairs(tasks[wildcards.task], wildcards.testset)
    language = tasks[wildcards.task]["languages"][side]
    return text_path(wildcards, f"corpus/{stage}/{wildcards.testset}.{language}.zst")


def headline_files(task, suffix):
    """A file of each headline test set and run: those that a task's headline rests on."""
    headline = tasks[task]["headline"]
    folder = f"{RESULTS}/{task}/models/{headline['model']}"
    return [
        f"{folder}/seed{seed}/{test}.{headline['decoding']}.{suffix}"
        for test in headline["tests"]
        for seed in headline["seeds"]
    ]
