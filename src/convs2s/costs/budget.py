"""What a task will take, before it starts: downloads, disk, memory, hours of cores and GPUs.

The figures that it rests on, each with its source, are in config/costs.yaml.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from convs2s.config.costs import CostFigure, KnownTraining
from convs2s.config.file_reference import FileReference, known_download, parse_file_reference
from convs2s.config.settings import Settings
from convs2s.costs.memory import FLOAT_BYTES, OPTIMIZER_NUMBERS, types_of, worker_memory
from convs2s.costs.roofline import Work, work_of
from convs2s.files.atomic import size_of
from convs2s.files.compressed import decompressed_file
from convs2s.layout import Layout
from convs2s.models.build import build_network, shapes_alone
from convs2s.paper.cells import Cell
from convs2s.paper.trained import SECONDS_PER_HOUR

_COMPRESSED = {".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip"}
_MARKED = {".sgm", ".xml", ".tar", ".tgz", ".zip"}  # whose lines are no sentences
_MOST_COUNTED_BYTES = 300_000_000  # of files whose lines are counted: seconds, if compressed


@dataclass(frozen=True)
class Stage:
    """A step of a task: what it adds to the disk and what it takes."""

    name: str
    written: float  # bytes
    freed: float = 0  # bytes that are removed once it is done
    core_hours: float = 0  # over all of its jobs
    memory: float = 0  # bytes of its largest job, as far as they grow with the corpus or model


@dataclass(frozen=True)
class TrainingCost:
    """The trainings of one model: their number, what each holds, its hours if they are known."""

    model: str
    runs: int
    memory: float  # bytes
    state_bytes: int  # of its model and of what its optimizer keeps
    kept_bytes: int  # of its model file and of the parameters that it is exported from
    known: KnownTraining | None
    work: Work | None  # None: of an LSTM


@dataclass(frozen=True)
class Budget:
    """What one task takes."""

    task: str
    pairs: int | None  # of its training text, about; None where it cannot be told yet
    downloads: Mapping[str, int | None]  # place of a file to come -> bytes, None: not known
    missing: Sequence[str]  # local files that are not there
    present: int  # bytes of results that are there already
    stages: Sequence[Stage]  # in the order in which they run; none for a released model
    trainings: Sequence[TrainingCost]

    @property
    def disk(self) -> float:
        """The most bytes that its results hold at a time."""
        return max((during for during, _ in levels(self.stages)), default=0)

    def training_hours(self, device: str) -> float:
        """The hours of all devices of a type (core, GPU) that train, as far as they are known."""
        known = ((cost.runs, cost.known) for cost in self.trainings if cost.known)
        return sum(runs * training.hours for runs, training in known if training.device == device)


def levels(stages: Iterable[Stage]) -> Iterator[tuple[float, float]]:
    """Yield for each stage the bytes on the disk while it runs, and after it."""
    held = 0.0
    for stage in stages:
        during = held + stage.written
        held = during - stage.freed
        yield during, held


def budgets(settings: Settings, names: Sequence[str], cells: Sequence[Cell]) -> list[Budget]:
    """Return what tasks take from their archives to their scores.

    Text that several share is counted with the first of them. ``cells`` are those of the tables to
    fill, each from its runs, beside the tasks' headlines.
    """
    counted = set[Path]()
    return [_budget(settings, name, cells, counted) for name in names]


def _budget(settings: Settings, name: str, cells: Sequence[Cell], counted: set[Path]) -> Budget:
    """Return what a task takes; ``counted`` are the folders of those before, with their texts."""
    task, results = settings.tasks[name], Path(settings.scale.results_dir)
    folders = {results / name, results / task.text_name} - counted
    with_text = results / task.text_name in folders
    counted |= folders
    files = list(dict.fromkeys(map(parse_file_reference, settings.needed_references(name))))
    downloads = Path(settings.scale.downloads_dir)
    absent = {file.location: file for file in files if not file.path(downloads).exists()}
    pairs: int | None = None
    stages: list[Stage] = []
    trainings: list[TrainingCost] = []
    if not task.released:
        pairs = training_pairs(settings, name)
        trainings = _trainings(settings, name, cells, pairs)
        stages += _preparation(settings, name, pairs, with_text=with_text) if pairs else []
        # Each training keeps its model and what that is made of. The one that runs has its last
        # state too, and the next one is whole before that goes.
        states = 2 * max((cost.state_bytes for cost in trainings), default=0)
        kept = sum(cost.runs * cost.kept_bytes for cost in trainings)
        memory = max((cost.memory for cost in trainings), default=0)
        stages.append(Stage("train", kept + states, states, 0, memory))
    return Budget(
        task=name,
        pairs=pairs,
        downloads={
            str(file.path(Path())): _bytes(file, settings)
            for location, file in absent.items()
            if location.startswith("http")
        },
        missing=[location for location, file in absent.items() if not file.is_url],
        present=sum(map(size_of, folders)),
        stages=stages,
        trainings=trainings,
    )


def training_pairs(settings: Settings, name: str) -> int | None:
    """Return the number of a task's training pairs, as the paper states it.

    Of plain text and JSON lines that are there it is the number of lines. Of other text it is the
    number of news sentences that its files have room for: bytes and hours fit; None: not known.
    """
    task = settings.tasks[name]
    if task.paper_pairs and not settings.scale.generated_mirror:
        return task.paper_pairs
    stated = [parse_file_reference(side) for pair in task.file_pairs("train") for side in pair]
    if lines := _lines(stated, settings):
        return lines // 2
    growth, line_bytes = settings.costs.growth.value, settings.costs.line_bytes.value
    text_bytes = 0.0
    for location, file in {file.location: file for file in stated}.items():
        size = _bytes(file, settings)
        if size is None:
            return None
        text_bytes += size * (growth if Path(location).suffix in _COMPRESSED else 1)
    return math.ceil(text_bytes / (2 * line_bytes))


def _lines(files: Sequence[FileReference], settings: Settings) -> int | None:
    """Return the lines of files of text on this machine; None where one is of another kind."""
    places = [file.path(Path(settings.scale.downloads_dir)) for file in files]
    are_text = all(
        (file.member is None or file.is_records)
        and place.is_file()
        and not {*place.suffixes} & {*_MARKED}
        for file, place in zip(files, places, strict=True)
    )
    if not are_text or sum(place.stat().st_size for place in places) > _MOST_COUNTED_BYTES:
        return None
    lines = 0
    for place in places:
        with decompressed_file(place) as stream:
            lines += sum(block.count(b"\n") for block in iter(partial(stream.read, 1 << 20), b""))
    return lines


def _bytes(file: FileReference, settings: Settings) -> int | None:
    """Return a file's size, from itself, a mirror's folder, or what is known of the download."""
    scale = settings.scale
    layout = Layout(scale.results_dir, scale.downloads_dir)
    mirrors = [layout.mirror] if scale.generated_mirror else settings.options.mirrors
    mirrored = [file.path(Path(mirror)) for mirror in mirrors] if file.is_url else []
    for path in (file.path(Path(layout.downloads)), *mirrored):
        if path.is_file():
            return path.stat().st_size
    known = known_download(file.location, settings.downloads)
    return None if known is None or scale.generated_mirror else known.bytes


def _preparation(settings: Settings, name: str, pairs: int, *, with_text: bool) -> Iterator[Stage]:
    """Yield the stages from the archives, or cleaned text, to token stores and aligned words."""
    costs, task = settings.costs, settings.tasks[name]
    cost = {key: figure.value for key, figure in costs if isinstance(figure, CostFigure)}
    if with_text:
        text = 2 * pairs * cost["compressed_line_bytes"]
        readings = 2 if task.hold_out else 1  # once for training, once for validation
        extracted = readings * pairs / cost["extract_rate"] / SECONDS_PER_HOUR
        prepared = pairs / cost["prepare_rate"] / SECONDS_PER_HOUR
        if settings.is_large(task.text_name):
            yield Stage("extract and cut into parts", 2 * text, text, extracted)
            yield Stage("normalize, tokenize, filter", text, text, prepared)
            yield Stage("join the parts", text, text)
        else:
            yield Stage("extract, normalize, tokenize, filter", text, 0, extracted + prepared)
        if task.preparation.truecase:
            yield Stage("truecase", text, 0, pairs / cost["truecase_rate"] / SECONDS_PER_HOUR)
        yield Stage("count words", 0, 0, pairs / cost["count_rate"] / SECONDS_PER_HOUR)
    vocabulary, store = task.vocabulary, pairs * cost["store_bytes"]
    if vocabulary.kind == "bpe":
        merges = vocabulary.merges * (1 if vocabulary.joint else 2)
        yield Stage("learn BPE", 0, 0, merges / cost["merge_rate"] / SECONDS_PER_HOUR)
    encoded = pairs / cost["encode_rate"] / SECONDS_PER_HOUR
    yield Stage("binarize", store, 0, encoded)
    if task.has_dictionary:
        aligned = min(pairs, task.alignment.pairs or pairs)
        links, memory = aligned * cost["link_bytes"], aligned * cost["align_bytes"]
        yield Stage("align", links, 0, aligned / cost["align_rate"] / SECONDS_PER_HOUR, memory)


def _trainings(
    settings: Settings, name: str, cells: Iterable[Cell], pairs: int | None
) -> list[TrainingCost]:
    """Return the trainings for a task's headline and for its cells."""
    task, options = settings.tasks[name], settings.options
    gpus = 0 if options.device == "cpu" else options.gpus or 0
    runs = {(task.headline.model, run) for run in task.headline_runs()}
    of_cells = (training for cell in cells for training in cell.trainings)
    runs |= {(model, run) for of_task, model, run in of_cells if of_task == name}
    source, target = (types_of(task.vocabulary, side, pairs) for side in ("source", "target"))
    trainings = []
    for model, count in Counter(model for model, _ in sorted(runs)).items():
        architecture, recipe = settings.models[model].architecture, settings.models[model].training
        with shapes_alone():
            network = build_network(architecture, source, target)
        parameters = sum(parameter.numel() for parameter in network.parameters())
        memory = max(1, gpus) * worker_memory(recipe, parameters, target, gpu=gpus > 0)
        known = settings.costs.training(task.text_name, model)
        weights = parameters * FLOAT_BYTES
        state = OPTIMIZER_NUMBERS[recipe.optimizer] * weights
        kept = (1 + (recipe.average or 1)) * weights
        work = work_of(architecture, recipe, network, target)
        trainings.append(TrainingCost(model, count, memory, state, kept, known, work))
    return trainings
