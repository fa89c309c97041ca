"""The configuration, the folders, and the params and resources that rules share.

A job runs again (profiles/default: rerun-triggers) in these cases:

- An output is missing.
- An input is newer than the outputs, or the set of inputs has changed.
- A param has another value. Snakemake compares only constants and functions of `wildcards` alone.
- The job has noted other params, or another size or time of a user's file (`changed`).
- With --sdm, the file of its environment was edited.

The param `code=code("SCRIPT")` changes with the script, with all modules of the package that it
imports, and with their data files, but not with comments. Edits of resources, threads and shell
commands do not run a job again.
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
from convs2s.pipeline.outdated import change_file, params_of_job
from convs2s.pipeline.process import provide_environment
from convs2s.pipeline.run import begin_run, check_folder, hold_results
from convs2s.pipeline.tries import failed_try

provide_environment(None if IS_FROM_GIT else ROOT / "src")

with failures_in_one_line():
    check_folder()
    given_by = "config of the module" if IS_MODULE else None  # replaces `config.yaml` in messages
    settings = load(Path.cwd(), config, shipped=ROOT, given_by=given_by)
    for warning in settings.warnings():
        print(f"warning: {warning}", file=sys.stderr)
    # Empty if the workflow comes from git: `code` then uses the version of the package instead.
    FINGERPRINTS = fingerprints(ROOT / "workflow/scripts", Path(".snakemake/convs2s/codes.json"))

options, scale, tasks = settings.options, settings.scale, settings.tasks


# At the scale `paper`, <results> is `results` and <downloads> is `results/downloads`. At `demo`,
# they are `results/scales/demo` and `results/scales/demo/downloads` (config/scales).
pathvars:
    results=scale.results_dir,
    downloads=scale.downloads_below("<results>"),
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


# The paths after the `module` of another workflow has replaced the pathvars above.
layout = Layout(workflow.pathvars.apply("<results>"), workflow.pathvars.apply("<downloads>"))
BENCHMARKS = workflow.pathvars.apply("<benchmarks>")


container: options.container


report: "../workflow/report/overview.rst"


# In a group of jobs that is submitted as one job, translations run one after another, as the
# profiles limit the resource `translations` (profiles/slurm).
resource_scopes:
    translations="local",


# Number of parts for the training text of a large corpus. --set-scatter parts=N changes it.
scattergather:
    parts=16,


# Refuse a second run in this folder or on these results, and wait for jobs that an earlier run has
# left. Snakemake does not run this under --dry-run. The path of an output has the prefix of a module,
# and is in the folder of local copies if the results are in a storage.
onstart:
    with failures_in_one_line():
        begin_run(settings)
        hold_results(Path(rules.write_ledger.output[0]).parents[1])


def environment(name):
    """Return the file of a rule's conda environment, relative to the file of the rule.

    Snakemake makes its path absolute, and then takes braces in it for wildcards. If the folder of the
    workflow has braces in its path, this is the absolute path with doubled braces.
    """
    folder = str(ROOT).replace("{", "{{").replace("}", "}}")
    if IS_FROM_GIT or folder == str(ROOT):
        return f"../envs/{name}.yaml"
    return f"{folder}/envs/{name}.yaml"


def tries(rule):
    """Return a param that changes when a try of the rule's job fails (convs2s.pipeline.tries).

    The job then runs again, and so do the jobs that read its outputs, which Snakemake would regard
    as up to date (docs/decisions/0025). After a successful try the param is what it was before, so
    nothing runs needlessly. It is empty if no try has failed.

    The param is a function of wildcards alone, because Snakemake does not compare a param that
    takes `output` with the one of the last run.
    """

    def failed(wildcards):
        output = str(getattr(rules, rule).output[0])
        return failed_try(output.format(**dict(wildcards.items())))

    return failed


def code(script, rule=None):
    """Return a param that changes with the code of a job, and when a try of it fails (`tries`).

    It has the digests of the script with all that it imports, and of the extensions that prepare
    the task's text (docs/decisions/0002).

    `rule` is the name of the rule, if it differs from that of the script.
    """

    def digest(wildcards):
        task = tasks.get(wildcards.get("task"))
        preparations = {task.preparation.train, task.preparation.test} if task else set()
        extensions = map(partial(digest_of_extension, "PREPARATIONS"), sorted(preparations))
        of_script = PACKAGE_VERSION if IS_FROM_GIT else FINGERPRINTS[f"{script}.py"]
        return " ".join(filter(None, [of_script, *extensions, tries(rule or script)(wildcards)]))

    return digest


def changed(rule, own=None, params=None):
    """Return an input function for the change file of a job, by which a plan sees what is outdated.

    It is newer than the outputs if these were made with other params, or from another size or
    time of the user's files than those that the input function `own` returns now. Snakemake's
    records of params may be lost, and an older file in place of an input is up to date to it
    (docs/decisions/0026). `params` are those that the job notes, if these are not all of the rule.

    It is `.snakemake/convs2s/changes/codes.0e3a55d41c3de0b5/changed` for the BPE codes of a
    task. Mostly there is none.
    """

    def file(wildcards):
        stated = getattr(rules, rule)
        noted = params or params_of_job(stated.params.items(), wildcards)
        output = str(stated.output[0]).format(**dict(wildcards.items()))
        given = own(wildcards) if own else []
        own_files = plan.own_files([given] if isinstance(given, str) else given)
        found = in_one_line(change_file)(output, noted, own_files)
        if found is None:
            return []
        path, is_outdated = found
        return local(str(path)) if is_outdated else ancient(local(str(path)))

    return file


def memory(base):
    """Return the memory of a job in megabytes: `base` times the number of the attempt."""
    return lambda wildcards, attempt: attempt * base


def minutes(base, large=None):
    """Return the time limit of a job: `base` minutes times the number of the attempt.

    It is a day at most. `large` replaces `base` for a task whose training text is large
    (config.yaml: scatter_above).
    """

    def limit(wildcards, attempt):
        is_large = large and settings.is_large(tasks[wildcards.task].text_name)
        return min(attempt * (large if is_large else base), 1440)

    return limit


def run_header(wildcards):
    """Return the names that stand beside the numbers of a run: task, model, run and scale."""
    return {
        "task": wildcards.task,
        "model": wildcards.model,
        "run": wildcards.run,
        "scale": options.scale,
    }


def decoding(wildcards):
    """Return the settings of the decoding that the wildcards name."""
    return settings.decodings[wildcards.decoding].model_dump(mode="json")


def memory_of_models(wildcards, input, attempt):
    """Return the memory in megabytes of a job that loads all its models at the same time.

    On a GPU, the models are in the memory of the GPU, which does not count.
    """
    is_on_cpu = wildcards.get("device", options.device) == "cpu"
    # A model took 2.9 times the size of its file in fp32, 2.6 in bf16, 2.5 in int8 (2 cores,
    # 2026-11-26).
    return attempt * max(4000, int(1000 + 3 * input.size_mb) if is_on_cpu else 0)


def heading_of_plot(wildcards):
    """Return the heading of a plot: all wildcards of its name, and the scale if not `paper`."""
    scale_name = [] if options.scale == "paper" else [options.scale]
    return " · ".join([*wildcards, *scale_name])


def is_there(path):
    """Return whether a file exists, in this folder or in the storage."""
    # Snakemake calls input functions inside an event loop, in which `exists` refuses to run. So it
    # runs in another thread.
    return LOOKS.submit(lambda: exists(path)).result()


LOOKS = ThreadPoolExecutor(1)

# The plan decides which files tasks, tables and figures need, and which of them are made here.
plan = Plan(
    settings,
    layout,
    logs=workflow.pathvars.apply("<logs>"),
    exists=is_there,
    words=sys.argv[1:],
    is_module=IS_MODULE,
)
# `in_one_line(function)` is the function with its UserErrors printed in one line.
in_one_line = failures_in_one_line()
for check in (plan.check_tasks, plan.check_files):
    in_one_line(check)()
