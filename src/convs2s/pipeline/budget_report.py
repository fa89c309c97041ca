"""The budget of a run in words, and the reasons why it cannot fit."""

from collections.abc import Iterator, Mapping, Sequence

from convs2s.paper.costs import Cost, PaperCosts, all_printed
from convs2s.paper.trained import Hours
from convs2s.pipeline.budget import DEVICES, Budget, Machine, TrainingCost, levels
from convs2s.scoring.text_table import aligned, underlined


def report(
    budgets: Sequence[Budget], scale: str, machine: Machine, trainings: Cost | None = None
) -> Iterator[str]:
    """Yield the lines of the budget: each task's, and the total beside what there is.

    Args:
        budgets: of the tasks.
        scale: its name.
        machine: what there is.
        trainings: what those of tables and figures are expected to take, all together, where that
            has been said of each; None: what is known of each model of a task is said here.
    """
    for each in budgets:
        yield from _task(each)
        yield from _trainings(each.trainings) if trainings is None else ()
        yield ""
    yield from underlined(f"in all, at scale {scale}")
    yield f"to download: {_downloads(downloads(budgets))}"
    free = _amount(machine.results)
    if not machine.is_one_disk:
        free += f" free for results, {_amount(machine.downloads)} for downloads"
    yield f"disk, beyond what is there: {_amount(disk(budgets))} for results; free: {free}"
    there = "" if machine.memory is None else f"; this machine has {_amount(machine.memory)}"
    yield f"memory of the largest job: {_amount(memory(budgets))}{there}"
    prepared = sum(each.preparation_hours for each in budgets)
    if trainings is None:
        cores, gpus = (sum(each.training_hours(one) for each in budgets) for one in DEVICES)
        unknown = sum(each.unknown_runs for each in budgets)
    else:
        left = trainings.left or Hours()
        cores, gpus, unknown = left.cores, left.gpus, trainings.unknown
    yield f"core-hours: {_hours(prepared)} to prepare and align, {_hours(cores)} to train"
    yield f"GPU-hours: {_hours(gpus)} to train"
    if unknown:
        yield f"{_runs(unknown)} beside these: hours not known"
    yield "not counted: decoding and scoring, and memory of GPUs"


def exhibits_report(found: PaperCosts) -> Iterator[str]:
    """Yield what the trainings of each table and figure are expected to take, and their sum."""
    yield from underlined("trainings of each table and figure")
    header = ("", "trainings", "finished", "to come: core-hours", "GPU-hours", "not measured")
    named = [*found.exhibits.items(), ("all, each training once", found.total)]
    printed = [*found.printed.values(), all_printed(found)]
    rows = [
        (
            name,
            f"{cost.trainings:,}",
            f"{cost.finished:,}",
            *(map(_hours, (cost.left.cores, cost.left.gpus)) if cost.left else ("", "")),
            f"{cost.unknown:,}",
            _hours(stated.hours) if stated.stated else "",
        )
        for (name, cost), stated in zip(named, printed, strict=True)
    ]
    yield from aligned((*header, "the papers' GPU-hours"), rows)
    yield "to come: by trainings at this scale that were measured; the papers': of one training of"
    yield "each model whose time the papers state, of their own GPUs (docs/preflight.md)"
    yield ""


def refusals(budgets: Sequence[Budget], machine: Machine) -> list[str]:
    """Return the reasons why a run cannot fit; none where it can, as far as is known."""
    reasons = []
    for each in budgets:
        if each.missing:
            reasons.append(
                f"{each.task} needs {', '.join(each.missing)}, which you have to put there "
                f"(config/tasks/{each.task}.yaml says what they are)"
            )
    incoming = sum(size or 0 for size in downloads(budgets).values())
    if machine.is_one_disk:
        wanted = {"results and downloads": (disk(budgets) + incoming, machine.results)}
    else:
        wanted = {
            "results": (disk(budgets), machine.results),
            "downloads": (incoming, machine.downloads),
        }
    reasons += [
        f"{what} take {_amount(needed)} of disk, {_amount(free)} are free: make space, point "
        "results_dir and downloads_dir of the scale elsewhere, or choose fewer `tasks`"
        for what, (needed, free) in wanted.items()
        if needed > free
    ]
    if machine.memory is not None and memory(budgets) > machine.memory:
        reasons.append(
            f"the largest job takes {_amount(memory(budgets))} of memory, this machine has "
            f"{_amount(machine.memory)}: align fewer pairs (alignment.pairs), or use another one"
        )
    return reasons


def downloads(budgets: Sequence[Budget]) -> dict[str, int | None]:
    """Return every file that is still to come, those of several tasks once."""
    return {place: size for each in budgets for place, size in each.downloads.items()}


def disk(budgets: Sequence[Budget]) -> float:
    """Return the bytes that results take beyond what is there, if all tasks run side by side."""
    return sum(max(0, each.disk - each.present) for each in budgets)


def memory(budgets: Sequence[Budget]) -> float:
    """Return the bytes of memory of the largest job."""
    return max((each.memory for each in budgets), default=0)


def _task(each: Budget) -> Iterator[str]:
    yield from underlined(each.task)
    pairs = "not known yet" if each.pairs is None else f"about {each.pairs:,}"
    yield f"training pairs: {pairs}" if each.stages else "released model: nothing is trained"
    yield f"to download: {_downloads(each.downloads)}"
    if each.missing:
        yield f"MISSING: {', '.join(each.missing)}"
    rows = [
        (
            stage.name,
            _amount(during),
            _amount(after),
            _amount(stage.memory) if stage.memory else "",
            _hours(stage.core_hours) if stage.core_hours else "",
        )
        for stage, (during, after) in zip(each.stages, levels(each.stages), strict=True)
    ]
    if rows:
        yield from aligned(("stage", "disk", "then kept", "memory", "core-hours"), rows)


def _trainings(trainings: Sequence[TrainingCost]) -> Iterator[str]:
    """Yield a line for each model whose time is known, and one for all others."""
    for one in trainings:
        if one.hours is not None:
            total = _hours(one.runs * one.hours)
            yield f"{one.model}, {_runs(one.runs)}: {total} {one.device}-hours ({one.source})"
    unknown = [one for one in trainings if one.hours is None]
    if unknown:
        others = f" and {len(unknown) - 1} more models" if len(unknown) > 1 else ""
        count = _runs(sum(one.runs for one in unknown))
        yield f"{unknown[0].model}{others}, {count}: hours neither measured nor in the paper"


def _runs(count: int) -> str:
    return "1 training" if count == 1 else f"{count:,} trainings"


def _downloads(files: Mapping[str, int | None]) -> str:
    if not files:
        return "nothing"
    unknown = sum(size is None for size in files.values())
    rest = f", {unknown} of unknown size" if unknown else ""
    return f"{_amount(sum(size or 0 for size in files.values()))} in {len(files)} files{rest}"


def _amount(size: float) -> str:
    """Write bytes with a unit; powers of ten, as disks have them."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"


def _hours(hours: float) -> str:
    return f"{hours:,.1f}" if hours >= 0.1 or not hours else f"{hours:.2f}"
