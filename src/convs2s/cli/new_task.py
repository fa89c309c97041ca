"""The command ``convs2s new-task``."""

import re
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from convs2s.cli.options import Run, print_warning

if TYPE_CHECKING:
    from convs2s.data.new_task import Made
    from convs2s.data.pair_files import Reading


def add_new_task(command: ArgumentParser) -> Run:
    """Make a task of your own text: clean it, split it, and write its configuration.

    Files are tables (TSV, CSV, Parquet), JSON lines, TMX, WMT's XML, or pairs of files with one
    sentence per line. They may be compressed or in an archive. Pairs that are empty or repeated are
    left out, and so are training pairs with a sentence of the validation or test text. Run the
    command in the folder of config.yaml and config/.
    """
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="file of text, or ARCHIVE#MEMBER"
    )
    command.add_argument(
        "--languages",
        nargs=2,
        required=True,
        metavar=("SOURCE", "TARGET"),
        help="codes of the languages, such as en ro",
    )
    command.add_argument(
        "--name",
        help="name of the task [made of the first file's name and the languages]",
    )
    command.add_argument(
        "--columns",
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="numbers from 1, or names, of a table's columns [the columns with the languages as "
        "names, or the only two]",
    )
    command.add_argument(
        "--reference",
        metavar="TRANSLATOR",
        help="translator of the reference in WMT's XML, such as A [the only one]",
    )
    for split in ("valid", "test"):
        command.add_argument(
            f"--{split}",
            nargs="+",
            default=[],
            metavar="FILE",
            help=f"files of {split} text [pairs drawn from the other files]",
        )
    return _new_task


def _new_task(arguments: Namespace) -> None:
    from convs2s.config.corpus import Languages
    from convs2s.config.load import check_task_name, load
    from convs2s.config.messages import validated
    from convs2s.data.new_task import NewTask, new_task
    from convs2s.data.pair_files import Reading
    from convs2s.errors import UserError
    from convs2s.text.languages import preparation_warning

    source, target = arguments.languages
    stated = {"source": source, "target": target}
    languages = validated(Languages, stated, "--languages")
    if source == target:
        raise UserError("--languages: expected two different codes, such as en ro")
    name = arguments.name or _default_name(arguments.files[0], source, target)
    check_task_name(name, "--name")
    settings = load(Path.cwd())
    if name in settings.tasks:
        problem = f"config/tasks/{name}.yaml exists already: choose another name"
        if Path("data", name).is_dir():
            problem += (
                f", or delete config/tasks/{name}.yaml and data/{name} to make it again"
            )
        raise UserError(f"--name {name}: {problem}")
    columns = tuple(arguments.columns) if arguments.columns else None
    reading = Reading(languages, columns, arguments.reference)
    made = new_task(
        NewTask(name, arguments.files, reading, arguments.valid, arguments.test)
    )
    _print_made(name, made, reading, arguments)
    for language in (source, target):
        print_warning(preparation_warning(language, "moses_test"))
    print(f"next: snakemake {settings.scale.results_dir}/{name}/bleu.txt")


def _print_made(
    name: str, made: "Made", reading: "Reading", arguments: Namespace
) -> None:
    """Print what a task was made of."""
    source, target = arguments.languages
    counts = made.counts
    print(f"read {counts.read:,} pairs of {' '.join(arguments.files)}")
    print(
        f"left out {counts.empty:,} with an empty side, {counts.unreadable:,} with unreadable "
        f"characters (U+FFFD), {counts.repeated:,} repeated, and {counts.held_back:,} with a side "
        "that is in the validation or test text"
    )
    for split, count in counts.splits.items():
        print(f"wrote {count:,} pairs to data/{name}/{split}.{{{source},{target}}}")
    for table in reading.tables:
        if table.titles is not None:
            titles = ", ".join(map(repr, table.titles))
            print(
                f"left out the first row of {table.name}, names of columns: {titles:.80}"
            )
    first = (
        f"first pair: {source} {made.first[0]!r:.80}, {target} {made.first[1]!r:.80}"
    )
    if made.table is not None and made.table.titles is None:
        columns = made.table.columns
        first += f"; wrong way round? add --columns {columns[1]} {columns[0]}"
    print(first)
    print(
        f"wrote config/tasks/{name}.yaml: model {made.size.model}, {made.size.merges:,} BPE merges"
        f"{'' if made.joint else ' of each language'}"
    )


def _default_name(file: str, source: str, target: str) -> str:
    """Return a task's name, made of the name of its first file and its languages."""
    stem = Path(file.partition("#")[0]).name.partition(".")[0].lower()
    words = re.findall("[a-z0-9]+", stem)
    if not words or not words[0][0].isalpha():
        words.insert(0, "pairs")
    for language in (source, target):
        if language not in words:
            words.append(language)
    return "_".join(words)
