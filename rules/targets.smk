"""What a user asks for by name: each stage for the tasks of config.yaml's `tasks`, and the paper."""

import json

STAGE_FOLDERS = [layout.task(task) for task in STAGE_TASKS]
TRAINED_FOLDERS = [layout.task(task) for task in TRAINED_TASKS]
TABLES = [*(layout.table(name) for name in CELLS), layout.claims, layout.costs]
PAPER_FIGURES = [layout.figure(name) for name in DRAWN_FIGURES]
FIGURES = [plot for task in STAGE_TASKS for plot in plots_of(task)]
PAPER_RUNS = runs_of(cell for table in PLANNED.values() for cell in table)
CURVES = [f"{folder}/curve.svg" for folder in PAPER_RUNS]
# Asked for by name, as a model that was deleted would not be missed beside scores that are there.
PAPER_MODELS = [f"{folder}/model.safetensors" for folder in PAPER_RUNS]
REPORTS = [layout.task(task).report(tasks[task].metric) for task in STAGE_TASKS]
TRANSLATIONS = [path for task in STAGE_TASKS for path in headline_files(task, "jsonl")]


rule download:
    input:
        local_files(one for task in STAGE_TASKS for one in tasks[task].needed_references()),
    localrule: True


rule prepare:
    input:
        [folder.store(split) for folder in TRAINED_FOLDERS for split in ("train", "valid")],
        [folder.dataset_counts for folder in TRAINED_FOLDERS],
        {layout.task(tasks[task].text_name).pair_counts for task in TRAINED_TASKS},
    localrule: True


rule align:
    input:
        {
            layout.task(tasks[t].text_name).dictionary
            for t in TRAINED_TASKS
            if tasks[t].has_dictionary
        },
    localrule: True


rule train:
    input:
        [str(Path(path).parent / "model.safetensors") for path in TRANSLATIONS],
    localrule: True


rule decode:
    input:
        TRANSLATIONS,
    localrule: True


rule evaluate:
    input:
        REPORTS,
    localrule: True


rule speed:
    input:
        [path for cell in PLANNED["table3"] for path in cell.paths],
        layout.table("table3"),
    localrule: True


rule tables:
    input:
        TABLES,
    localrule: True


rule figures:
    input:
        FIGURES,
    localrule: True


rule paper:
    input:
        TABLES,
        layout.ledger,
        PAPER_FIGURES,
        PAPER_MODELS,
        CURVES,
        layout.report,
    localrule: True


rule report:
    input:
        TABLES,
        layout.report,
        pages=lambda w: pages_of_report(),
    output:
        "<results>/report.html",
    log:
        "<logs>/report.log",
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        # Of the main workflow, with what --config and --configfile said.
        config=lambda w: json.dumps(workflow.modifier_stack[0].globals["config"]),
        snakefile=workflow.main_snakefile,
        targets=what_is_reported,
    shell:
        "snakemake --report {output} --snakefile {params.snakefile:q}"
        " --configfile <(echo {params.config:q}) -- {params.targets} > {log} 2>&1"
