"""The configuration, the folders, and the few functions that several files of rules share."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from convs2s.config.extensions import digest_of_extension
from convs2s.config.file_reference import parse_file_reference
from convs2s.config.load import load
from convs2s.config.runs import RUN_PATTERN, SEED_PATTERN, alternatives, members
from convs2s.layout import Layout
from convs2s.pipeline.plan import Plan
from convs2s.pipeline.fingerprint import fingerprints
from convs2s.pipeline.process import provide_environment
from convs2s.pipeline.run import begin_run
from convs2s.pipeline.tries import failed_tries

provide_environment(None if IS_FROM_GIT else ROOT / "src")

with failures_in_one_line():
    given_by = "config of the module" if IS_MODULE else None  # in messages, for config.yaml
    settings = load(Path.cwd(), config, shipped=ROOT, given_by=given_by)
    # None of a git source, whose scripts are not on this machine: they go by the version.
    FINGERPRINTS = fingerprints(ROOT / "workflow/scripts", Path(".snakemake/convs2s/codes.json"))

options, scale, tasks = settings.options, settings.scale, settings.tasks
STAND_IN = {"scale": options.scale, "stand_in": scale.stand_in}  # beside every score


pathvars:
    results=scale.results_dir,
    downloads=scale.downloads_below("<results>"),
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",
    model="<results>/{task}/models/{model}",


# As another workflow has them, where its `module` states pathvars.
layout = Layout(workflow.pathvars.apply("<results>"), workflow.pathvars.apply("<downloads>"))


container: options.container


report: "../workflow/report/overview.rst"


# In a group of jobs that is submitted as one, translations run one after another (profiles/slurm).
resource_scopes:
    translations="local",


# Parts of the training text of a large corpus: --set-scatter parts=N changes their number.
scattergather:
    parts=16,


# Not of a plan (-n): one run at a time, after the jobs of an earlier one that still live.
onstart:
    with failures_in_one_line():
        begin_run(settings)


def text(path):
    """An input function: a file of the task whose text the wildcards' task shares.

    `{stage}` is the corpus that models read: `clean`, or `truecased`.
    """

    def file(wildcards):
        task = tasks[wildcards.task]
        names = {"task": task.text_name, "stage": task.model_text}
        return path.format(**{**dict(wildcards.items()), **names})

    return file


def tries(rule):
    """A param that runs a rule's job again after a try that failed (docs/decisions/0025).

    Of wildcards alone: what takes `output`, Snakemake does not compare with that of the last run.
    """

    def failed(wildcards):
        output = str(getattr(rules, rule).output[0])
        return " ".join(failed_tries([output.format(**dict(wildcards.items()))]))

    return failed


def code(script, rule=None):
    """A param that runs a job again: digests of its script and of the extensions that prepare the
    task's text (docs/decisions/0002), and its tries. `rule`: where it has another name."""

    def digest(wildcards):
        task = tasks.get(wildcards.get("task"))
        prepares = {task.preparation.train, task.preparation.test} if task else set()
        extensions = map(partial(digest_of_extension, "PREPARATIONS"), sorted(prepares))
        own = FINGERPRINTS.get(f"{script}.py", PACKAGE_VERSION)
        return " ".join(filter(None, [own, *extensions, tries(rule or script)(wildcards)]))

    return digest


def memory(base):
    """Megabytes of a job, with each attempt as many again."""
    return lambda wildcards, attempt: attempt * base


def minutes(most, large=None):
    """Minutes of a job, with each attempt as many again; a day at most.

    `large`: for a task whose training text is large (config.yaml: scatter_above).
    """

    def asked(wildcards, attempt):
        is_large = large and settings.is_large(tasks[wildcards.task].text_name)
        return min(attempt * (large if is_large else most), 1440)

    return asked


def files_of(references):
    """Where the files of references lie once they are downloaded, each once."""
    places = (
        parse_file_reference(reference).path(Path(layout.downloads)) for reference in references
    )
    return list(dict.fromkeys(map(str, places)))


def bpe_codes(wildcards):
    """The BPE codes of a task: of both sides, of each its own, or none where words are whole."""
    names = tasks[wildcards.task].bpe_codes_names()
    return [f"<results>/{{task}}/vocabulary/{name}" for name in names]


def run_header(wildcards):
    """What stands beside the numbers of a run's translations, its decoding aside."""
    names = {name: wildcards[name] for name in ("task", "model", "run")}
    return {**names, "scale": options.scale}


def decoding(wildcards):
    """The settings of the wildcards' decoding."""
    return settings.decodings[wildcards.decoding].model_dump(mode="json")


def side_of(wildcards):
    """The side of the wildcards' language."""
    with failures_in_one_line():
        return tasks[wildcards.task].side_of(wildcards.lang)


def memory_of_models(wildcards, input, attempt):
    """Megabytes of a job that loads all its models at once; on a GPU they take the GPU's memory."""
    is_on_cpu = wildcards.get("device", options.device) == "cpu"
    # In fp32 one took 2.9 times its file, in bf16 2.6, in int8 2.5 (2 cores, 2026-11-26).
    return attempt * max(4000, int(1000 + 3 * input.size_mb) if is_on_cpu else 0)


def heading_of_plot(wildcards):
    """What stands above a plot: task, model, run, what else its name says, a scale of stand-ins."""
    return " · ".join([*wildcards, *([] if options.scale == "paper" else [options.scale])])


def headline_scores(wildcards):
    """The scores that a task's report in the wildcards' metric rests on."""
    with failures_in_one_line():
        tasks[wildcards.task].check_metric(wildcards.metric)
    return plan.headline_files(wildcards.task, f"{wildcards.metric}.json")


def is_there(path):
    """Whether a file is there, in this folder or in the storage."""
    # In a thread of its own: for input functions Snakemake runs a loop, which `exists` refuses.
    return LOOKS.submit(lambda: exists(path)).result()


LOOKS = ThreadPoolExecutor(1)

# What tasks and the papers' tables rest on, and what of it is made here.
plan = Plan(
    settings,
    layout,
    logs=workflow.pathvars.apply("<logs>"),
    benchmarks=workflow.pathvars.apply("<benchmarks>"),
    exists=is_there,
    # Of a module, whose names may have a prefix, too.
    asked=frozenset(word.rpartition("_")[2] for word in sys.argv[1:]),
    is_module=IS_MODULE,
)
in_one_line = failures_in_one_line()  # around a function of the plan: its faults are the user's
in_one_line(plan.check_files)()
