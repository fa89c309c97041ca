"""``convs2s remove-states``: the disk that trainings which have ended no longer need."""

import argparse
from pathlib import Path


def add_remove_states(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.description = (
        "List the states of trainings that have ended, below a folder, or remove them. Models, "
        "records and scores stay, as do states of trainings that run or were stopped. What "
        "would only be exported again (docs/operations.md) is then trained again."
    )
    command.add_argument("folder", type=Path, help="results, those of a task, or a run")
    command.add_argument("--yes", action="store_true", help="remove them [list them]")
    command.set_defaults(run=_remove_states)


def _remove_states(arguments: argparse.Namespace) -> None:
    from convs2s.training.finished import finished_states, megabytes, remove_state

    states = finished_states(arguments.folder)
    for state in states:
        if arguments.yes:
            remove_state(state)
        print(f"{megabytes(state.size):>12}  {state.path}")
    total = megabytes(sum(state.size for state in states))
    done = "removed" if arguments.yes or not states else "may go: --yes removes them"
    print(f"{total:>12}  of {len(states)} trainings that have ended: {done}")
