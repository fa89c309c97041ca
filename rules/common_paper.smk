"""What the rules of decoding, scores and the paper take: their input functions, by stage."""

from dataclasses import asdict

from convs2s.paper.failures import failures_of


def tuned_penalty(wildcards):
    """Where the tuned length penalty stands; no file where the number is stated."""
    task, run, name = tasks[wildcards.task], wildcards.run, wildcards.decoding
    tuned_on = scale.development_set(task, settings.decodings[name])
    file = (wildcards.model, run, tuned_on, name, "length_penalty.json")
    return [layout.task(task.name).translations(*file)] if tuned_on else []


def timing_threads(wildcards):
    """CPU threads of a timing: all that there are, so that no other job runs beside it here."""
    if is_on_cluster():  # the node's number is not known yet; on it, Slurm refuses more than asked
        return threads(wildcards)
    return options.cores or workflow.resource_settings.cores


def runs_to_compare(side):
    """An input function: the translations of a model, those of the seeds of the task's headline."""

    def paths(wildcards):
        seeds = [f"seed{seed}" for seed in tasks[wildcards.task].headline.seeds]
        file = f"{wildcards.testset}.{wildcards.decoding}.jsonl"
        return layout.run_files(wildcards.task, wildcards[side], seeds, file)

    return paths


def references_of(wildcards):
    """All references of the wildcards' test set as they were published: the target side first."""
    first = test_side("raw", "target")(wildcards).removesuffix(".target.zst")
    further = range(1, tasks[wildcards.task].reference_count(wildcards.testset))
    return [f"{first}{part}.target.zst" for part in ["", *(f".reference{n}" for n in further)]]


def headline_scores(wildcards):
    """The scores that a task's report in the wildcards' metric rests on."""
    with failures_in_one_line():
        tasks[wildcards.task].check_metric(wildcards.metric)
    return headline_files(wildcards.task, f"{wildcards.metric}.json")


def penalty_of_list(wildcards):
    """The tuned length penalty; the list that the tuning goes by comes before it."""
    files = tuned_penalty(wildcards)
    return [file for file in files if not Path(file).name.startswith(f"{wildcards.testset}.")]


def baseline_list(wildcards):
    """Another system's n-best list of a test set: the user's file, or what stands in for it."""
    own = scale.n_best
    if own is not None:
        folder, file = layout.task(wildcards.task), (wildcards.testset, own.decoding, "nbest.zst")
        return folder.translations(own.model, own.run, *file)
    with failures_in_one_line():
        return tasks[wildcards.task].n_best_of(wildcards.testset)


def header_of_choice(wildcards):
    """What a report on the choice from an n-best list begins with: a model's, or another system's."""
    model = f"{wildcards.model} {wildcards.run}"
    if "scorer" in wildcards.keys():
        scorer = f"{wildcards.scorer} {wildcards.scorer_run}"
        names = {"baseline": model, "decoding": wildcards.decoding, "scorer": scorer}
    else:
        listed = scale.n_best or tasks[wildcards.task].n_best_of(wildcards.testset)
        names = {"baseline": str(listed), "scorer": model}
    return {"task": wildcards.task, **names, "scale": options.scale}


def plots_of(task):
    """The learning curves of a task's headline trainings and the attention maps of its first run."""
    translations = headline_files(task, "jsonl")
    runs = [] if tasks[task].released else sorted({str(Path(p).parent) for p in translations})
    first = translations[0].removesuffix(".jsonl")
    attends = settings.models[tasks[task].headline.model].architecture.has_attention
    lines = options.plots.sentences if attends else []
    attention = [f"{first}.attention{line}.svg" for line in lines]
    return [*(f"{run}/curve.svg" for run in runs), *attention]


# The folders of the trainings that the papers' tables rest on.
TRAININGS = dict.fromkeys(training for cell in PLANNED_CELLS for training in cell.trainings)
PAPER_RUNS = [layout.task(task).run(model, run) for task, model, run in TRAININGS]
CURVES = [f"{run}/curve.svg" for run in PAPER_RUNS]

PUBLISHED_LEDGER = [local(str(PUBLISHED_FILE))] if PUBLISHED_FILE else []


def finished(paths):
    """Those files that exist, and all where `paper` asks: what shows them starts no training."""
    # The history of a training that goes on, or was killed, does not count as one that exists.
    records = {path: path.replace("history.jsonl", "training.json") for path in paths}
    if is_asked("paper"):
        return list(records)
    return [path for path, record in records.items() if is_there(path) and is_there(record)]


def wanted_scores(wildcards):
    """The scores that a table shows: what was not run says so, unless `paper` or `speed` asks."""
    paths = dict.fromkeys(path for cell in PLANNED[wildcards.table] for path in cell.paths)
    return list(paths) if wildcards.table == "table3" and is_asked("speed") else finished(paths)


def plain_cells(cells):
    """Cells as plain values, their paths where the files really are."""
    return [asdict(cell.moved(prefixed)) for cell in cells]


def cells_made_here():
    """The cells whose runs are made here, by table, as plain values."""
    return {name: plain_cells(table) for name, table in PLANNED.items()}


ABOVE = scale.model_dump(mode="json", include={"stand_in", "left_out"})  # what pages say of it


def table_contents(name):
    """All that a table is made from but its scores: a change of it makes the table again."""
    cells = CELLS[name]
    failures = failures_of(cells, layout, LOGS, lambda path: Path(prefixed(path)))
    return {
        "printed": settings.paper[name].model_dump(mode="json"),
        "above": ABOVE,
        "cells": plain_cells(cells),
        "trainings": settings.costs.model_dump(mode="json")["trainings"],
        "failures": {prefixed(path): reason for path, reason in failures.items()},
    }


FIGURES = ("figure2", "figure3", "lstm_figure2", "lstm_figure3")
LAYERS_FIGURE, EXAMPLE_FIGURE, PHRASE_FIGURE, LENGTH_FIGURE = FIGURES


def can_be_drawn(name):
    """Whether a model here makes what a figure shows; another system's n-best list is not enough."""
    return any(cell.decoding or cell.phrases for cell in PLANNED.get(name, []))


def drawn_cells(name):
    """The cells of a figure that is asked for; an error says that nothing here makes what it shows."""
    with failures_in_one_line():
        if not can_be_drawn(name):
            raise UserError(
                f"{name}.svg: no model of this run makes what it shows: it is published, left out or "
                f"waits for its files; {name}.md has its numbers"
            )
    return PLANNED[name]


PAPER_FIGURES = [
    layout.paper(f"{name}.svg")
    for name in FIGURES
    if can_be_drawn(name) or (name == LAYERS_FIGURE and CELLS.get(name))  # drawn from scores alone
]


def reported_plot(path, caption, name):
    """A plot of a run, with its place and text in Snakemake's report."""
    labels = {"model": "{model}", "run": "{run}", "plot": name}
    text = f"../workflow/report/{caption}.rst"
    return report(f"<model>/{{run}}/{path}.svg", caption=text, category="{task}", labels=labels)


def reported_figure(name, caption, label):
    """A figure of the papers, with its place and text in Snakemake's report."""
    path, text = f"<results>/paper/{name}.svg", f"../workflow/report/{caption}.rst"
    return report(path, caption=text, category="figures", labels={"figure": label})


def cells_of_curves():
    """The cell of the translations that are shown, and that of the n-best list, if there is one."""
    row = drawn_cells(LENGTH_FIGURE)
    decoded = next(cell for cell in row if cell.decoding)
    return decoded, next((cell for cell in row if cell.n_best), None)


def curves_shown(wildcards):
    """The translations of the figure's first row and the baseline's list, with what scores them."""
    cell, listed = cells_of_curves()
    return {
        "system": cell.paths[0].replace(".bleu.json", ".jsonl"),
        "baseline": [baseline_list(listed)] if listed else [],
        "source": test_side("tok", "source")(cell),
        "reference": test_side("tok", "target")(cell),
        "vocabulary": layout.task(cell.task).vocabulary(tasks[cell.task].languages.source),
    }


def names_of_curves(wildcards):
    """What the legend calls the curves: a model and a run, or a list."""
    cell, listed = cells_of_curves()
    return [f"{cell.model} {cell.runs[0]}, {cell.decoding}", *([listed.n_best] if listed else [])]


def shown_in_report(wildcards):
    """What stands in the report beside tables and ledger, as far as it is there."""
    paths = [f"{run}/{name}" for run in PAPER_RUNS for name in ("history.jsonl", "training.json")]
    if can_be_drawn(EXAMPLE_FIGURE):
        paths.append(PLANNED[EXAMPLE_FIGURE][0].paths[0])
    paths += PAPER_FIGURES
    # The translations of one run of each task and test set, and their references.
    decoded = [cell for cell in PLANNED_CELLS if cell.testset and cell.decoding and not cell.n_best]
    there = [cell for cell in reversed(decoded) if finished(cell.paths[:1])]
    first = {(cell.task, cell.testset): cell for cell in there}
    for (task, testset), cell in sorted(first.items()):
        run = layout.task(task).run(cell.model, cell.runs[0])
        text = layout.task(tasks[task].text_name)
        paths += [f"{run}/{testset}.{cell.decoding}.jsonl", text.text("raw", testset, "target")]
    return finished(paths)


# Of every task whose score is there: the score, its examples, its plots.
SCORED = [name for name in tasks if is_there(layout.task(name).report(tasks[name].metric))]

SHOWN = {  # page of Snakemake's report -> the text or page that it shows
    **{f"{name}.score": layout.task(name).report(tasks[name].metric) for name in SCORED},
    **{
        f"{name}.examples": layout.task(name).examples
        for name in SCORED
        if is_there(layout.task(name).examples)
    },
    **{f"paper.{name}": layout.paper(f"{name}.md") for name in [*CELLS, "claims", "costs"]},
    "paper.report": layout.paper("report.html"),
}


def made_for_page(wildcards):
    """The file that a page shows; not a score, as a stale one would have its models trained anew."""
    return [SHOWN[wildcards.page]] if wildcards.page.startswith("paper.") else []


def source_of_page(wildcards):
    """The file that a page shows; of a score and of examples also when they were written."""
    path = Path(prefixed(SHOWN[wildcards.page]))
    return str(path), None if made_for_page(wildcards) else path.stat().st_mtime_ns


def reported_files(wildcards, input):
    """What Snakemake's own report shows: pages and pictures, and the scores, for the way to them."""
    scores = [SHOWN[f"{name}.score"] for name in SCORED]
    plots = [plot for task in SCORED for plot in plots_of(task)]
    pictures = filter(is_there, dict.fromkeys([*PAPER_FIGURES, *CURVES, *plots]))
    return [*input.pages, *map(prefixed, [*scores, *pictures])]
