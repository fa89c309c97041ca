"""The configuration, the folders, and the params and resources that rules share.

A job runs again (profiles/default: rerun-triggers) in these cases:

- An output is missing.
- An input is newer than the outputs, or the set of inputs has changed.
- A param has another value. Snakemake compares only constants and functions of `wildcards` alone.
- The job has noted other params, or another size or time of a user's file (`changed`).
- With --sdm, the file of its environment was edited.

Edits of resources, threads and shell commands run nothing again.
"""

from convs2s.config.extensions import digests_of_extensions
from convs2s.config.load import load
from convs2s.config.runs import RUN_PATTERN, SEED_PATTERN, alternatives, members
from convs2s.layout import Layout
from convs2s.pipeline.plan import Plan
from convs2s.pipeline.fingerprint import fingerprints
from convs2s.pipeline.job import prefix_of
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


def first_output(rule, wildcards):
    """Return the path of a job's first output, by which its notes are named."""
    return str(getattr(rules, rule).output[0]).format(**dict(wildcards.items()))


def tries(rule):
    """Return a param that changes when a try of the rule's job fails (docs/decisions/0025).

    After a successful try it is what it was before. It is empty if no try has failed. As a function
    of wildcards alone it is compared with the last run.
    """
    return lambda wildcards: failed_try(first_output(rule, wildcards))


def code(script, rule=None):
    """Return a param that changes with the code of a job, and when a try of it fails (`tries`).

    It has the digests of the script with all modules and data files that it needs, without
    comments, and of the extensions that prepare the task's text (docs/decisions/0002). `rule` is
    the name of the rule, if it differs from that of the script.
    """

    def digest(wildcards):
        task = tasks.get(wildcards.get("task"))
        preparations = {task.preparation.train, task.preparation.test} if task else set()
        extensions = digests_of_extensions("PREPARATIONS", preparations).values()
        of_script = PACKAGE_VERSION if IS_FROM_GIT else FINGERPRINTS[f"{script}.py"]
        return " ".join(filter(None, [of_script, *extensions, tries(rule or script)(wildcards)]))

    return digest


def is_there(output):
    """Return whether an output exists, here or in the storage.

    Its path has the prefix of a module, and is in the folder of local copies if it is in a storage.
    """
    if Path(output).exists():
        return True
    prefix = prefix_of(str(rules.write_ledger.output[0]), layout.paper("ledger.jsonl"))
    return bool(prefix) and plan.exists(output.removeprefix(prefix))


def changed(rule, own=None, params=None):
    """Return an input function for the change file of a job, by which a plan sees what is outdated.

    It is newer than the outputs if these were made with other params, or from another size or
    time of the user's files than those that the input function `own` returns now
    (docs/decisions/0026). `params` are those that the job notes, if these are not all of the rule.
    `.snakemake/convs2s/changes/codes.0e3a55d41c3de0b5/changed` is one; mostly there is none.
    """

    def file(wildcards):
        noted = params or params_of_job(getattr(rules, rule).params.items(), wildcards)
        own_files = plan.own_files(own(wildcards) if own else [])
        output = first_output(rule, wildcards)
        path, is_outdated = in_one_line(change_file)(output, noted, own_files, is_there)
        if path is None:
            return []
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
    # A model took 2.9 times the size of its file in fp32, 2.6 in bf16, 2.5 in int8 (2026-11-26).
    return attempt * max(4000, int(1000 + 3 * input.size_mb) if is_on_cpu else 0)


# The plan decides which files tasks, tables and figures need, and which of them are made here.
plan = Plan(
    settings,
    layout,
    logs=workflow.pathvars.apply("<logs>"),
    # Snakemake's function finds the storage by the place from which it is called.
    look=lambda path: exists(path),
    words=sys.argv[1:],
    is_module=IS_MODULE,
)
# `in_one_line(function)` is the function with its UserErrors printed in one line.
in_one_line = failures_in_one_line()
in_one_line(plan.check_tasks)()
in_one_line(plan.check_files)()
