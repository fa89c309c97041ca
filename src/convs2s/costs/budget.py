"""The budget of a task before it starts: downloads, disk, memory, hours of cores and GPUs.

The budget is computed from the figures in config/costs.yaml, which also states their sources.
"""

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from convs2s.config.costs import CostFigure
from convs2s.config.file_reference import (
    FileReference,
    known_download,
    parse_file_reference,
)
from convs2s.config.settings import Settings
from convs2s.config.task import Task
from convs2s.costs.memory import (
    FLOAT_BYTES,
    OPTIMIZER_NUMBERS,
    training_memory,
    types_of,
)
from convs2s.costs.roofline import CalculatedSpeed, Work
from convs2s.data.dataset import read_description
from convs2s.files.atomic import size_of
from convs2s.files.compressed import BUFFER_BYTES, decompressed_file
from convs2s.layout import Layout
from convs2s.paper.cells import Cell
from convs2s.paper.trained import SECONDS_PER_HOUR
from convs2s.training.identity import may_be_longer

_COMPRESSED = {".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip"}
# Suffixes of archives and of files with markup, which do not have one sentence per line.
_WITHOUT_SENTENCE_LINES = {".sgm", ".xml", ".tar", ".tgz", ".zip"}
# Lines are counted if the files have at most this size in total. Counting takes seconds, even in
# compressed files.
_MOST_COUNTED_BYTES = 300_000_000


@dataclass(frozen=True)
class Stage:
    """A step of a task, with the disk space, processor time and memory that it takes."""

    name: str
    written: float  # bytes of the files that it writes
    freed: float = 0  # bytes that are removed after it
    core_hours: float = 0  # of all its jobs together
    # Bytes of memory of its largest job, as far as they grow with the corpus or the model.
    memory: float = 0


@dataclass(frozen=True)
class TrainingCost:
    """The trainings of one model: how many there are, and what each of them takes."""

    model: str
    runs: int  # the number of trainings
    missing: int  # the number of trainings that are not finished
    memory: float  # bytes of memory of a training, of all its workers together
    # The size of a training state: the parameters and the optimizer's numbers.
    state_bytes: int
    # The size of the model file, and of the states that stay after the training.
    kept_bytes: int
    work: Work
    epoch_tokens: float | None  # target tokens of an epoch; None if not known yet
    # The number of epochs, by the recipe or by the paper's hours; None if validation decides it.
    epochs: float | None


@dataclass(frozen=True)
class Budget:
    """The budget of one task."""

    task: str
    pairs: int | None  # the approximate number of training pairs; None if not known yet
    # Path of each file that is still to be downloaded -> its bytes; None if not known.
    downloads: Mapping[str, int | None]
    # Local files that the user has to provide and that do not exist.
    missing: Sequence[str]
    present: int  # bytes of results that exist already
    # The stages in the order in which they run; empty for a released model.
    stages: Sequence[Stage]
    trainings: Sequence[TrainingCost]

    @property
    def disk(self) -> float:
        """The number of bytes that the task's results take at the time when they take most."""
        return max((during for _, during, _ in levels(self.stages)), default=0)


def levels(stages: Iterable[Stage]) -> Iterator[tuple[Stage, float, float]]:
    """Yield each stage with the bytes on the disk while it runs, and the bytes after it."""
    after = 0.0
    for stage in stages:
        during = after + stage.written
        after = during - stage.freed
        yield stage, during, after


def budgets(
    settings: Settings,
    names: Sequence[str],
    cells: Sequence[Cell],
) -> list[Budget]:
    """Return the budgets of tasks. If tasks share their text, only the first one counts it.

    Args:
        settings: the configuration.
        names: the tasks.
        cells: the cells of the tables to fill. The models of these cells are trained, and those of
            the tasks' headlines.
    """
    results = Path(settings.scale.results_dir)
    counted: set[Path] = set()
    found = []
    for name in names:
        task = settings.tasks[name]
        text_folder = results / task.text_name
        # The folder of a text is counted with the first task that uses the text.
        folders = {results / name, text_folder} - counted
        counted |= folders
        pairs: int | None = None
        stages: list[Stage] = []
        trainings: list[TrainingCost] = []
        if not task.released:
            pairs = training_pairs(settings, task)
            trainings = _trainings(settings, name, cells, pairs)
            if pairs:
                stages += _preparation(
                    settings, task, pairs, with_text=text_folder in folders
                )
            stages.append(_train(trainings))
        downloads, missing = _absent_files(settings, name)
        budget = Budget(
            task=name,
            pairs=pairs,
            downloads=downloads,
            missing=missing,
            present=sum(map(size_of, folders)),
            stages=stages,
            trainings=trainings,
        )
        found.append(budget)
    return found


def _absent_files(
    settings: Settings, name: str
) -> tuple[dict[str, int | None], list[str]]:
    """Return the files of a task that do not exist here.

    The first item has the files to download: path -> bytes, or None if the bytes are not known. The
    second item has the paths of the files that the user has to provide.
    """
    downloads: dict[str, int | None] = {}
    missing = []
    for file in map(parse_file_reference, settings.needed_references(name)):
        if file.path(Path(settings.scale.downloads_dir)).exists():
            continue
        if file.location.startswith("http"):
            downloads[str(file.path(Path()))] = _bytes(file, settings)
        elif not file.is_url and file.location not in missing:
            missing.append(file.location)
    return downloads, missing


def _train(trainings: Sequence[TrainingCost]) -> Stage:
    """Return the stage that runs all trainings of a task, one after another."""
    # Each training keeps its model and some of its states. The running training also needs room for
    # two states, because it writes a new state before it removes the old one.
    states = 2 * max(cost.state_bytes for cost in trainings)
    kept = sum(cost.runs * cost.kept_bytes for cost in trainings)
    memory = max(cost.memory for cost in trainings)
    return Stage("train", written=kept + states, freed=states, memory=memory)


def training_pairs(settings: Settings, task: Task) -> int | None:
    """Return the approximate number of a task's training pairs; None if it is not known.

    The number is the first of these that is available:

    - the number that the paper states, unless a mirror with small files is generated;
    - half the number of lines, for plain text and JSON lines on this machine;
    - the size of the files, divided by the size of a pair of news sentences. If the sentences are
      shorter, this number is too low. The bytes and hours that are estimated from it are still
      about right, because they depend on the amount of text.
    """
    if task.paper_pairs and not settings.scale.generated_mirror:
        return task.paper_pairs
    files = list(
        map(parse_file_reference, chain.from_iterable(task.file_pairs("train")))
    )
    lines = _lines(files, settings)  # of both sides
    if lines:
        return lines // 2
    text_bytes = 0.0
    # An archive counts once, even if it contains several of the files.
    files_by_location = {file.location: file for file in files}
    for file in files_by_location.values():
        size = _bytes(file, settings)
        if size is None:
            return None
        if Path(file.location).suffix in _COMPRESSED:
            text_bytes += size * settings.costs.growth.value
        else:
            text_bytes += size
    return math.ceil(text_bytes / (2 * settings.costs.line_bytes.value))


def _lines(files: Iterable[FileReference], settings: Settings) -> int | None:
    """Return the total number of lines of text files.

    Return None if a file does not exist, is in an archive, or does not have one sentence per line.
    Also return None if the files are too large to count their lines.
    """
    paths = []
    for file in files:
        path = file.path(Path(settings.scale.downloads_dir))
        is_in_archive = file.member is not None and not file.is_records
        has_other_lines = not _WITHOUT_SENTENCE_LINES.isdisjoint(path.suffixes)
        if is_in_archive or has_other_lines or not path.is_file():
            return None
        paths.append(path)
    if sum(path.stat().st_size for path in paths) > _MOST_COUNTED_BYTES:
        return None
    lines = 0
    for path in paths:
        with decompressed_file(path) as stream:
            while block := stream.read(BUFFER_BYTES):
                lines += block.count(b"\n")
    return lines


def _bytes(file: FileReference, settings: Settings) -> int | None:
    """Return the size of a file in bytes; None if it is not known.

    The size is that of the file itself, or else that of its copy in a mirror, or else the one in
    config/downloads.yaml. A generated mirror has smaller files, so the size in
    config/downloads.yaml is not used with it.
    """
    scale = settings.scale
    mirrors = settings.options.mirrors
    if scale.generated_mirror:
        mirrors = (Layout(scale.results_dir, scale.downloads_dir).mirror,)
    for folder in (scale.downloads_dir, *mirrors):
        path = file.path(Path(folder))
        if path.is_file():
            return path.stat().st_size
    known = known_download(file.location, settings.downloads)
    return None if known is None or scale.generated_mirror else known.bytes


def _preparation(
    settings: Settings,
    task: Task,
    pairs: int,
    *,
    with_text: bool,
) -> Iterator[Stage]:
    """Yield the stages that prepare a task, up to its token stores and word alignments.

    The first stage reads the archives. If ``with_text`` is False, another task prepares the text,
    and the first stage reads the prepared text.
    """
    costs = settings.costs
    if with_text:
        # Bytes of the text of both sides, compressed.
        text = 2 * pairs * costs.compressed_line_bytes.value
        # If the validation set is held out, the files are read once more to extract it.
        readings = 2 if task.hold_out else 1
        extraction = _hours(readings * pairs, costs.extract_rate)
        cleaning = _hours(pairs, costs.prepare_rate)
        if settings.is_large(task.text_name):
            # Each step writes a copy of the text, and then the copy before it is removed.
            yield Stage(
                "extract and cut into parts",
                2 * text,
                freed=text,
                core_hours=extraction,
            )
            yield Stage(
                "normalize, tokenize, filter", text, freed=text, core_hours=cleaning
            )
            yield Stage("join the parts", text, freed=text)
        else:
            hours = extraction + cleaning
            yield Stage("extract, normalize, tokenize, filter", text, core_hours=hours)
        if task.preparation.truecase:
            hours = _hours(pairs, costs.truecase_rate)
            yield Stage("truecase", text, core_hours=hours)
        yield Stage("count words", 0, core_hours=_hours(pairs, costs.count_rate))
    if task.vocabulary.kind == "bpe":
        # Each side has its own codes, unless the sides share them.
        learners = 1 if task.vocabulary.joint else 2
        merges = learners * task.vocabulary.merges
        yield Stage("learn BPE", 0, core_hours=_hours(merges, costs.merge_rate))
    store = pairs * costs.store_bytes.value
    yield Stage("binarize", store, core_hours=_hours(pairs, costs.encode_rate))
    if task.has_dictionary:
        # A task may limit the number of pairs to align.
        aligned = min(pairs, task.alignment.pairs or pairs)
        yield Stage(
            "align",
            written=aligned * costs.link_bytes.value,
            core_hours=_hours(aligned, costs.align_rate),
            memory=aligned * costs.align_bytes.value,
        )


def _hours(count: int, rate: CostFigure) -> float:
    """Return the hours for ``count`` items at ``rate``, in items per second."""
    return count / rate.value / SECONDS_PER_HOUR


def _trainings(
    settings: Settings,
    name: str,
    cells: Iterable[Cell],
    pairs: int | None,
) -> list[TrainingCost]:
    """Return the costs of a task's trainings: those for its headline and those for its cells."""
    task = settings.tasks[name]
    folder = Layout(settings.scale.results_dir, settings.scale.downloads_dir).task(name)
    trainings = {(name, task.headline.model, run) for run in task.headline_runs()}
    trainings.update(chain.from_iterable(cell.trainings for cell in cells))
    runs_of_models = defaultdict(list)
    for task_name, model, run in sorted(trainings):
        if task_name == name:
            runs_of_models[model].append(run)
    options = settings.options
    # If `gpus` is null, the device `cuda` means one GPU. The device `auto` counts as no GPU,
    # because the machine may have none.
    gpus = options.gpus or int(options.device == "cuda")
    if options.device == "cpu":
        gpus = 0
    types = types_of(task.vocabulary, pairs)
    sentence_tokens = settings.costs.sentence_tokens.value
    epoch_tokens = None if pairs is None else pairs * sentence_tokens
    description = Path(folder.store_description("train"))
    if description.is_file():
        epoch_tokens = read_description(description).target_tokens
    costs = []
    for model, runs in runs_of_models.items():
        architecture = settings.models[model].architecture
        recipe = settings.models[model].training
        # A recipe limits the tokens of a batch, its sentences, or both.
        sentences = recipe.batch.sentences or math.inf
        work = Work(
            architecture,
            recipe,
            types,
            tokens=min(recipe.batch.tokens or math.inf, sentences * sentence_tokens),
            threads=min(options.cores or recipe.threads, os.cpu_count() or 1),
        )
        epochs = recipe.maximum_epochs
        if epochs is None and epoch_tokens:
            tokens = _tokens_of_paper(settings, task.text_name, model, work)
            if tokens is not None:
                epochs = tokens / epoch_tokens
        weights = work.parameters * FLOAT_BYTES
        # The model file, and the sets of parameters whose average it is.
        averaged = recipe.average or 1
        kept_bytes = (1 + averaged) * weights
        state_bytes = OPTIMIZER_NUMBERS[recipe.optimizer] * weights
        # The last training state is kept if a longer training could continue from it.
        if may_be_longer(recipe.schedule.kind, recipe.maximum_epochs):
            kept_bytes += state_bytes
        missing = [run for run in runs if not Path(folder.model(model, run)).exists()]
        cost = TrainingCost(
            model=model,
            runs=len(runs),
            missing=len(missing),
            memory=training_memory(recipe, work.parameters, types[1], gpus),
            state_bytes=state_bytes,
            kept_bytes=kept_bytes,
            work=work,
            epoch_tokens=epoch_tokens,
            epochs=epochs,
        )
        costs.append(cost)
    return costs


def _tokens_of_paper(
    settings: Settings, text: str, model: str, work: Work
) -> float | None:
    """Return the target tokens of a training of the paper; None if they cannot be computed.

    The papers do not state the number of epochs. So the tokens are computed from the hours that a
    paper states for the training, at the speed that is calculated for the papers' GPU.
    """
    known = settings.costs.training(text, model)
    recipe = work.recipe.model_copy(update={"precision": "fp32", "compile": False})
    papers = CalculatedSpeed(settings.costs.paper_gpu, settings.costs)
    update = papers.update(replace(work, recipe=recipe), work.tokens)
    if known is None or update is None:
        return None
    return known.hours * SECONDS_PER_HOUR * work.tokens / update.seconds
