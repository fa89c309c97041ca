"""All tasks as a table for people: `convs2s config --tasks` prints it, docs/tasks.md has it."""

from collections.abc import Iterator

from convs2s.config.settings import Settings


def task_table(settings: Settings) -> str:
    """Return the tasks in the order of their names, as Markdown."""
    return "".join(f"{line}\n" for line in _lines(settings))


def _lines(settings: Settings) -> Iterator[str]:
    yield "| task | what it is | headline: model, runs | ask for |"
    yield "| --- | --- | --- | --- |"
    for name, task in sorted(settings.tasks.items()):
        runs = ", ".join(task.headline_runs())
        report = f"results/{name}/{task.metric}.txt"
        yield f"| `{name}` | {task.description} | `{task.headline.model}`, {runs} | `{report}` |"
