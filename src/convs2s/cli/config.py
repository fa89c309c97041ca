"""``convs2s config``: the effective configuration, and what it may say."""

import argparse
import sys
from pathlib import Path


def add_config(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    group = command.add_mutually_exclusive_group(required=True)
    group.add_argument("--task", help="what applies to this task")
    group.add_argument("--tasks", action="store_true", help="all tasks, a line each")
    group.add_argument("--reference", action="store_true", help="the page docs/configuration.md")
    group.add_argument("--template", action="store_true", help="config.yaml as it comes")
    command.add_argument("--model", help="a model other than the task's headline")
    command.add_argument("--decoding", help="a decoding other than the task's headline")
    command.set_defaults(run=_config)


def _config(arguments: argparse.Namespace) -> None:
    import yaml

    from convs2s.config.load import load
    from convs2s.config.reference_page import reference, task_table, template

    if arguments.reference:
        sys.stdout.write(reference())
    elif arguments.template:
        sys.stdout.write(template())
    elif arguments.tasks:
        sys.stdout.write(task_table(load(Path.cwd())))
    else:
        settings = load(Path.cwd())
        values = settings.effective(arguments.task, arguments.model, arguments.decoding)
        yaml.safe_dump(values, sys.stdout, sort_keys=False, allow_unicode=True)
