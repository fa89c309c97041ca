"""The input functions of rules/paper.smk."""

from dataclasses import asdict, replace

from convs2s.paper.failures import failures_of

PUBLISHED_LEDGER = [str(PUBLISHED_FILE)] if PUBLISHED_FILE else []


def wanted_scores(wildcards):
    """The scores that a table shows: those that exist, and all where `paper` or `speed` asks.

    A table by itself never starts a training: what was not run says so.
    """
    paths = [path for cell in PLANNED[wildcards.table] for path in cell.paths]
    targets = workflow.dag_settings.targets
    paper, speed = map(workflow_modifier.modify_rulename, ("paper", "speed"))
    is_asked = paper in targets or (wildcards.table == "table3" and speed in targets)
    return [path for path in dict.fromkeys(paths) if is_asked or Path(prefixed(path)).exists()]


def cells_of(wildcards):
    """The cells of a table, as plain values."""
    return plain_cells(CELLS[wildcards.table])


def plain_cells(cells):
    """Cells as plain values, their paths where the files really are."""
    return [asdict(replace(cell, paths=tuple(map(prefixed, cell.paths)))) for cell in cells]


def ledger_scores(wildcards):
    """The scores that the ledger holds: those that exist, and all where `paper` asks."""
    paths = [path for table in PLANNED.values() for cell in table for path in cell.paths]
    is_asked = workflow_modifier.modify_rulename("paper") in workflow.dag_settings.targets
    return [path for path in dict.fromkeys(paths) if is_asked or Path(prefixed(path)).exists()]


def failures_in(table):
    """Why runs of a table's cells are not there: the path of their numbers -> the reason."""
    logs = workflow.pathvars.apply("<logs>")
    found = failures_of(CELLS[table], layout, logs, lambda path: Path(prefixed(path)))
    return {prefixed(path): reason for path, reason in found.items()}
