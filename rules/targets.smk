"""Targets with names: each stage of the tasks that config.yaml names in `tasks`, and the papers."""

TRAINED = [tasks[name] for name in plan.tasks if not tasks[name].released]
PAGES = [*plan.cells, "claims", "costs"]


rule download:
    """Fetch the files from which the tasks' text and models are made."""
    input:
        plan.local_files(file for task in plan.tasks for file in settings.needed_references(task)),


rule prepare:
    """Make token stores of training and validation text, and tables of the dropped pairs."""
    input:
        [layout.task(task.name).store(part) for task in TRAINED for part in ("train", "valid")],
        [layout.task(task.name).dataset_counts for task in TRAINED],
        {layout.task(task.text_name).pair_counts for task in TRAINED},


rule align:
    """Make the dictionaries of aligned words."""
    input:
        {layout.task(task.text_name).dictionary for task in TRAINED if task.has_dictionary},


rule train:
    """Train the models of the tasks' headlines."""
    input:
        [
            model
            for task in plan.tasks
            for model in plan.headline_run_files(task, "model.safetensors")
        ],
        [counts for task in plan.tasks for counts in plan.dataset_counts(task)],


rule decode:
    """Make the translations from which the tasks' headline scores are computed."""
    input:
        [path for task in plan.tasks for path in plan.headline_files(task, "jsonl")],


rule evaluate:
    """Compute the tasks' headline scores."""
    input:
        [layout.task(task).report(tasks[task].metric) for task in plan.tasks],


rule speed:
    """Make table 3, the speed of translation, with its models."""
    input:
        lambda w: plan.scores("table3") if "table3" in plan.planned else [],
        "<results>/paper/table3.md",


rule tables:
    """Write the papers' tables from existing scores; nothing is trained."""
    input:
        expand("<results>/paper/{page}.md", page=PAGES),


rule figures:
    """Plot learning curves and attention of the tasks' headlines."""
    input:
        [plot for task in plan.tasks for plot in plan.plots_of(task)],


rule paper:
    """Make every table and figure of the papers, with all that they need."""
    input:
        expand("<results>/paper/{page}.md", page=PAGES),
        expand("<results>/paper/{figure}.svg", figure=plan.figures),
        "<results>/paper/ledger.jsonl",
        "<results>/paper/report.html",
        # Snakemake would not make a deleted model again while its scores exist. So the models are
        # inputs, too.
        expand("{run}/model.safetensors", run=plan.runs),
        expand("{run}/curve.svg", run=plan.runs),


rule report:
    """Make the pages of Snakemake's own report: snakemake report --report results/report.html"""
    input:
        "<results>/paper/report.html",
        expand("<results>/shown/paper.{page}.html", page=PAGES),
