"""Refuses settings of a job that there is not, of which Snakemake would say nothing.

The last file that is read, as the names of all rules must be known.
"""

from convs2s.pipeline.overrides import check_names


def jobs_of(target):
    """The jobs that make the files of a target."""
    files = workflow.get_rule(target).input
    makers = [rule for rule in workflow.rules if any(map(rule.is_producer, files))]
    return [rule.name for rule in makers]


# Another workflow has jobs of its own, some of them not yet known here.
with failures_in_one_line():
    jobs = [rule.name for rule in workflow.rules if not rule.norun]
    options_of_jobs = {
        "--set-resources": workflow.resource_settings.overwrite_resources,
        "--set-threads": workflow.resource_settings.overwrite_threads,
    }
    for option, names in () if IS_MODULE else options_of_jobs.items():
        targets = {name: jobs_of(name) for name in {*names} - {*jobs} if workflow.is_rule(name)}
        check_names(option, names, jobs, targets)
