"""The configuration, and the input functions and constraints that several rules share."""

import re
from os.path import commonprefix
from pathlib import Path

from convs2s.config.file_reference import parse_file_reference
from convs2s.config.load import load
from convs2s.config.runs import RUN_PATTERN, SEED_PATTERN
from convs2s.paper.cells import cells
from convs2s.paper.ledger import published_file, published_runs
from convs2s.pipeline.fingerprint import fingerprints
from convs2s.layout import Layout

# What stands for config.yaml in messages, where another workflow gives the configuration.
GIVEN_BY = f"config of the module ({', '.join(map(str, workflow.configfiles)) or 'no configfile'})"

with failures_in_one_line():
    settings = load(Path.cwd(), config, shipped=ROOT, given_by=GIVEN_BY if IS_MODULE else None)

options, scale, tasks = settings.options, settings.scale, settings.tasks


pathvars:
    results=scale.results_dir,
    downloads=scale.downloads_below("<results>"),
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


# As another workflow has them, where its `module` states pathvars.
layout = Layout(workflow.pathvars.apply("<results>"), workflow.pathvars.apply("<downloads>"))


pathvars:
    model=layout.task("{task}").run("{model}", "").rstrip("/"),


# Snakemake puts the `prefix` of a module before the paths of inputs, outputs and logs, wherever they
# come from; paths among params, and those that Python looks at, are made by this.
workflow_modifier = workflow.modifier  # of this module, also in the functions that run later
prefixed = workflow_modifier.path_modifier.replace_prefix
REFERENCES = {reference for task in tasks.values() for reference in task.references()}
with failures_in_one_line():
    PLACES = {
        "results_dir": prefixed(layout.results),
        "downloads_dir": prefixed(layout.downloads),
        "files": {one: prefixed(one) for one in REFERENCES if not parse_file_reference(one).is_url},
    }
on_disk = settings.placed(**PLACES)


report: "../workflow/report/workflow.rst"


STAND_IN = {"scale": options.scale, "stand_in": scale.stand_in}  # beside every score


def waits_for_files(task):
    """Whether files that a user puts there, as their license keeps them from downloads, are missing."""
    files = map(parse_file_reference, on_disk.tasks[task].needed_references())
    return any(not file.is_url and not Path(file.location).exists() for file in files)


# What of each table can be measured: a GPU is timed where one is asked for, as nothing else says
# here that there will be one. What waits for licensed files is left out: asked for by name, such a
# task says which files those are.
HAS_GPU = options.device == "cuda" or bool(workflow.global_resources.get("gpu").value)


def has_list(cell):
    """Return whether a cell's n-best list can be had: a user's own may not be there."""
    return cell.n_best_file is None or Path(prefixed(cell.n_best_file)).exists()


CELLS = {name: cells(settings, name, layout.run_files) for name in settings.paper}
WAITING = {
    task for task in {c.task for table in CELLS.values() for c in table} if waits_for_files(task)
}

# The ledger that somebody published, and its runs: what it holds is not made here.
with failures_in_one_line():
    PUBLISHED_FILE = published_file(options, Path(prefixed(layout.downloads)))
    PUBLISHED = published_runs(PUBLISHED_FILE)


def is_published(file, measure):
    """Return whether a run's number comes from the published ledger; what was run here does not."""
    return (file.fingerprint, measure) in PUBLISHED and not Path(prefixed(file.path)).exists()


def to_make(cell):
    """Return a cell with the runs that are made here; None where there is nothing to make."""
    is_possible = cell.can_be_made(HAS_GPU, WAITING) and has_list(cell)
    return cell.drop_published_runs(is_published) if is_possible else None


PLANNED = {name: list(filter(None, map(to_make, table))) for name, table in CELLS.items()}

# Those of which a plot is drawn, and not only a table.
DRAWN = {name for name in CELLS if "figure" in name}

# The tasks that the stage targets cover, and those of them whose models are trained here.
STAGE_TASKS = options.tasks or list(
    dict.fromkeys(c.task for table in PLANNED.values() for c in table)
)
TRAINED_TASKS = [name for name in STAGE_TASKS if not tasks[name].released]


def alternatives(names):
    """A regular expression that matches exactly these names, or nothing without names.

    Beginnings in common are stated once: Snakemake compiles and tries it for each file of each rule.
    """
    groups = {}
    for name in sorted(names):
        groups.setdefault(name[:1], []).append(name)
    found = []
    for group in groups.values():
        start = commonprefix(group)
        ends = [name.removeprefix(start) for name in group] if group[1:] else []
        found.append(re.escape(start) + (f"(?:{alternatives(ends)})" if ends else ""))
    return "|".join(found) or "(?!)"


container: options.container


PARTS = [f"{number}-of-{options.shards}" for number in range(1, options.shards + 1)]
PART = alternatives(PARTS)
RUN = f"{RUN_PATTERN}|released"


wildcard_constraints:
    task=alternatives(tasks),
    lang="[a-z]+(_[a-z]+)?",
    split="[a-z][a-z0-9_]*",
    testset="[a-z][a-z0-9_]*",
    model=alternatives(settings.models),
    baseline=alternatives(settings.models),
    system=alternatives(settings.models),
    scorer=alternatives(settings.models),
    run=RUN,
    seed=SEED_PATTERN,
    scorer_run=RUN,
    shard=PART,
    block=PART,
    decoding=alternatives(settings.decodings),
    device="cpu|cuda",
    table=alternatives(CELLS.keys() - DRAWN),


FINGERPRINTS = fingerprints(ROOT / "workflow/scripts", Path(".snakemake/convs2s/fingerprints.json"))


def script_code(name):
    """The fingerprint of a script and of everything in the package that it runs."""
    return FINGERPRINTS[name]


def intermediate(paths):
    """Outputs that are removed once nothing needs them, unless the configuration keeps them."""
    return paths if options.keep_intermediates else temp(paths)


def text_folder(wildcards):
    """The folder of the task whose text the wildcards' task shares."""
    return layout.task(tasks[wildcards.task].text_name)


def languages(wildcards):
    """The source and target languages of the wildcards' task."""
    return tasks[wildcards.task].language_pair


def training_text(wildcards, part="train"):
    """Both sides of a part of the corpus, by name, in the words that models read."""
    folder, stage = text_folder(wildcards), tasks[wildcards.task].model_text
    sides = zip(("source", "target"), languages(wildcards), strict=True)
    return {side: folder.text(stage, part, language) for side, language in sides}


def test_side(stage, side):
    """An input function: one side of the wildcards' test set, raw or in words (``tok``)."""

    def path(wildcards):
        with failures_in_one_line():
            tasks[wildcards.task].file_pairs(wildcards.testset)
        language = getattr(tasks[wildcards.task].languages, side)
        return text_folder(wildcards).text(stage, wildcards.testset, language)

    return path


def models(wildcards):
    """The model files of a run: one, or an ensemble's."""
    return layout.task(wildcards.task).models(wildcards.model, wildcards.run)


def threads(wildcards):
    """CPU threads of a training or decoding.

    Rounding depends on their number, so a machine with fewer cores runs as many, only slower. Rules
    hand them and the device on as resources, as params of another value would make results stale.
    """
    return options.cores or settings.models[wildcards.model].training.threads


def decoding(wildcards):
    """The settings of the wildcards' decoding."""
    return settings.decodings[wildcards.decoding].model_dump(mode="json")


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


def dataset_metadata(wildcards):
    """What stands beside the token stores of the wildcards' task."""
    metadata = tasks[wildcards.task].dataset_metadata(settings.downloads, scale.stand_in)
    return metadata.model_dump(mode="json")


def heading_of_plot(wildcards):
    """What stands above a plot: task, model, run, what else its name says, a scale of stand-ins."""
    named = dict(wildcards.items())
    if "line" in named:
        named["line"] = f"sentence {named['line']}"
    return " · ".join([*named.values(), *([] if options.scale == "paper" else [options.scale])])
