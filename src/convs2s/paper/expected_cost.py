"""What a training that is not there will take, by what trainings at the same scale have taken."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from convs2s.config.costs import KnownTraining
from convs2s.config.settings import Settings
from convs2s.paper.trained import Hours, Training

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class _Rate:
    """Target tokens per second and device, the median over the trainings of one kind of network."""

    tokens_per_second: float
    is_of_gpus: bool

    def hours(self, tokens: float) -> Hours:
        """Return what so many tokens take."""
        held = tokens / self.tokens_per_second / _SECONDS_PER_HOUR
        return Hours(gpus=held) if self.is_of_gpus else Hours(cores=held)


def _hours(known: KnownTraining) -> Hours:
    return Hours(gpus=known.hours) if known.device == "GPU" else Hours(cores=known.hours)


class Expectation:
    """Tells the hours of trainings from those of others."""

    def __init__(self, settings: Settings, trained: Iterable[Training]) -> None:
        """Take what is there.

        Args:
            settings: the configuration.
            trained: trainings of this scale; those without a record of their time say nothing.
        """
        self._settings = settings
        self._timed = [(one, one.hours) for one in trained if one.hours is not None]

    def hours(self, task: str, model: str) -> Hours | None:
        """Return the hours of a training of a model on a task; None where nothing tells them.

        They are the mean of its other seeds; without one, the measured figure of config/costs.yaml;
        without that, its tokens at the rate of networks of its kind, whatever their size; and where
        nothing of that kind has run, the measured figure of another one on the same text, for as
        many epochs.

        Args:
            task: its name.
            model: its name.
        """
        seeds = [took for one, took in self._timed if (one.task, one.model) == (task, model)]
        if seeds:
            return sum(seeds, Hours()) * (1 / len(seeds))
        text = self._settings.tasks[task].text_name
        known = self._settings.costs.training(text, model)
        if known and not known.printed:
            return _hours(known)
        rate, tokens = self._rate(model), self._tokens(task, model)
        return self._stated(text, model) if rate is None or tokens is None else rate.hours(tokens)

    def _stated(self, text: str, model: str) -> Hours | None:
        """Return what config/costs.yaml tells by the first of another model of this kind."""
        models = self._settings.models
        for one in self._settings.costs.trainings:
            if one.printed or one.text != text or one.model not in models:
                continue
            wanted, made = models[model].training, models[one.model].training
            is_alike = models[one.model].architecture.kind == models[model].architecture.kind
            if is_alike and wanted.maximum_epochs and made.maximum_epochs:
                return _hours(one) * (wanted.maximum_epochs / made.maximum_epochs)
        return None

    def _tokens(self, task: str, model: str) -> float | None:
        """Return the target tokens that a training reads; None where an epoch's are not known."""
        epochs = self._settings.models[model].training.maximum_epochs
        read = [row.tokens for one, _ in self._timed if one.task == task for row in one.epochs]
        return epochs * max(read) if epochs is not None and read else None

    def _rate(self, model: str) -> _Rate | None:
        """Return the rate on the kind of device that most of the trainings ran on."""
        kind = self._settings.models[model].architecture.kind
        alike = [
            (sum(row.tokens for row in one.epochs), took)
            for one, took in self._timed
            if self._settings.models[one.model].architecture.kind == kind
        ]
        on_gpus = [tokens / took.gpus for tokens, took in alike if took.gpus]
        on_cores = [tokens / took.cores for tokens, took in alike if took.cores]
        rates, is_of_gpus = max([(on_gpus, True), (on_cores, False)], key=lambda one: len(one[0]))
        if not rates:
            return None
        return _Rate(statistics.median(rates) / _SECONDS_PER_HOUR, is_of_gpus)
