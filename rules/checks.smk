"""Refuses what the command line asks for and there is not, in one line with the nearest name.

The last file that is read, as the names of all rules must be known. What another workflow has jobs
for is not known here, so in a module only options are checked.
"""

import sys

from snakemake.cli import get_argument_parser

from convs2s.errors import UserError
from convs2s.pipeline.asked import check_file, check_options, check_targets, task_warnings


def check_asked_for(words):
    """Check what is asked for: names, and files below the folder of results."""
    check_targets(words, [rule.name for rule in workflow.rules], on_disk)
    asked = [word for word in words if Path(word).is_relative_to(layout.results)]
    outputs = [file for rule in workflow.rules for file in rule.output] if asked else []
    names = [strip_wildcard_constraints(file) for file in outputs]
    patterns = {name.replace("{table}", table) for name in names for table in CELLS}
    for path in asked:
        if not Path(path).exists():
            check_file(path, patterns, lambda name: any(file.match(name) for file in outputs))


# Snakemake knows the targets only once all files are read. Its parser takes a fifth of a second to
# build, so every word of the command line is taken for a target first, and only where one would be
# refused is it asked which ones are.
if workflow.is_main_process:
    with failures_in_one_line():
        check_options(options, workflow.resource_settings.default_resources or {})
if workflow.is_main_process and not IS_MODULE:
    with failures_in_one_line():
        try:
            check_asked_for(sys.argv[1:])
        except UserError:
            check_asked_for(get_argument_parser().parse_known_args(sys.argv[1:])[0].targets)
    for line in task_warnings(tasks):
        logger.warning(f"warning: {line}")
