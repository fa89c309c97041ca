"""Refuses what the command line asks for and there is not, in one line with the nearest name.

The last file that is read, as the names of all rules must be known.
"""

import sys

from snakemake.cli import get_argument_parser
from snakemake.io import strip_wildcard_constraints
from snakemake.logging import logger

from convs2s.errors import UserError
from convs2s.pipeline.asked import check_file, check_mirrors, check_names, check_targets, doubts


def jobs_of(target):
    """The jobs that make the files of a target."""
    files = workflow.get_rule(target).input
    makers = [rule for rule in workflow.rules if any(map(rule.is_producer, files))]
    return [rule.name for rule in makers]


def check_asked_for(words):
    """Check what is asked for: names, and files below the folder of results."""
    check_targets(words, [rule.name for rule in workflow.rules], on_disk)
    asked = [one for one in words if Path(one).is_relative_to(layout.results)]
    outputs = [file for rule in workflow.rules for file in rule.output] if asked else []
    names = [strip_wildcard_constraints(file) for file in outputs]
    patterns = {name.replace("{table}", table) for name in names for table in CELLS}
    for path in asked:
        if not Path(path).exists():
            check_file(path, patterns, lambda one: any(file.match(one) for file in outputs))


def check_command_line():
    """Check the targets; Snakemake itself knows them only once all files are read.

    Its parser takes a fifth of a second to build, so every word of the command line is taken for a
    target first, and only where one would be refused is it asked which ones are.
    """
    try:
        check_asked_for(sys.argv[1:])
    except UserError:
        check_asked_for(get_argument_parser().parse_known_args(sys.argv[1:])[0].targets)


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
    if not IS_MODULE and workflow.is_main_process:
        check_mirrors(options.mirrors)
        check_command_line()
        for line in doubts(tasks):
            logger.warning(f"warning: {line}")
