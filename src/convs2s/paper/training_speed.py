"""How fast a model was trained (Gehring et al. 2017, section 5.5)."""

import statistics
from collections.abc import Mapping
from pathlib import Path

from convs2s.errors import UserError, failures_of_file
from convs2s.files.text import read_json, write_json
from convs2s.training.history import read_history


def measure_training_speed(
    *, history: Path, training: Path, output: Path, manifest: Mapping[str, object]
) -> None:
    """Write the median over the epochs of target tokens per second, and what they were made on.

    The median, as an epoch in which the machine was busy otherwise says nothing of the network.

    Args:
        history: the trainer's ``history.jsonl``.
        training: the trainer's ``training.json``, whose manifest names the device.
        output: the JSON file to write.
        manifest: what the number rests on.

    Raises:
        UserError: the history is missing or holds no epoch.
    """
    rates = [epoch.tokens_per_second for epoch in read_history(history).epochs]
    if not rates:
        raise UserError(f"{history}: no epoch, so there is no speed; train for at least one epoch")
    record = read_json(training)
    with failures_of_file(str(training), "no record of a training; train again"):
        made = record["manifest"]  # type: ignore[index]
        signature = (
            f"median over {len(rates)} epochs, {made.get('gpu') or made['processor']}, "
            f"workers: {made['workers']}, CPU threads of each: {made['threads']}"
        )
    speed = {"score": statistics.median(rates), "signature": signature}
    write_json(output, {"target_tokens_per_second": speed, "manifest": manifest})
