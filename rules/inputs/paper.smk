"""The input functions of rules/paper.smk."""

from dataclasses import asdict


def wanted_scores(wildcards):
    """The scores that a table shows: those that exist, and all where `paper` or `speed` asks.

    A table by itself never starts a training: what was not run says so.
    """
    paths = [path for cell in PLANNED[wildcards.table] for path in cell.paths]
    targets = workflow.dag_settings.targets
    is_asked = "paper" in targets or (wildcards.table == "table3" and "speed" in targets)
    return [path for path in dict.fromkeys(paths) if is_asked or Path(path).exists()]
