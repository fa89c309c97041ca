"""Trainings that end before their end."""

import pytest

from convs2s.training.identity import TrainingJob
from convs2s.training.run import train
from convs2s.training.trainer import Trainer


def train_until(job: TrainingJob, epoch: int) -> None:
    """Train until the state of an epoch is written, then stop as if by Ctrl-C."""
    finish = Trainer._finish_epoch

    def finish_and_stop(trainer: Trainer) -> None:
        finish(trainer)
        if trainer.state.epoch > epoch:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_finish_epoch", finish_and_stop)
        with pytest.raises(KeyboardInterrupt):
            train(job)
