"""The input functions of rules/costs.smk."""

BENCHMARKS = prefixed(workflow.pathvars.apply("<benchmarks>"))


def histories_of_paper():
    """The histories of the trainings that the tables rest on."""
    return [f"{run}/history.jsonl" for table in PLANNED.values() for run in runs_of(table)]


def cells_made_here():
    """The cells whose runs are made here, by table, as plain values."""
    return {name: plain_cells(table) for name, table in PLANNED.items()}
