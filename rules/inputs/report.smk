"""The input functions of rules/report.smk."""


def is_finished(path):
    """Whether a file is there; the history of a training that goes on, or was killed, is none yet."""
    place = Path(prefixed(path))
    record = place.with_name("training.json")
    return place.exists() and (place.name != "history.jsonl" or record.exists())


def finished(paths):
    """Those files that exist, and all where `paper` asks: a report alone starts no training."""
    is_asked = workflow_modifier.modify_rulename("paper") in workflow.dag_settings.targets
    return [path for path in dict.fromkeys(paths) if is_asked or is_finished(path)]


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


# Of every task whose score is there: the score, its examples, its plots.
SCORED = [
    name for name in tasks if Path(prefixed(layout.task(name).report(tasks[name].metric))).exists()
]

# Page of Snakemake's report -> the text or page that it shows.
SHOWN = {
    **{f"{name}.score": layout.task(name).report(tasks[name].metric) for name in SCORED},
    **{f"{name}.examples": layout.task(name).examples for name in SCORED},
    **{f"paper.{name}": layout.table(name) for name in CELLS},
    "paper.claims": layout.claims,
    "paper.costs": layout.costs,
    "paper.report": layout.report,
}
MADE_OF_WHAT_THERE_IS = {path for page, path in SHOWN.items() if page.startswith("paper.")}


def made_for_page(wildcards):
    """The file that a page shows, where it can be made of what there is."""
    return [SHOWN[wildcards.page]] if SHOWN[wildcards.page] in MADE_OF_WHAT_THERE_IS else []


def source_of_page(wildcards):
    """The file that a page shows, and when it was written.

    A score is no input: where it is out of date, its models would be trained anew.
    """
    path = Path(prefixed(SHOWN[wildcards.page]))
    return str(path), None if made_for_page(wildcards) else path.stat().st_mtime_ns


def pages_of_report():
    """The pages of what is there; tables and the paper's report are made first."""
    there = [
        page
        for page, path in SHOWN.items()
        if path in MADE_OF_WHAT_THERE_IS or Path(prefixed(path)).exists()
    ]
    return [f"<results>/shown/{page}.html" for page in there]


def pictures_there():
    """The paper's figures, learning curves and attention maps that are there."""
    plots = [plot for task in SCORED for plot in plots_of(task)]
    paths = dict.fromkeys([*PAPER_FIGURES, *CURVES, *plots])
    return [path for path in paths if Path(prefixed(path)).exists()]


def what_is_reported(wildcards, input):
    """What Snakemake's own report shows, and the scores, for the way to them."""
    scores = [SHOWN[f"{name}.score"] for name in SCORED]
    return [*input.pages, *map(prefixed, [*scores, *pictures_there()])]
