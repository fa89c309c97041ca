"""What is refused before anything is planned: names that there are not, folders that are missing.

Snakemake would say of a path with a slip of the pen that no rule makes it, and of a name that it is
a KeyError, without the name that was meant.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from convs2s.config.file_reference import masked
from convs2s.config.load import FOLDERS_OF_RESULTS
from convs2s.config.messages import check_known, unknown
from convs2s.config.options import Options
from convs2s.config.runs import RUN_PATTERN
from convs2s.config.settings import Settings, check_replacement, check_selection
from convs2s.config.task import Task
from convs2s.errors import UserError
from convs2s.layout import Layout

# Chinese, Japanese, Thai, Lao, Khmer, Burmese.
_WITHOUT_BLANKS = {"zh", "ja", "th", "lo", "km", "my"}
# The codes of three letters for which Moses has a list of abbreviations; all others have two.
_OF_THREE_LETTERS = {"mni", "tdt", "yue"}
_RUN = f"{RUN_PATTERN}|released"
_OF_COMPARISON = re.compile(
    r"(?P<testset>[^.]+)\.(?P<decoding>[^.]+)\.(?P<baseline>.+)-vs-(?P<system>.+)\.(?:txt|json)"
)
# TESTSET.DECODING.REST; phrases have no test set, rescored lists no decoding of their own.
_OF_TEST_SET = re.compile(
    r"(?P<testset>(?!phrases\.|training\.)[^.]+)\.(?P<decoding>[^.]+)\."
    rf"(?:(?:re)?scored-by-(?P<scorer>.+)-(?:{_RUN})\.)?.+"
)
_NO_DECODING = {"perplexity", "scored", "rescored"}
_OF_ATTENTION = re.compile(r".+\.attention\d+\.\w+|.+\.example\.json")
_OF_ONE_MODEL = re.compile(rf"(?:curve|history|training|model)\..+|{_OF_ATTENTION.pattern}")


def task_warnings(tasks: Mapping[str, Task]) -> list[str]:
    """Return what a user should know of tasks that would run all the same, a line each."""
    lines = []
    for task in tasks.values():
        if task.text is not None or task.preparation.train == "none":
            continue
        for language in task.language_pair:
            code = language.partition("_")[0]
            if code in _WITHOUT_BLANKS:
                lines.append(
                    f"{task.name}: text in '{language}' has no blanks between words, and no "
                    "preparation here splits it: split it yourself and state `preparation: {train: "
                    "none, test: none}` (docs/own_language_pair.md)"
                )
            elif len(code) > 2 and code not in _OF_THREE_LETTERS:
                lines.append(
                    f"{task.name}: '{language}' has no list of abbreviations: those of English are "
                    "taken (docs/preparation.md); a language goes by its code of two letters where "
                    "it has one, such as ro for Romanian"
                )
    return lines


def check_options(options: Options, default_resources: Mapping[str, Any]) -> None:
    """Refuse options that cannot be had, before hours of work end at them.

    ``default_resources`` are the profile's, among them the ``most_nodes`` of a training.
    """
    for mirror in options.mirrors:
        if "://" not in mirror and not Path(mirror).is_dir():
            raise UserError(
                f"mirrors: {masked(mirror)}: no such folder: mount it, or take it out "
                "of the configuration"
            )
    most = getattr(default_resources.get("most_nodes"), "value", None)
    if most and options.nodes > most:
        raise UserError(
            f"nodes: {options.nodes}: a job of this profile is one pod on one machine: set nodes "
            f"to {most} and gpus to those of a machine, or use profiles/slurm (docs/cluster.md)"
        )


def check_targets(targets: Iterable[str], rules: Collection[str], settings: Settings) -> None:
    """Refuse a target with a name in it that nothing has, and say which one is near.

    Any other word, and any path outside of the results, is Snakemake's affair.
    """
    for target in sorted({*targets} - {*rules}):
        if not re.fullmatch(r"\w+", target):
            _check_folder(target, Path(settings.scale.results_dir))
            _check_path(target, settings)
        elif target in settings.tasks:
            raise _report_instead(target, target, settings)
        elif get_close_matches(target, rules, n=1):
            raise UserError(f"{target}: {unknown('target', target, rules)}")


def _report_instead(target: str, task: str, settings: Settings) -> UserError:
    report = Layout(settings.scale.results_dir, "").task(task).report(settings.tasks[task].metric)
    return UserError(f"{target}: is a task, not a target: ask for {report}")


def _check_folder(path: str, results: Path) -> None:
    """Refuse a folder that is like that of the results, and that of another scale's results."""
    first, *rest = Path(path).parts or [""]
    if rest and first != results.parts[0] and get_close_matches(first, results.parts[:1]):
        raise UserError(f"{path}: unknown folder '{first}'; did you mean '{results.parts[0]}'?")
    above = results.parent.parent
    if results.parent.name != "scales" or not Path(path).is_relative_to(above):
        return
    place = Path(path).relative_to(above)
    if place.parts in ((), ("scales",)) or Path(path).is_relative_to(results):
        return
    if place.parts[0] == "scales":
        raise UserError(f"{path}: belongs to another scale: add --config scale={place.parts[1]}")
    raise UserError(
        f"{path}: belongs to another scale than {results.name}, whose results are below {results}: "
        f"ask for {results / place}, or leave out scale={results.name}"
    )


def _check_path(path: str, settings: Settings) -> None:
    results = Path(settings.scale.results_dir)
    # A word of the command line that is no path may be longer than any file's name can be.
    if not Path(path).is_relative_to(results) or Path(path).exists():
        return
    name, *place = Path(path).relative_to(results).parts or [""]
    if name == "scales" and place:
        raise UserError(f"{path}: belongs to another scale: add --config scale={place[0]}")
    if name in ("", "report.html", *FOLDERS_OF_RESULTS):
        return
    check_known(path, "task", name, [*settings.tasks, *FOLDERS_OF_RESULTS])
    if not place:
        raise _report_instead(path, name, settings)
    task = settings.tasks[name]
    testsets = [*task.corpus.tests, "valid"]
    if place[0] == "models" and len(place) == 4:
        model, run, file = place[1:]
        check_known(path, "model", model, settings.models)
        check_selection(path, model, task, settings)
        if not re.fullmatch(_RUN if task.released else RUN_PATTERN, run):
            raise UserError(
                f"{path}: unknown run '{run}'; expected a seed, such as seed1, or an ensemble of "
                "the first seeds, such as ensemble2"
            )
        if run.startswith("ensemble") and _OF_ONE_MODEL.fullmatch(file):
            raise UserError(f"{path}: is of one model, not of an ensemble: ask for that of seed1")
        if _OF_ATTENTION.fullmatch(file) and not settings.models[model].architecture.has_attention:
            raise UserError(f"{path}: '{model}' has no attention to show")
        if names := _OF_TEST_SET.fullmatch(file):
            check_known(path, "test set", names["testset"], testsets)
            if names["decoding"] not in _NO_DECODING:
                check_known(path, "decoding", names["decoding"], settings.decodings)
                check_replacement(path, model, names["decoding"], settings)
            check_known(path, "model", names["scorer"], settings.models)
    if place[0] == "compare" and (names := _OF_COMPARISON.fullmatch(place[-1])):
        check_known(path, "test set", names["testset"], testsets)
        check_known(path, "decoding", names["decoding"], settings.decodings)
        for side in ("baseline", "system"):
            check_known(path, "model", names[side], settings.models)


def check_model_file(path: str, where: str, settings: Settings) -> None:
    """Refuse a missing model file, with which another begins, that no training would make."""
    try:
        _check_path(path, settings)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    is_model = Path(path).name == "model.safetensors"
    if not (is_model and Path(path).is_relative_to(settings.scale.results_dir)):
        raise UserError(f"{where}: {path}: no such file: name a model file that is there")


def check_file(path: str, patterns: Iterable[str], has_rule: Callable[[str], bool]) -> None:
    """Refuse a path that no rule makes, where rules make others in the same folder.

    Patterns are the outputs of all rules, with wildcards such as ``{task}``.
    """
    if has_rule(path):
        return
    folder, _, file = path.rpartition("/")
    given = file.split(".")
    names, filled = set(), set()
    for pattern in patterns:
        above, _, name = pattern.rpartition("/")
        if re.fullmatch("[^/]+".join(map(re.escape, re.split(r"\{\w+\}", above))), folder):
            names.add(name)
            # What the path states between its dots stands for the wildcards.
            parts = name.split(".")
            for place in range(min(len(parts), len(given))):
                parts[place] = given[place] if "{" in parts[place] else parts[place]
            filled.add(".".join(parts))
    made = [name for name in filled - {file} if has_rule(f"{folder}/{name}")]
    if names:
        near = get_close_matches(file, made, n=1)
        raise UserError(f"{path}: {unknown('file', file, near or names)}")
