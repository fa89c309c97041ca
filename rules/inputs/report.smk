"""The input functions of rules/report.smk."""


def finished(paths):
    """Those files that exist, and all where `paper` asks: a report alone starts no training."""
    is_asked = workflow_modifier.modify_rulename("paper") in workflow.dag_settings.targets
    return [path for path in dict.fromkeys(paths) if is_asked or Path(prefixed(path)).exists()]


def shown_in_report():
    """What stands in the report beside tables and ledger, as far as it is there."""
    cells = [cell for table in PLANNED.values() for cell in table]
    runs = runs_of(cells)
    records = [f"{run}/{name}" for run in runs for name in ("history.jsonl", "training.json")]
    figures = [layout.figure(name) for name in DRAWN_FIGURES]
    examples = [examples_shown()] if EXAMPLE_FIGURE in DRAWN_FIGURES else []
    return finished([*records, *examples, *figures, *translations_shown(cells)])


def translations_shown(cells):
    """The translations of one run of each task and test set, and their references."""
    decoded = [cell for cell in cells if cell.testset and cell.decoding and not cell.n_best]
    first = {(cell.task, cell.testset): cell for cell in reversed(decoded)}
    paths = []
    for (task, testset), cell in sorted(first.items()):
        run = layout.task(task).translations(
            cell.model, cell.runs[0], testset, cell.decoding, "jsonl"
        )
        text = layout.task(tasks[task].text_name)
        paths += [run, text.text("raw", testset, tasks[task].language_pair[1])]
    return paths


def pictures_of_paper():
    """The paper's figures and learning curves that are there."""
    return finished([*PAPER_FIGURES, *CURVES])


def what_is_reported(wildcards):
    """What Snakemake's own report shows."""
    named = map(workflow_modifier.modify_rulename, ["tables", "figures", "evaluate"])
    return [*named, *map(prefixed, [layout.report, *pictures_of_paper()])]
