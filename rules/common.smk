"""The configuration, and what several files of rules share."""

from pathlib import Path

from convs2s.config.corpus import PREPARATIONS
from convs2s.config.extensions import digest_of_extension
from convs2s.config.file_reference import masked, parse_file_reference, with_texts
from convs2s.config.load import load
from convs2s.config.runs import RUN_PATTERN, SEED_PATTERN, alternatives
from convs2s.errors import UserError
from convs2s.layout import Layout
from convs2s.paper.cells import cells
from convs2s.paper.ledger import published_file, published_runs

with failures_in_one_line():
    given_by = "config of the module" if IS_MODULE else None  # in messages, for config.yaml
    settings = load(Path.cwd(), config, shipped=ROOT, given_by=given_by)

options, scale, tasks = settings.options, settings.scale, settings.tasks


pathvars:
    results=scale.results_dir,
    downloads=scale.downloads_below("<results>"),
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",
    corpus="<results>/{task}/corpus",
    model="<results>/{task}/models/{model}",


# As another workflow has them, where its `module` states pathvars.
layout = Layout(workflow.pathvars.apply("<results>"), workflow.pathvars.apply("<downloads>"))
LOGS, BENCHMARKS = map(workflow.pathvars.apply, ("<logs>", "<benchmarks>"))

# What the documented interface of Snakemake does not tell. It puts the `prefix` of a module before
# the paths of inputs, outputs and logs, wherever they come from, and the folder of local copies where
# a storage plugin keeps the files; paths among params, and those that Python looks at, are made by
# `prefixed`. Input functions run later, when another module's names and prefix may be in force, so
# this module's are kept.
module_of_rules = workflow.modifier
HAS_STORAGE = workflow.storage_settings.default_storage_provider is not None
GRANTED_GPUS = workflow.global_resources.get("gpu").value  # by --resources gpu=N; None without


def is_asked(target):
    """Whether a target is asked for by its name."""
    return module_of_rules.modify_rulename(target) in workflow.dag_settings.targets


def is_on_cluster():
    """Whether this process submits jobs, or is such a job."""
    return workflow.non_local_exec or workflow.remote_exec


def prefixed(path):
    """Return where a file of this workflow lies on this machine."""
    return str(module_of_rules.path_modifier.modify(str(path)))


def is_there(path):
    """Whether a file is there, or in the storage; `path` is without the prefix of a module."""
    file = module_of_rules.path_modifier.modify(str(path))
    return file.flags["storage_object"].exists() if HAS_STORAGE else Path(file).exists()


with failures_in_one_line():
    references = {name for task in tasks.values() for name in task.references()}
    parsed = {name: parse_file_reference(name) for name in references}
    OWN_FILES = {name: file.location for name, file in parsed.items() if not file.is_url}
    PLACES = {
        "results_dir": prefixed(layout.results),
        "downloads_dir": prefixed(layout.downloads),
        "files": {  # each with the #MEMBER after it
            name: prefixed(path) + name.removeprefix(path) for name, path in OWN_FILES.items()
        },
    }
on_disk = settings.placed(**PLACES)


report: "../workflow/report/workflow.rst"


container: options.container


STAND_IN = {"scale": options.scale, "stand_in": scale.stand_in}  # beside every score


# What of each table can be measured: a GPU is timed where one is asked for, as nothing else says
# here that there will be one, and where its times are there. What waits for licensed files is left
# out: asked for by name, such a task says which files those are.
CELLS = {name: cells(settings, name, layout.run_files) for name in settings.paper}
HAS_GPU = options.device == "cuda" or bool(GRANTED_GPUS)
WAITING = {
    task
    for task in {cell.task for table in CELLS.values() for cell in table}
    for file in map(parse_file_reference, tasks[task].needed_references())
    if not file.is_url and not is_there(file.location)
}

# The ledger that somebody published, and its runs: what it holds is not made here. Planning reads it,
# so it is no job's to download.
with failures_in_one_line():
    PUBLISHED_FILE = published_file(options, Path(".snakemake/convs2s/published"))
    PUBLISHED = published_runs(PUBLISHED_FILE)
    # Without it Snakemake would take scores that are there for finished. Of a module, another
    # workflow's rule may make it.
    if options.rouge_exceptions and not (IS_MODULE or is_there(options.rouge_exceptions)):
        raise UserError(
            f"rouge_exceptions: {options.rouge_exceptions}: no such file; docs/rouge.md says how to "
            "make it"
        )


def to_make(cell):
    """Return a cell with the runs that are made here; None where there is nothing to make."""
    has_list = cell.n_best_file is None or is_there(cell.n_best_file)  # a user's own may be missing
    if not (has_list and cell.can_be_made(HAS_GPU or all(map(is_there, cell.paths)), WAITING)):
        return None
    return cell.drop_published_runs(  # what was run here counts before what is published
        lambda file, measure: (file.fingerprint, measure) in PUBLISHED and not is_there(file.path)
    )


PLANNED = {name: list(filter(None, map(to_make, table))) for name, table in CELLS.items()}
PLANNED_CELLS = [cell for table in PLANNED.values() for cell in table]

DRAWN = {name for name in CELLS if "figure" in name}  # of which there is a plot, not only a table

# The tasks that the stage targets cover.
STAGE_TASKS = options.tasks or list(dict.fromkeys(cell.task for cell in PLANNED_CELLS))


SIDES = ["source", "target"]
PARTS = [f"{number}-of-{options.shards}" for number in range(1, options.shards + 1)]


wildcard_constraints:
    **dict.fromkeys(["model", "baseline", "system", "scorer"], alternatives(settings.models)),
    **dict.fromkeys(["run", "scorer_run"], f"{RUN_PATTERN}|released"),
    **dict.fromkeys(["shard", "block"], alternatives(PARTS)),
    **dict.fromkeys(["split", "testset"], "[a-z][a-z0-9_]*"),
    task=alternatives(tasks),
    side=alternatives(SIDES),
    lang="[a-z]+(_[a-z]+)?",
    seed=SEED_PATTERN,
    decoding=alternatives(settings.decodings),
    device="cpu|cuda",
    metric="bleu|rouge",
    line="[1-9][0-9]*",
    phrases=alternatives(settings.phrases),
    table=alternatives(CELLS.keys() - DRAWN),


def intermediate(paths):
    """Outputs that are removed once nothing needs them, unless the configuration keeps them."""
    return paths if options.keep_intermediates else temp(paths)


def text_folder(wildcards):
    """The folder of the task whose text the wildcards' task shares."""
    return layout.task(tasks[wildcards.task].text_name)


def training_text(wildcards, part="train"):
    """Both sides of a part of the corpus, by name, in the words that models read."""
    folder, stage = text_folder(wildcards), tasks[wildcards.task].model_text
    return {side: folder.text(stage, part, side) for side in SIDES}


def test_side(stage, side):
    """An input function: one side of the wildcards' test set, raw or in words (``tok``)."""

    def path(wildcards):
        with failures_in_one_line():
            tasks[wildcards.task].file_pairs(wildcards.testset)
        return text_folder(wildcards).text(stage, wildcards.testset, side)

    return path


def models(wildcards):
    """The model files of a run: one, or an ensemble's."""
    return layout.task(wildcards.task).models(wildcards.model, wildcards.run)


def threads(wildcards):
    """CPU threads of a training or decoding, as stated: rounding depends on their number."""
    return options.cores or settings.models[wildcards.model].training.threads


def machine_of_training(wildcards):
    """Options of a training that are not its recipe; a resource, as another param trains again."""
    recipe = settings.models[wildcards.model].training
    events = " --tensorboard" if recipe.tensorboard else ""
    return (
        f"--device {options.device} --products {options.products} --threads {threads(wildcards)}"
        f" --checkpoint-minutes {recipe.checkpoint_minutes}{events} --nodes {options.nodes}"
    )


def memory_of_models(wildcards, input, attempt):
    """Megabytes of a job that loads all its models at once; on a GPU they take the GPU's memory."""
    is_on_cpu = wildcards.get("device", options.device) == "cpu"
    # In fp32 one took 2.9 times its file, in bf16 2.6, in int8 2.5 (2 cores, 2026-11-26).
    return attempt * max(4000, int(1000 + 3 * input.size_mb) if is_on_cpu else 0)


# Of a job that translates or scores text by a model: resources, as other params make results stale.
ON_DEVICE = {
    "mem_mb": memory_of_models,
    "gpu": 0 if options.device == "cpu" else 1,
    "device": options.device,
    "torch_threads": threads,
}


def decoding(wildcards):
    """The settings of the wildcards' decoding."""
    return settings.decodings[wildcards.decoding].model_dump(mode="json")


def code_of_extensions(registry, names):
    """The digests of what extensions run under these names: among params, an edit runs again."""
    return {name: digest_of_extension(registry, name) for name in sorted(names)}


def with_preparation(code):
    """The code of a job: that of its script, and of the task's preparation if an extension has it."""

    def code_of_job(wildcards):
        task = tasks.get(wildcards.get("task"))
        recipes = {task.preparation.train, task.preparation.test} if task else set()
        own = code_of_extensions("PREPARATIONS", recipes - set(PREPARATIONS))
        return " ".join([code, *own.values()])

    return code_of_job if options.extensions else code


def run_header(wildcards):
    """What stands beside the numbers of a run's translations, its decoding aside."""
    names = {name: wildcards[name] for name in ("task", "model", "run")}
    return {**names, "scale": options.scale}


def headline_files(task, suffix):
    """A file of each headline test set and run: those that a task's headline rests on."""
    folder, headline = layout.task(task), tasks[task].headline
    return [
        folder.translations(headline.model, run, test, headline.decoding, suffix)
        for test in headline.tests
        for run in tasks[task].headline_runs()
    ]


def model_metadata(wildcards):
    """What a model file says of the wildcards' task."""
    return tasks[wildcards.task].model_metadata().model_dump(mode="json")


def heading_of_plot(wildcards):
    """What stands above a plot: task, model, run, what else its name says, a scale of stand-ins."""
    named = dict(wildcards.items())
    if "line" in named:
        named["line"] = f"sentence {named['line']}"
    return " · ".join([*named.values(), *([] if options.scale == "paper" else [options.scale])])
