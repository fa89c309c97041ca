"""torchrun within this process: it starts the workers of this machine and waits for them."""

import logging
import signal
from collections.abc import Iterable, Sequence

from torch.distributed import run
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from convs2s.errors import UnfinishedError, UserError

SHUTDOWN_SECONDS = 120
"""How long workers may take to write a state after a signal before they are killed."""

TOLD_TO_WORKERS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)
"""Those that workers are told of, to write a last state."""


def torchrun(options: Sequence[str], command: Sequence[str]) -> None:
    """Start the workers and wait for them.

    Args:
        options: of torchrun: how many workers there are, and where they meet.
        command: the arguments of ``convs2s`` that each worker is started with.

    Raises:
        UserError: a worker failed.
        UnfinishedError: the workers stopped early.
    """
    # Each worker says in one line why it ends.
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    endings = [
        "--max-restarts=0",
        f"--signals-to-handle={','.join(one.name for one in TOLD_TO_WORKERS)}",
        f"--shutdown-timeout={SHUTDOWN_SECONDS}",
    ]
    try:
        run.run(run.parse_args([*options, *endings, "--module", "convs2s", *command]))
    except ChildFailedError as error:
        raise _failure(error.failures.values()) from None
    except SignalException as error:
        message = f"{error.sigval.name} was received: run the same command again"
        raise UnfinishedError(message) from None


def _failure(failures: Iterable[ProcessFailure]) -> UserError:
    """Return the error that sums up how workers ended; they have given the reason themselves."""
    codes = {failure.local_rank: failure.exitcode for failure in failures}
    if UnfinishedError.exit_code in codes.values():
        return UnfinishedError("the workers stopped before the end, as said above")
    for worker, code in codes.items():
        if code < 0:
            return UserError(
                f"worker {worker} was ended by {signal.Signals(-code).name}, and the others with "
                "it; the last state is intact: run the same command again"
            )
    return UserError("the workers ended with the error above")
