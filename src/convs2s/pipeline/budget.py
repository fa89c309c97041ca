"""What a run will take, before it starts: downloads, disk, memory, hours of cores and GPUs.

The figures that it rests on, each with its source, are in config/costs.yaml.
"""

import math
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from convs2s.config.corpus import VocabularySettings
from convs2s.config.costs import CostFigure
from convs2s.config.file_reference import FileReference, local_path, parse_file_reference
from convs2s.config.model import Recipe
from convs2s.config.runs import members
from convs2s.config.scale import Scale
from convs2s.config.settings import Settings
from convs2s.layout import Layout
from convs2s.models.build import build_network, shapes_alone
from convs2s.paper.cells import Cell

_FLOAT_BYTES = 4
_TYPES_PER_MERGE = 1.12  # 44,463 types of 40,000 merges (WMT'14 English-French)
_TYPES_OF_ALL = 50_000  # where every type is kept of text whose size is not known
_COMPRESSED = {".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip"}
_MARKED = {".sgm", ".jsonl", ".tar"}  # whose lines are no sentences
_HOUR = 3600

DEVICES = "core", "GPU"
"""What hours of trainings are of."""

# A training's process beside its network: torch, its libraries and what they keep. The demo's, of a
# million parameters, holds 0.5 to 0.6 GB at most (its benchmark file, 2 cores, 2026-11-22).
_PROCESS_BYTES = 400_000_000
_OUTPUTS = 3  # of each token over all types: the scores, their softmax, its gradient
_MICRO_BATCH_TOKENS = 4000  # where a recipe sets no limit
_MOST_COUNTED_BYTES = 1_000_000_000  # of text whose lines are counted: a second's reading


@dataclass(frozen=True)
class Stage:
    """A step of a task: what it adds to the disk and what it takes.

    Attributes:
        name: what the step does.
        written: bytes that it writes.
        freed: bytes that are removed once it is done.
        core_hours: processor time over all of its jobs.
        memory: bytes of its largest job, as far as they grow with the corpus or model.
    """

    name: str
    written: float
    freed: float = 0
    core_hours: float = 0
    memory: float = 0


@dataclass(frozen=True)
class TrainingCost:
    """The trainings of one model.

    Attributes:
        model: its name.
        runs: their number.
        parameters: of one model.
        memory: bytes of one training.
        device: what the hours are of, GPU or core; None where they are not known.
        hours: of one run, over all its devices; None where they are not known.
        source: where that figure comes from.
    """

    model: str
    runs: int
    parameters: int
    memory: float
    device: str | None
    hours: float | None
    source: str


@dataclass(frozen=True)
class Budget:
    """What one task takes.

    Attributes:
        task: its name.
        pairs: of its training text, about; None where it cannot be told yet.
        downloads: place of each file that is still to come -> its bytes, None where not known.
        missing: local files that are not there.
        present: bytes of results that are there already.
        stages: in the order in which they run.
        trainings: of its models.
    """

    task: str
    pairs: int | None
    downloads: Mapping[str, int | None]
    missing: Sequence[str]
    present: int
    stages: Sequence[Stage]
    trainings: Sequence[TrainingCost]

    @property
    def disk(self) -> float:
        """The most bytes that its results hold at a time."""
        return max((during for during, _ in levels(self.stages)), default=0)

    @property
    def memory(self) -> float:
        """The most bytes of memory that one of its jobs takes."""
        return max((stage.memory for stage in self.stages), default=0)

    @property
    def preparation_hours(self) -> float:
        """The core-hours of all stages before the trainings."""
        return sum(stage.core_hours for stage in self.stages)

    def training_hours(self, device: str) -> float:
        """The hours of all cores or GPUs that train, as far as they are known."""
        return sum(one.runs * (one.hours or 0) for one in self.trainings if one.device == device)

    @property
    def unknown_runs(self) -> int:
        """The number of trainings whose time is not known."""
        return sum(one.runs for one in self.trainings if one.hours is None)


@dataclass(frozen=True)
class Machine:
    """What there is: bytes free for results and for downloads, and bytes of memory.

    Attributes:
        results: bytes free on the disk of the results.
        downloads: bytes free on that of the downloads.
        is_one_disk: whether both are the same.
        memory: of this machine; None where jobs run on others.
    """

    results: int
    downloads: int
    is_one_disk: bool
    memory: int | None


def levels(stages: Iterable[Stage]) -> Iterator[tuple[float, float]]:
    """Yield for each stage the bytes on the disk while it runs, and after it."""
    held = 0.0
    for stage in stages:
        during = held + stage.written
        held = during - stage.freed
        yield during, held


def machine(scale: Scale, is_local: bool) -> Machine:
    """Look at this machine.

    Args:
        scale: where results and downloads go.
        is_local: whether the jobs run here.
    """
    results, downloads = (
        _there(Path(folder)) for folder in (scale.results_dir, scale.downloads_dir)
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(
        shutil.disk_usage(results).free,
        shutil.disk_usage(downloads).free,
        results.stat().st_dev == downloads.stat().st_dev,
        memory if is_local else None,
    )


def _there(path: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next(folder for folder in (path, *path.absolute().parents) if folder.is_dir())


def budgets(settings: Settings, names: Iterable[str], cells: Sequence[Cell]) -> list[Budget]:
    """Return what tasks take from their archives to their scores.

    Text that several tasks share is counted with the first of them.

    Args:
        settings: the configuration.
        names: of the tasks.
        cells: of the tables to fill, each from its runs; none for the tasks' headlines alone.
    """
    found, texts = [], set()
    for name in names:
        text = settings.tasks[name].text_name
        found.append(_budget(settings, name, cells, prepares_text=text not in texts))
        texts.add(text)
    return found


def _budget(settings: Settings, name: str, cells: Sequence[Cell], *, prepares_text: bool) -> Budget:
    task = settings.tasks[name]
    files = list(dict.fromkeys(map(parse_file_reference, task.needed_references())))
    downloads = Path(settings.scale.downloads_dir)
    absent = {file.location: file for file in files if not file.path(downloads).exists()}
    pairs = None if task.released else training_pairs(settings, name)
    trainings = [] if task.released else _trainings(settings, name, cells)
    stages = [
        *(_text_stages(settings, name, pairs) if pairs and prepares_text else []),
        *(_dataset_stages(settings, name, pairs) if pairs else []),
        _training_stage(settings, trainings),
    ]
    folders = {name, *([task.text_name] if prepares_text else [])}
    return Budget(
        task=name,
        pairs=pairs,
        downloads={
            str(local_path(location, Path())): _bytes(file, settings)
            for location, file in absent.items()
            if location.startswith("http")
        },
        missing=[location for location, file in absent.items() if not file.is_url],
        present=sum(_present(Path(settings.scale.results_dir) / one) for one in folders),
        stages=[] if task.released else stages,
        trainings=trainings,
    )


def _present(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def training_pairs(settings: Settings, name: str) -> int | None:
    """Return the number of a task's training pairs, as the paper states it.

    Of plain text that is there it is the number of its lines. Of other text it is the number of
    news sentences that its files have room for, so that bytes and hours fit; None where the size of
    a file is not known.
    """
    task = settings.tasks[name]
    if task.paper_pairs and not settings.scale.generated_mirror:
        return task.paper_pairs
    references = [side for pair in task.file_pairs("train") for side in pair]
    files = {file.location: file for file in map(parse_file_reference, references)}
    if counted := _lines(list(files.values()), settings):
        return counted // 2
    sizes = [(_bytes(file, settings), file.location) for file in files.values()]
    growth, line = settings.costs.growth.value, settings.costs.line_bytes.value
    plain = [
        None if size is None else size * (growth if Path(location).suffix in _COMPRESSED else 1)
        for size, location in sizes
    ]
    known = [size for size in plain if size is not None]
    return math.ceil(sum(known) / (2 * line)) if len(known) == len(plain) else None


def _lines(files: Sequence[FileReference], settings: Settings) -> int | None:
    """Return the lines of files that are plain text of this machine; None where one is not."""
    places = [file.path(Path(settings.scale.downloads_dir)) for file in files]
    plain = [
        file.member is None and place.is_file() and place.suffix not in {*_COMPRESSED, *_MARKED}
        for file, place in zip(files, places, strict=True)
    ]
    if not all(plain) or sum(place.stat().st_size for place in places) > _MOST_COUNTED_BYTES:
        return None
    return sum(_count_lines(place) for place in places)


def _count_lines(path: Path) -> int:
    with path.open("rb") as stream:
        return sum(block.count(b"\n") for block in iter(partial(stream.read, 1 << 20), b""))


def _bytes(file: FileReference, settings: Settings) -> int | None:
    """Return a file's size, from itself, a mirror's folder, or what is known of the download."""
    scale = settings.scale
    layout = Layout(scale.results_dir, scale.downloads_dir)
    place = file.path(Path(layout.downloads))
    mirrors = [layout.mirror] if scale.generated_mirror else settings.options.mirrors
    folders = [Path(mirror) for mirror in mirrors] if file.is_url else []
    mirrored = [folder / local_path(file.location, Path()) for folder in folders]
    there = next((path for path in (place, *mirrored) if path.is_file()), None)
    if there:
        return there.stat().st_size
    if scale.generated_mirror:
        return None
    known = settings.downloads.get(file.location)
    return None if known is None else known.bytes


def _figures(settings: Settings) -> dict[str, float]:
    """Return the figures of config/costs.yaml without their sources."""
    costs = settings.costs
    return {name: one.value for name, one in costs if isinstance(one, CostFigure)}


def _text_stages(settings: Settings, name: str, pairs: int) -> Iterator[Stage]:
    """Yield the stages from the archives to cleaned text."""
    task, cost = settings.tasks[name], _figures(settings)
    text = 2 * pairs * cost["compressed_line_bytes"]
    removed = 0 if settings.options.keep_intermediates else text
    readings = 2 if task.hold_out else 1  # once for training, once for validation
    prepared = pairs / cost["prepare_rate"] / _HOUR
    yield Stage("extract", text, 0, readings * pairs / cost["extract_rate"] / _HOUR)
    yield Stage("cut into shards", text, removed)
    yield Stage("normalize, tokenize, filter", text, removed, prepared)
    yield Stage("join the shards", text, removed)
    if task.preparation.truecase:
        yield Stage("truecase", text, 0, pairs / cost["truecase_rate"] / _HOUR)
    yield Stage("count words", 0, 0, pairs / cost["count_rate"] / _HOUR)


def _dataset_stages(settings: Settings, name: str, pairs: int) -> Iterator[Stage]:
    """Yield the stages from cleaned text to the token store, and the alignment of words."""
    task, cost = settings.tasks[name], _figures(settings)
    vocabulary, store = task.vocabulary, pairs * cost["store_bytes"]
    if vocabulary.kind == "bpe":
        sides = 1 if vocabulary.joint else 2
        yield Stage("learn BPE", 0, 0, sides * vocabulary.merges / cost["merge_rate"] / _HOUR)
    removed = 0 if settings.options.keep_intermediates else store
    yield Stage("binarize", 2 * store, removed, pairs / cost["encode_rate"] / _HOUR)
    if task.has_dictionary:
        aligned = min(pairs, task.alignment.pairs or pairs)
        links, memory = aligned * cost["link_bytes"], aligned * cost["align_bytes"]
        yield Stage("align", links, 0, aligned / cost["align_rate"] / _HOUR, memory)


def _trainings(settings: Settings, name: str, cells: Iterable[Cell]) -> list[TrainingCost]:
    """Return the trainings for a task's headline and for its cells."""
    task = settings.tasks[name]
    runs = {(task.headline.model, run) for run in task.headline_runs()}
    runs |= {
        (cell.model, member)
        for cell in cells
        if cell.task == name
        for run in cell.runs
        for member in members(run)
    }
    counts: dict[str, int] = {}
    for model, _ in sorted(runs):
        counts[model] = counts.get(model, 0) + 1
    return [_training(settings, name, model, count) for model, count in counts.items()]


def _training(settings: Settings, name: str, model: str, runs: int) -> TrainingCost:
    known = settings.costs.training(settings.tasks[name].text_name, model)
    vocabulary = settings.tasks[name].vocabulary
    pairs = training_pairs(settings, name)
    source, target = (_types(vocabulary, side, pairs) for side in ("source", "target"))
    with shapes_alone():
        network = build_network(settings.models[model].architecture, source, target)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    memory = _memory(settings.models[model].training, parameters, target)
    if known is None:
        return TrainingCost(model, runs, parameters, memory, None, None, "not measured")
    return TrainingCost(model, runs, parameters, memory, known.device, known.hours, known.source)


def _memory(recipe: Recipe, parameters: int, types: int) -> float:
    """Return the bytes of a training: its process, its network, the outputs of a micro-batch."""
    batch = recipe.batch
    tokens = min(batch.tokens or math.inf, batch.micro_batch_tokens or _MICRO_BATCH_TOKENS)
    network = (1 + _kept_per_parameter(recipe)) * parameters * _FLOAT_BYTES  # gradients and state
    return _PROCESS_BYTES + network + _OUTPUTS * tokens * types * _FLOAT_BYTES


def _kept_per_parameter(recipe: Recipe) -> int:
    """Return the numbers that a state holds of each parameter: its own, and the optimizer's."""
    return {"sgd": 1, "nesterov": 2, "adam": 3}[recipe.optimizer]


def _types(vocabulary: VocabularySettings, side: str, pairs: int | None) -> int:
    wanted = vocabulary.source_size if side == "source" else vocabulary.target_size
    if vocabulary.kind == "bpe":
        wanted = round(vocabulary.merges * _TYPES_PER_MERGE)
    if pairs is None:
        return wanted or _TYPES_OF_ALL
    there = round(90 * math.pow(pairs, 0.6))  # Heaps' law, fitted to news of 875 to 14,006 pairs
    return min(wanted or there, there)


def _training_stage(settings: Settings, trainings: Sequence[TrainingCost]) -> Stage:
    """Return the stage of all trainings: each keeps its model, its best and its last state."""
    kept = saved = 0
    largest = 0.0
    for one in trainings:
        model = one.parameters * _FLOAT_BYTES
        state = _kept_per_parameter(settings.models[one.model].training) * model
        kept += one.runs * (2 * model + state)
        saved += one.runs * state  # the next state is whole before the last one goes
        largest = max(largest, one.memory)
    return Stage("train", kept + saved, saved, 0, largest)
