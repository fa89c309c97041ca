"""The configuration, the folders, and the params and resources that rules share.

When a job runs again (profiles/default: rerun-triggers): an output is missing; an input is newer, or
there are other inputs; a param has another value; with --sdm, its environment was edited. Snakemake
compares only params that take nothing but wildcards. `code=code("SCRIPT")` stands for the script and
for all of the package that it imports, with its data files; comments do not count. Edits of resources,
threads and shell commands run nothing again.
"""

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
from convs2s.pipeline.run import begin_run, check_folder
from convs2s.pipeline.tries import failed_tries

provide_environment(None if IS_FROM_GIT else ROOT / "src")

with failures_in_one_line():
    check_folder()
    given_by = "config of the module" if IS_MODULE else None  # in messages, for config.yaml
    settings = load(Path.cwd(), config, shipped=ROOT, given_by=given_by)
    # Empty where the workflow comes from git: the version of the package stands for the digests.
    FINGERPRINTS = fingerprints(ROOT / "workflow/scripts", Path(".snakemake/convs2s/codes.json"))

options, scale, tasks = settings.options, settings.scale, settings.tasks


# At the scale `paper` <results> is `results` and <downloads> `results/downloads`, at `demo`
# `results/scales/demo` and `results/scales/demo/downloads` (config/scales).
pathvars:
    results=scale.results_dir,
    downloads=scale.downloads_below("<results>"),
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


# After the `module` of another workflow may have replaced pathvars.
layout = Layout(workflow.pathvars.apply("<results>"), workflow.pathvars.apply("<downloads>"))


container: options.container


report: "../workflow/report/overview.rst"


# In a group of jobs that is submitted as one, translations run one after another (profiles/slurm).
resource_scopes:
    translations="local",


# Parts of the training text of a large corpus: --set-scatter parts=N changes their number.
scattergather:
    parts=16,


# Not under --dry-run: refuses a second run, and waits for jobs that an earlier one has left.
onstart:
    with failures_in_one_line():
        begin_run(settings)


def tries(rule):
    """A param that changes when a try of the job fails: the job runs again, and with it what is made
    of its outputs, which Snakemake would take for up to date (docs/decisions/0025). A try that ends
    well puts it back, so nothing runs once more; it is empty as long as none has failed.

    It takes wildcards alone: what takes `output`, Snakemake does not compare with the last run.
    """

    def failed(wildcards):
        output = str(getattr(rules, rule).output[0])
        return " ".join(failed_tries([output.format(**dict(wildcards.items()))]))

    return failed


def code(script, rule=None):
    """A param that changes with the code of a job: digests of its script with all that it imports,
    and of the extensions that prepare the task's text (docs/decisions/0002); and with its tries.

    `rule` is the rule's name, where it differs from the script's.
    """

    def digest(wildcards):
        task = tasks.get(wildcards.get("task"))
        prepares = {task.preparation.train, task.preparation.test} if task else set()
        extensions = map(partial(digest_of_extension, "PREPARATIONS"), sorted(prepares))
        own = PACKAGE_VERSION if IS_FROM_GIT else FINGERPRINTS[f"{script}.py"]
        return " ".join(filter(None, [own, *extensions, tries(rule or script)(wildcards)]))

    return digest


def memory(base):
    """Megabytes of a job: so many times the number of the attempt."""
    return lambda wildcards, attempt: attempt * base


def minutes(most, large=None):
    """Minutes of a job: so many times the number of the attempt, a day at most.

    `large`: for a task whose training text is large (config.yaml: scatter_above).
    """

    def asked(wildcards, attempt):
        is_large = large and settings.is_large(tasks[wildcards.task].text_name)
        return min(attempt * (large if is_large else most), 1440)

    return asked


def run_header(wildcards):
    """What stands beside the numbers of a run's translations, its decoding aside."""
    return {
        "task": wildcards.task,
        "model": wildcards.model,
        "run": wildcards.run,
        "scale": options.scale,
    }


def decoding(wildcards):
    """The settings of the wildcards' decoding."""
    return settings.decodings[wildcards.decoding].model_dump(mode="json")


def memory_of_models(wildcards, input, attempt):
    """Megabytes of a job that loads all its models at once; on a GPU they take the GPU's memory."""
    is_on_cpu = wildcards.get("device", options.device) == "cpu"
    # In fp32 one took 2.9 times its file, in bf16 2.6, in int8 2.5 (2 cores, 2026-11-26).
    return attempt * max(4000, int(1000 + 3 * input.size_mb) if is_on_cpu else 0)


def heading_of_plot(wildcards):
    """What stands above a plot: task, model, run, what else its name says, a scale of stand-ins."""
    return " · ".join([*wildcards, *([] if options.scale == "paper" else [options.scale])])


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
    words=sys.argv[1:],
    is_module=IS_MODULE,
)
in_one_line = failures_in_one_line()  # around a function of the plan: its faults are the user's
in_one_line(plan.check_files)()
