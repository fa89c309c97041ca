"""The commands ``convs2s results``, ``export-results``, ``verify``, ``mirror`` and ``config``."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from convs2s.cli.options import Run, add_file, add_flag, read_configuration
from convs2s.errors import UserError
from convs2s.files.atomic import check_parent


def add_results(command: ArgumentParser) -> Run:
    """Write a Markdown page with the headline scores, plots, and verdicts on the papers' claims.

    All tables and significance tests are written into a folder beside the page. Everything is
    computed from the lines of a ledger. Run the command in the folder of config.yaml and config/.
    """
    add_file(command, "ledger", "ledger file, with a JSON line for each run")
    command.add_argument("--scale", required=True, help="scale whose tables to write")
    add_file(command, "--discussion", "Markdown file to append at the end of the page")
    add_file(command, "--output", "page to write, a .md file", required=True)
    return _results


def _results(arguments: Namespace) -> None:
    from convs2s.files.text import read_lines
    from convs2s.files.whole import check_whole
    from convs2s.paper.ledger import read_ledger
    from convs2s.paper.results_page import write_results_page

    check_whole(arguments.ledger)
    discussion = read_lines(arguments.discussion) if arguments.discussion else ()
    settings = read_configuration({"scale": arguments.scale}, "--scale")
    settings.check_whole(sorted(settings.tasks_of_tables()))
    write_results_page(
        settings,
        read_ledger(arguments.ledger),
        ledger=str(arguments.ledger),
        discussion="".join(f"{line}\n" for line in discussion),
        output=arguments.output,
    )


def add_export_results(command: ArgumentParser) -> Run:
    """Pack the scores of a results folder with the files that they were computed from.

    The package has scores, translations, references, settings, training histories, versions and
    model cards, with checksums and RO-Crate metadata. A reader can check every number without
    training.
    """
    add_file(command, "folder", "folder of the results, or of one task")
    # The name is not `output`, because `check_options` refuses a folder under that name.
    add_file(
        command, "package", "NAME.zip to write, or a folder to create", metavar="output"
    )
    add_flag(
        command,
        "--without-text",
        "leave out files with source sentences or references, if the license of the data "
        "requires it; their checksums stay",
    )
    return _export_results


def _export_results(arguments: Namespace) -> None:
    from convs2s.publish.results import export_results

    check_parent(arguments.package)
    export_results(
        arguments.folder, arguments.package, with_text=not arguments.without_text
    )


def add_verify(command: ArgumentParser) -> Run:
    """Verify that a results folder is whole, and print each fault on its own line.

    Every file is compared with the records of it: checksum notes, records of downloads, lists of
    checksums, digests of models and compressed files, manifests of scores. In the folder of
    config.yaml and config/, downloads are also compared with config/downloads.yaml. The command
    only reads files. Run it while no job writes to the folder.
    """
    add_file(
        command,
        "results",
        "folder of the results, of a task or of exported results [results]",
        nargs="?",
        default=Path("results"),
    )
    return _verify


def _verify(arguments: Namespace) -> None:
    from convs2s.publish.verify import known_downloads, verify

    checked = set()
    faults = 0
    for path, found in verify(arguments.results, known_downloads(Path.cwd())):
        checked.add(path)
        faults += len(found)
        for fault in found:
            print(fault)
    if not checked:
        raise UserError(
            f"{arguments.results}: nothing is recorded about its files: name a results folder"
        )
    files = f"{len(checked):,} files"
    if faults:
        raise UserError(f"{arguments.results}: not whole: {faults:,} faults in {files}")
    print(f"{arguments.results}: whole: {files} are as they were recorded")


def add_mirror(command: ArgumentParser) -> Run:
    """Write small generated files that stand in for all downloads of the tasks.

    The file for https://HOST/PATH is FOLDER/HOST/PATH, in the format of the original file.
    FOLDER/SHA256SUMS lists the checksums.
    """
    add_file(command, "folder", "folder to write the files to", metavar="FOLDER")
    return _mirror


def _mirror(arguments: Namespace) -> None:
    from convs2s.mirror.write import write_mirror

    check_parent(arguments.folder)
    write_mirror(arguments.folder)


def add_config(command: ArgumentParser) -> Run:
    """Print the effective configuration of a task with all defaults, or a table of all tasks."""
    group = command.add_mutually_exclusive_group(required=True)
    group.add_argument(
        "--task", metavar="NAME", help="print the configuration of this task"
    )
    add_flag(group, "--tasks", "print a table with a row per task")
    command.add_argument(
        "--model", metavar="NAME", help="model [that of the task's headline]"
    )
    command.add_argument(
        "--decoding", metavar="NAME", help="decoding [that of the task's headline]"
    )
    return _config


def _config(arguments: Namespace) -> None:
    import yaml

    from convs2s.config.file_reference import masked, with_texts

    settings = read_configuration()
    if arguments.tasks:
        if arguments.model or arguments.decoding:
            raise UserError(
                "--model and --decoding apply to one task: give --task NAME instead of --tasks"
            )
        print(
            "| task | what it is | headline: model, runs | ask for |\n| --- | --- | --- | --- |"
        )
        for name, task in sorted(settings.tasks.items()):
            headline = f"`{task.headline.model}`, {', '.join(task.headline_runs())}"
            target = f"`{settings.scale.results_dir}/{name}/{task.metric}.txt`"
            print(f"| `{name}` | {task.description} | {headline} | {target} |")
    else:
        values = settings.effective(arguments.task, arguments.model, arguments.decoding)
        yaml.safe_dump(
            with_texts(values, masked), sys.stdout, sort_keys=False, allow_unicode=True
        )
