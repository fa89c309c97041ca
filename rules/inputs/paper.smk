"""The input functions of rules/paper.smk."""

from dataclasses import asdict

from convs2s.paper.failures import failures_of

PUBLISHED_LEDGER = [str(PUBLISHED_FILE)] if PUBLISHED_FILE else []


def wanted_scores(wildcards):
    """The scores that a table shows: those that exist, and all where `paper` or `speed` asks.

    A table by itself never starts a training of what is not there: what was not run says so.
    """
    paths = [path for cell in PLANNED[wildcards.table] for path in cell.paths]
    targets = workflow.dag_settings.targets
    paper, speed = map(workflow_modifier.modify_rulename, ("paper", "speed"))
    is_asked = paper in targets or (wildcards.table == "table3" and speed in targets)
    return [path for path in dict.fromkeys(paths) if is_asked or Path(prefixed(path)).exists()]


def plain_cells(cells):
    """Cells as plain values, their paths where the files really are."""
    return [asdict(cell.moved(prefixed)) for cell in cells]


def ledger_scores(wildcards):
    """The scores that the ledger holds: those that exist, and all where `paper` asks."""
    paths = [path for table in PLANNED.values() for cell in table for path in cell.paths]
    is_asked = workflow_modifier.modify_rulename("paper") in workflow.dag_settings.targets
    return [path for path in dict.fromkeys(paths) if is_asked or Path(prefixed(path)).exists()]


def what_stands_above():
    """What a page says of the scale that it is of, as plain values."""
    return scale.model_dump(mode="json", include={"stand_in", "left_out"})


def what_is_shown(wildcards):
    """All that a table is made from but its scores, as plain values.

    Of runs that are not there it is what trainings take, and why those that failed have.
    """
    cells, logs = CELLS[wildcards.table], workflow.pathvars.apply("<logs>")
    failures = failures_of(cells, layout, logs, lambda path: Path(prefixed(path)))
    return {
        "printed": settings.paper[wildcards.table].model_dump(mode="json"),
        "above": what_stands_above(),
        "cells": plain_cells(cells),
        "trainings": settings.costs.model_dump(mode="json")["trainings"],
        "failures": {prefixed(path): reason for path, reason in failures.items()},
    }
