"""What a user asks for by name: each stage for the tasks of config.yaml's `tasks`, and the paper."""

TRAINED = [tasks[name] for name in plan.tasks if not tasks[name].released]
PAGES = [*plan.cells, "claims", "costs"]


rule download:
    """The files that the tasks' text and models are made from."""
    input:
        files_of(file for task in plan.tasks for file in settings.needed_references(task)),


rule prepare:
    """Token stores of training and validation text, and tables of what was dropped."""
    input:
        [layout.task(task.name).store(part) for task in TRAINED for part in ("train", "valid")],
        [layout.task(task.name).dataset_counts for task in TRAINED],
        {layout.task(task.text_name).pair_counts for task in TRAINED},


rule align:
    """Dictionaries of aligned words."""
    input:
        {layout.task(task.text_name).dictionary for task in TRAINED if task.has_dictionary},


rule train:
    """The models of the tasks' headlines."""
    input:
        [model for task in plan.tasks for model in plan.models_of(task)],


rule decode:
    """The translations that the tasks' headlines rest on."""
    input:
        [path for task in plan.tasks for path in plan.headline_files(task, "jsonl")],


rule evaluate:
    """The tasks' headline numbers."""
    input:
        [layout.task(task).report(tasks[task].metric) for task in plan.tasks],


rule speed:
    """Table 3: how fast models translate."""
    input:
        lambda w: plan.scores("table3") if "table3" in plan.planned else [],
        "<results>/paper/table3.md",


rule tables:
    """Tables of the papers with the scores that are there; nothing is trained."""
    input:
        expand("<results>/paper/{page}.md", page=PAGES),


rule figures:
    """Learning curves and attention of the tasks' headlines."""
    input:
        [plot for task in plan.tasks for plot in plan.plots_of(task)],


rule paper:
    """Every table and figure of the papers, with all that they need."""
    input:
        expand("<results>/paper/{page}.md", page=PAGES),
        expand("<results>/paper/{figure}.svg", figure=plan.figures),
        "<results>/paper/ledger.jsonl",
        "<results>/paper/report.html",
        # By name, as a model that was deleted would not be missed beside scores that are there.
        expand("{run}/model.safetensors", run=plan.runs),
        expand("{run}/curve.svg", run=plan.runs),


rule report:
    """Pages for Snakemake's own report: snakemake report --report results/report.html"""
    input:
        "<results>/paper/report.html",
        expand("<results>/shown/paper.{page}.html", page=PAGES),
