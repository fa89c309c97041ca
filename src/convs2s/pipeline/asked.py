"""What is refused before anything is planned: names that there are not, folders that are missing.

Snakemake would say of a path with a slip of the pen that no rule makes it, and of a name that it is
a KeyError, without the name that was meant.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

from convs2s.config.file_reference import without_credentials
from convs2s.config.messages import unknown
from convs2s.config.runs import RUN_PATTERN
from convs2s.config.settings import Settings, check_replacement, check_selection
from convs2s.config.task import Task
from convs2s.errors import UserError
from convs2s.layout import Layout

# What lies beside the folders of tasks in a results folder.
_OTHER_FOLDERS = {"archives", "benchmarks", "downloads", "logs", "paper", "shown"}
# Chinese, Japanese, Thai, Lao, Khmer, Burmese.
_WITHOUT_BLANKS = {"zh", "ja", "th", "lo", "km", "my"}
_RUN = re.compile(f"{RUN_PATTERN}|released")
_OF_COMPARISON = re.compile(
    r"(?P<testset>[^.]+)\.(?P<decoding>[^.]+)\.(?P<baseline>.+)-vs-(?P<system>.+)\.(?:txt|json)"
)
# TESTSET.DECODING.WHAT; a test set's rescored lists have no decoding of their own.
_OF_TEST_SET = re.compile(r"(?P<testset>[^.]+)\.(?P<decoding>[^.]+)\.(?P<what>.+)")
_NO_DECODING = {"scored", "rescored"}
_NO_TEST_SET = {"phrases", "training"}
_OF_SCORER = re.compile(rf"(?:re)?scored-by-(?P<model>.+)-(?:{RUN_PATTERN}|released)\..+")
_OF_ATTENTION = re.compile(r".+\.attention\d+\.\w+|.+\.example\.json")
_OF_ONE_MODEL = re.compile(rf"(?:curve|history|training|model)\..+|{_OF_ATTENTION.pattern}")


def doubts(tasks: Mapping[str, Task]) -> list[str]:
    """Return what a user should know of tasks that would run all the same, a line each."""
    return [
        f"{task.name}: text in '{language}' has no blanks between words, and no preparation here "
        "splits it: split it yourself and state `preparation: {train: none, test: none}` "
        "(docs/own_language_pair.md)"
        for task in tasks.values()
        if task.text is None
        for language in task.language_pair
        if language.partition("_")[0] in _WITHOUT_BLANKS and task.preparation.train != "none"
    ]


def check_mirrors(mirrors: Iterable[str]) -> None:
    """Refuse a folder of ``mirrors`` that is not there, before hours of work end at it.

    Raises:
        UserError: one of them is missing, or no folder.
    """
    for mirror in mirrors:
        if "://" not in mirror and not Path(mirror).is_dir():
            raise UserError(
                f"mirrors: {without_credentials(mirror)}: no such folder: mount it, or take it out "
                "of the configuration"
            )


def check_targets(targets: Iterable[str], rules: Collection[str], settings: Settings) -> None:
    """Refuse a target with a name in it that nothing has, and say which one is near.

    Args:
        targets: names of rules, and paths, as they were typed.
        rules: names of all rules.
        settings: the configuration, with its folders where a run really has them.

    Raises:
        UserError: a task, model, run, test set, decoding or scale is not known.
    """
    for target in sorted({*targets} - {*rules}):
        if re.fullmatch(r"\w+", target):
            _check_name(target, rules, settings)
        else:
            _check_folder(target, Path(settings.scale.results_dir))
            _check_scale(target, Path(settings.scale.results_dir))
            if not Path(target).exists():
                _check_path(target, settings)


def _check_name(target: str, rules: Collection[str], settings: Settings) -> None:
    """Check what is neither a rule nor a path; any other word is Snakemake's affair."""
    if target in settings.tasks:
        _refuse_task(target, target, settings)
    if get_close_matches(target, rules, n=1):
        raise UserError(f"{target}: {unknown('target', target, rules)}")


def _refuse_task(target: str, task: str, settings: Settings) -> None:
    report = Layout(settings.scale.results_dir, "").task(task).report(settings.tasks[task].metric)
    raise UserError(f"{target}: is a task, not a target: ask for {report}")


def _check_folder(path: str, results: Path) -> None:
    """Refuse ``result/demo_en_fr/bleu.txt``: a folder that is like that of the results."""
    first, *place = Path(path).parts or [""]
    if place and first != results.parts[0] and get_close_matches(first, results.parts[:1]):
        raise UserError(f"{path}: unknown folder '{first}'; did you mean '{results.parts[0]}'?")


def _check_path(path: str, settings: Settings) -> None:
    """Check the names in a path of the results folder; any other one is Snakemake's affair."""
    results = Path(settings.scale.results_dir)
    if not Path(path).is_relative_to(results):
        return
    task, *place = Path(path).relative_to(results).parts or [""]
    if task == "scales" and place:
        raise UserError(f"{path}: belongs to another scale: add --config scale={place[0]}")
    if task in _OTHER_FOLDERS:
        return
    _known(path, "task", task, [*settings.tasks, *sorted(_OTHER_FOLDERS)])
    if not place:
        _refuse_task(path, task, settings)
    if place[0] == "models" and len(place) == 4:
        model, run, file = place[1:]
        _known(path, "model", model, settings.models)
        check_selection(path, model, settings.tasks[task], settings)
        _check_run(path, model, run, file, settings.tasks[task].corpus.tests, settings)
    if place[0] == "compare" and (found := _OF_COMPARISON.fullmatch(place[-1])):
        _known(path, "test set", found["testset"], [*settings.tasks[task].corpus.tests, "valid"])
        _known(path, "decoding", found["decoding"], settings.decodings)
        for side in ("baseline", "system"):
            _known(path, "model", found[side], settings.models)


def _check_scale(path: str, results: Path) -> None:
    """Refuse a path beside the folder of the scale at hand: it is of another scale."""
    above = results.parent.parent
    if results.parent.name != "scales" or not Path(path).is_relative_to(above):
        return
    place = Path(path).relative_to(above)
    if not place.parts or Path(path).is_relative_to(results):
        return
    if place.parts[:1] == ("scales",):
        raise UserError(f"{path}: belongs to another scale: add --config scale={place.parts[1]}")
    raise UserError(
        f"{path}: belongs to another scale than {results.name}, whose results are below {results}: "
        f"ask for {results / place}, or leave out scale={results.name}"
    )


def _check_run(
    path: str, model: str, run: str, file: str, testsets: Collection[str], settings: Settings
) -> None:
    if not _RUN.fullmatch(run):
        raise UserError(
            f"{path}: unknown run '{run}'; expected a seed, such as seed1, or an ensemble of the "
            "first seeds, such as ensemble2"
        )
    if run.startswith("ensemble") and _OF_ONE_MODEL.fullmatch(file):
        raise UserError(f"{path}: is of one model, not of an ensemble: ask for that of seed1")
    if _OF_ATTENTION.fullmatch(file) and settings.models[model].architecture.kind == "lstm":
        raise UserError(f"{path}: '{model}' is an LSTM and has no attention to show")
    found = _OF_TEST_SET.fullmatch(file)
    if found and found["testset"] not in _NO_TEST_SET:
        _known(path, "test set", found["testset"], [*testsets, "valid"])
        if found["decoding"] not in _NO_DECODING:
            _known(path, "decoding", found["decoding"], settings.decodings)
            check_replacement(path, model, found["decoding"], settings)
        if scorer := _OF_SCORER.fullmatch(found["what"]):
            _known(path, "model", scorer["model"], settings.models)


def _known(path: str, what: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise UserError(f"{path}: {unknown(what, name, known)}")
