"""What the command line and the profiles set for single jobs."""

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

from convs2s.errors import UserError


def check_names(
    option: str,
    names: Iterable[str],
    jobs: Collection[str],
    targets: Mapping[str, Iterable[str]],
) -> None:
    """Check that an option speaks of jobs: Snakemake ignores what it says of anything else.

    Args:
        option: The option, for the message; a profile's key of that name is the same to Snakemake.
        names: The names that it sets something for.
        jobs: The rules that run something.
        targets: Those of the names that are rules which only ask for files, each with the jobs that
            make these.

    Raises:
        UserError: one of the names is a target, or no rule.
    """
    for name in names:
        if name in targets:
            what = f"is a target, not a job; {_its_jobs(name, jobs, targets[name])}"
        elif name not in jobs:
            near = get_close_matches(name, jobs, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "snakemake --list-rules shows all"
            what = f"is not a job; {hint}"
        else:
            continue
        raise UserError(f"{option} {name}: {name!r} {what}")


def _its_jobs(target: str, jobs: Iterable[str], makers: Iterable[str]) -> str:
    """Name a target's jobs: those with its name in theirs, such as align_words, and the makers."""
    namesakes = [job for job in jobs if job.startswith(f"{target}_")]
    first, *others = dict.fromkeys([*namesakes, *makers])
    return f"its jobs include {', '.join([first, *others])}" if others else f"its job is {first}"
