"""The configuration, and the input functions and constraints that several rules share."""

import os
import sys
from pathlib import Path

from snakemake.utils import available_cpu_count

ROOT = Path(str(workflow.current_basedir)).parent
sys.path.insert(0, str(ROOT / "src"))  # this checkout's package, installed or not

from convs2s import scales
from convs2s.pipeline import workflow as flow
from convs2s.config import load, model_settings
from convs2s.data.corpus import parse_file_reference
from convs2s.download.download import local_path
from convs2s.paper.cells import cells
from convs2s.pipeline.fingerprint import fingerprint
from convs2s.pipeline.process import (
    failures_in_one_line,
    granted_gpus,
    provide_environment,
    release_stale_locks,
)
from convs2s.training.version import TRAINING_VERSION

provide_environment()
this_process_is_alive = release_stale_locks(Path(".snakemake"))

# All cores of this machine, where no number is asked for. `cores: all` in profiles/default would do,
# but Snakemake reads that profile beside `--profile profiles/slurm` too, and would cut the threads of
# a cluster's jobs to the cores of this machine. A run on a cluster always has `nodes` (--jobs).
if workflow.resource_settings.cores is None and workflow.resource_settings.nodes is None:
    workflow.resource_settings.cores = available_cpu_count()
    workflow.register_resource("_cores", workflow.resource_settings.cores)

with failures_in_one_line():
    settings = load(Path.cwd(), config)
    # Place of a file below the downloads folder -> its URL.
    UPSTREAM = {
        str(local_path(file.location, Path())): file.location
        for file in map(parse_file_reference, flow.references(settings.tasks))
        if file.is_url
    }

options, scale, tasks = settings.options, settings.scale, settings.tasks
RESULTS, DOWNLOADS = scale["results_dir"], scale["downloads_dir"]

# What of each table can be measured: ROUGE comes with summarization, and a GPU is timed where one
# is asked for, as nothing else says here that there will be one.
HAS_GPU = options["device"] == "cuda" or bool(workflow.global_resources.get("gpu").value)
UNMEASURED = ("rouge",) if HAS_GPU else ("rouge", "seconds_cuda")
CELLS = {
    name: [cell for cell in cells(settings, name) if not cell.measure.startswith(UNMEASURED)]
    for name in settings.paper
}

# The tasks that the stage targets cover, and those of them whose models are trained here.
STAGE_TASKS = options["tasks"] or list(
    dict.fromkeys(cell.task for table in CELLS.values() for cell in table)
)
TRAINED_TASKS = [task for task in STAGE_TASKS if not tasks[task]["released"]]


pathvars:
    results=RESULTS,
    downloads=DOWNLOADS,
    logs=f"{RESULTS}/logs",
    model=f"{RESULTS}/{{task}}/models/{{model}}",


scattergather:
    shards=options["shards"],


RUN = "seed[0-9]+|ensemble[0-9]+|released"


wildcard_constraints:
    task=flow.alternatives(tasks),
    lang="[a-z]+(_[a-z]+)?",
    split="[a-z][a-z0-9_]*",
    testset="[a-z][a-z0-9_]*",
    model=flow.alternatives(settings.models),
    baseline=flow.alternatives(settings.models),
    system=flow.alternatives(settings.models),
    scorer=flow.alternatives(settings.models),
    run=RUN,
    scorer_run=RUN,
    scatteritem="[0-9]+-of-[0-9]+",
    decoding=flow.alternatives(settings.decodings),
    device="cpu|cuda",


def script_code(name):
    """The fingerprint of a script and of everything in the package that it runs."""
    return fingerprint(ROOT / "workflow" / "scripts" / name)


def intermediate(paths):
    """Outputs that are removed once nothing needs them, unless the configuration keeps them."""
    return paths if options["keep_intermediates"] else temp(paths)


def files_of(task, split):
    """The files that a split is extracted from, where downloads put them."""
    with failures_in_one_line():
        pairs = flow.file_pairs(tasks, task, split)
    files = [parse_file_reference(reference) for pair in pairs for reference in pair]
    return list(dict.fromkeys(str(file.path(Path(DOWNLOADS))) for file in files))


def released_files(task):
    """The files of a task's released model, where downloads put them; none where it has none."""
    files = map(parse_file_reference, flow.released_references(tasks[task]))
    return list(dict.fromkeys(str(file.path(Path(DOWNLOADS))) for file in files))


def text_path(wildcards, path):
    """A path below the folder of the task whose text the wildcards' task shares."""
    return f"{RESULTS}/{flow.text_of(tasks, wildcards.task)}/{path}"


def languages_of(wildcards):
    """The source and target languages of the wildcards' task."""
    return [tasks[wildcards.task]["languages"][side] for side in ("source", "target")]


def side(wildcards, part, language):
    """One side of a part of the corpus, in the words that models read."""
    stage = flow.model_text(tasks[wildcards.task])
    return text_path(wildcards, f"corpus/{stage}/{part}.{language}.zst")


def both_sides(wildcards, part):
    """The source and target files of a part of the corpus, in the words that models read."""
    return [side(wildcards, part, language) for language in languages_of(wildcards)]


def words(wildcards, language):
    """How often each word of a side's training text occurs."""
    return text_path(wildcards, f"corpus/words/{language}.tsv.zst")


def codes(wildcards, language):
    """The BPE codes of a language, or no file where words are kept whole."""
    name = flow.codes_name(tasks[wildcards.task]["vocabulary"], language)
    return [f"{RESULTS}/{wildcards.task}/vocabulary/{name}"] if name else []


def memory_to_learn_codes(wildcards, input, attempt):
    """Megabytes for subword-nmt, which holds every type.

    A type took 1.2 KB: 214 bytes for a byte of the compressed tables (docs/benchmarks.md).
    """
    return attempt * max(4000, int(1000 + 300 * input.size_mb))


def what_to_binarize(wildcards, part):
    """A part of the corpus, with the codes and vocabularies of both sides."""
    languages = languages_of(wildcards)
    return {
        "text": both_sides(wildcards, part),
        "codes": [path for lang in languages for path in codes(wildcards, lang)],
        "vocabularies": [f"{RESULTS}/{wildcards.task}/vocabulary/{lang}.tsv" for lang in languages],
    }


def threads(wildcards):
    """CPU threads of a training or decoding.

    Rounding depends on their number, so a machine with fewer cores runs as many, only slower. Rules
    hand them and the device on as resources, as params of another value would make results stale.
    """
    return options["cores"] or settings.models[wildcards.model]["training"]["threads"]


def timing_threads(wildcards):
    """CPU threads of a timing: all that there are, so that no other job runs beside it here.

    A cluster's job has as many as any decoding: how many its node has is not known when it is
    submitted, and on the node Slurm would refuse a job step with more than were asked for.
    """
    if workflow.non_local_exec or workflow.remote_exec:
        return threads(wildcards)
    return options["cores"] or workflow.resource_settings.cores


# What a training is granted. A scheduler ends a job at its time limit; on this machine nobody does.
GRANTED = "--workers {resources.gpu}"
if workflow.remote_exec:
    GRANTED += " --time-limit {resources.runtime}"


def gpus(wildcards):
    """GPUs of one training: what config.yaml says, else all that --resources gpu=N grants, else 1.

    Where fewer are granted, Snakemake lowers the number to that. It tells a cluster's job nothing
    of --resources, but there the scheduler tells which GPUs it has granted.
    """
    if options["device"] == "cpu":
        return 0
    if workflow.remote_exec and granted_gpus(os.environ):
        return granted_gpus(os.environ)
    granted = workflow.global_resources.get("gpu").value
    return options["gpus"] or (1 if granted is None else granted)


def models(wildcards):
    """The model files of a run: one, or an ensemble's."""
    return model_files(wildcards.task, wildcards.model, wildcards.run)


def scorers(wildcards):
    """The model files of the run that rescores another one's n-best list."""
    return model_files(wildcards.task, wildcards.scorer, wildcards.scorer_run)


def model_files(task, model, run):
    """The model files of a run of a model."""
    folder = f"{RESULTS}/{task}/models/{model}"
    return [f"{folder}/{seed}/model.safetensors" for seed in flow.members(run)]


def run_facts(wildcards):
    """What stands beside the numbers of a run's translations."""
    return {
        "task": wildcards.task,
        "model": wildcards.model,
        "run": wildcards.run,
        "decoding": settings.decodings[wildcards.decoding],
        "scale": options["scale"],
    }


def development_set(wildcards):
    """The set that the length penalty of the wildcards' decoding is tuned on, if it is."""
    decoding = settings.decodings[wildcards.decoding]
    return scales.development_set(scale, tasks[wildcards.task], decoding)


def tuned(wildcards):
    """Where the tuned length penalty stands; no file where the number is stated."""
    development = development_set(wildcards)
    if development is None:
        return []
    name = f"{development}.{wildcards.decoding}.length_penalty.json"
    return [f"{RESULTS}/{wildcards.task}/models/{wildcards.model}/{wildcards.run}/{name}"]


def tuned_for_list(wildcards):
    """Likewise for an n-best list; the one that the tuning goes by comes before it."""
    return [] if wildcards.testset == development_set(wildcards) else tuned(wildcards)


def test_side(wildcards, stage, side):
    """One side of a test set, raw or tokenized."""
    with failures_in_one_line():
        flow.file_pairs(tasks, wildcards.task, wildcards.testset)
    language = tasks[wildcards.task]["languages"][side]
    return text_path(wildcards, f"corpus/{stage}/{wildcards.testset}.{language}.zst")


def headline_files(task, suffix):
    """A file of each headline test set and run: those that a task's headline rests on."""
    headline = tasks[task]["headline"]
    folder = f"{RESULTS}/{task}/models/{headline['model']}"
    return [
        f"{folder}/{run}/{test}.{headline['decoding']}.{suffix}"
        for test in headline["tests"]
        for run in flow.headline_runs(tasks[task])
    ]


def runs_to_compare(wildcards, model):
    """The translations of a model for a comparison: those of the seeds of the task's headline."""
    folder = f"{RESULTS}/{wildcards.task}/models/{model}"
    return [
        f"{folder}/seed{seed}/{wildcards.testset}.{wildcards.decoding}.jsonl"
        for seed in tasks[wildcards.task]["headline"]["seeds"]
    ]


def download_source(name):
    """Where a file comes from and what is known of it: the arguments of download."""
    url = UPSTREAM[name]
    known = settings.downloads.get(url, {"bytes": None, "sha256": None, "md5": None})
    if scale["checksums"]:
        with failures_in_one_line():
            listed = flow.checksum(Path(scale["checksums"]), name)
        known = {**known, "bytes": None, "sha256": listed}
    return {
        "url": url,
        "size": known["bytes"],
        "sha256": known["sha256"],
        "md5": None if scale["checksums"] else known["md5"],
    }


def tables_of_text(wildcards):
    """The tables of a text that a training takes, by the names of its options.

    Only models over words replace unknown ones by the dictionary; some select their vocabulary;
    some read truecased text.
    """
    task = tasks[wildcards.task]
    tables = {}
    if task["vocabulary"]["kind"] == "word":
        tables["dictionary"] = ["alignment/dictionary.tsv"]
    if settings.models[wildcards.model]["architecture"].get("vocabulary_selection"):
        tables["candidates"] = ["alignment/candidates.tsv"]
    if task["preparation"]["truecase"]:
        tables["truecasers"] = [f"corpus/truecaser.{lang}.tsv" for lang in languages_of(wildcards)]
    return {name: [text_path(wildcards, p) for p in paths] for name, paths in tables.items()}


def table_options(wildcards):
    """Those tables as options of a training's command."""
    tables = tables_of_text(wildcards).items()
    return " ".join(f"--{name} {' '.join(paths)}" for name, paths in tables)


def wanted_cells(name):
    """The scores that a table shows: those that exist, and all where `paper` or `speed` asks.

    A table by itself never starts a training: what was not run says so.
    """
    paths = [path for cell in CELLS[name] for path in cell.paths]
    targets = workflow.dag_settings.targets
    is_asked = "paper" in targets or (name == "table3" and "speed" in targets)
    return [path for path in dict.fromkeys(paths) if is_asked or Path(path).exists()]


def of_tasks(path, chosen=STAGE_TASKS):
    """A path below the folder of each chosen task."""
    return [f"{RESULTS}/{task}/{path}" for task in chosen]


def of_headlines(suffix):
    """A file of each headline run of the chosen tasks."""
    return [path for task in STAGE_TASKS for path in headline_files(task, suffix)]


def plots_of(task):
    """The learning curves of a task's headline trainings and the attention maps of its first run."""
    translations = headline_files(task, "jsonl")
    models = [] if tasks[task]["released"] else sorted({str(Path(p).parent) for p in translations})
    first = translations[0].removesuffix(".jsonl")
    kind = settings.models[tasks[task]["headline"]["model"]]["architecture"]["kind"]
    lines = [] if kind == "lstm" else options["plots"]["sentences"]  # an LSTM has no attention
    attention = [f"{first}.attention{line}" for line in lines]
    return [f"{path}.svg" for path in [*(f"{model}/curve" for model in models), *attention]]
