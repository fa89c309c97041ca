"""``convs2s results``, ``export-results``, ``mirror``, ``config``: what surrounds the runs."""

import argparse
import sys
from pathlib import Path

from convs2s.errors import UserError


def add_results(command: argparse.ArgumentParser) -> None:
    """Write headline values, plots and verdicts of claims as a page of Markdown.

    Beside the page is a folder of every table and test. All are made from the lines of a ledger
    alone. Run it in the folder of config.yaml and config/.
    """
    command.add_argument("ledger", type=Path, help="the ledger, a JSON line for each run")
    command.add_argument("--scale", required=True, help="the scale whose tables are shown")
    command.add_argument("--discussion", type=Path, help="Markdown that ends the page")
    command.add_argument("--output", type=Path, required=True, help="the page, a .md file")
    command.set_defaults(run=_results)


def _results(arguments: argparse.Namespace) -> None:
    from convs2s.config.load import load
    from convs2s.files.text import read_lines
    from convs2s.paper.ledger import read_ledger
    from convs2s.paper.results_page import write_results_page

    discussion = read_lines(arguments.discussion) if arguments.discussion else ()
    write_results_page(
        load(Path.cwd(), {"scale": arguments.scale}, given_by="--scale"),
        read_ledger(arguments.ledger),
        ledger=str(arguments.ledger),
        discussion="".join(f"{line}\n" for line in discussion),
        output=arguments.output,
    )


def add_export_results(command: argparse.ArgumentParser) -> None:
    """Write what the numbers of a results folder rest on, with checksums and RO-Crate metadata.

    Scores, translations, references, settings, histories, versions, model cards. A reader can
    check every number without training.
    """
    command.add_argument("folder", type=Path, help="results, or those of a task")
    command.add_argument("output", type=Path, help="NAME.zip, or a folder to make")
    command.add_argument(
        "--without-text",
        action="store_true",
        help="leave out what holds source sentences or references, where the data's license asks "
        "for that; their checksums stay",
    )
    command.set_defaults(run=_export_results, makes_folder="output")


def _export_results(arguments: argparse.Namespace) -> None:
    from convs2s.publish.results import export_results

    export_results(arguments.folder, arguments.output, with_text=not arguments.without_text)


def add_mirror(command: argparse.ArgumentParser) -> None:
    """Write small, generated files in the place of all that the tasks download.

    Each is FOLDER/HOST/PATH, of the real file's name and format; beside them is the list of
    their checksums, SHA256SUMS.
    """
    command.add_argument("folder", type=Path, metavar="FOLDER", help="where the files go")
    command.set_defaults(run=_mirror, makes_folder="folder")


def _mirror(arguments: argparse.Namespace) -> None:
    from convs2s.mirror.write import write_mirror

    write_mirror(arguments.folder)


def add_config(command: argparse.ArgumentParser) -> None:
    """Print the effective configuration: what applies to a task, defaults included."""
    group = command.add_mutually_exclusive_group(required=True)
    group.add_argument("--task", help="what applies to this task")
    group.add_argument("--tasks", action="store_true", help="all tasks, a line each")
    command.add_argument("--model", help="a model other than the task's headline")
    command.add_argument("--decoding", help="a decoding other than the task's headline")
    command.set_defaults(run=_config)


def _config(arguments: argparse.Namespace) -> None:
    import yaml

    from convs2s.config.file_reference import masked, with_texts
    from convs2s.config.load import load

    settings = load(Path.cwd())
    if arguments.tasks:
        if arguments.model or arguments.decoding:
            raise UserError("--model and --decoding: are of one task: name it with --task")
        print("| task | what it is | headline: model, runs | ask for |\n| --- | --- | --- | --- |")
        for name, task in sorted(settings.tasks.items()):
            headline = f"`{task.headline.model}`, {', '.join(task.headline_runs())}"
            report = f"`{settings.scale.results_dir}/{name}/{task.metric}.txt`"
            print(f"| `{name}` | {task.description} | {headline} | {report} |")
    else:
        values = settings.effective(arguments.task, arguments.model, arguments.decoding)
        yaml.safe_dump(with_texts(values, masked), sys.stdout, sort_keys=False, allow_unicode=True)
