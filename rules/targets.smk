"""What a user asks for by name: each stage for the tasks of config.yaml's `tasks`, and the paper."""

import json

TRAINED = [tasks[name] for name in STAGE_TASKS if not tasks[name].released]
TRAINED_FOLDERS = [layout.task(task.name) for task in TRAINED]
TRANSLATIONS = [path for task in STAGE_TASKS for path in headline_files(task, "jsonl")]
TABLES = expand("<results>/paper/{page}.md", page=[*CELLS, "claims", "costs"])
# Those of the report that are of what is there; tables and the paper's report are made first.
PAGES = [page for page, path in SHOWN.items() if page.startswith("paper.") or is_there(path)]


rule download:
    input:
        local_files(file for task in STAGE_TASKS for file in settings.needed_references(task)),


rule prepare:
    input:
        [folder.store(split) for folder in TRAINED_FOLDERS for split in ("train", "valid")],
        [folder.dataset_counts for folder in TRAINED_FOLDERS],
        {layout.task(task.text_name).pair_counts for task in TRAINED},


rule align:
    input:
        {layout.task(task.text_name).dictionary for task in TRAINED if task.has_dictionary},


rule train:
    input:
        [str(Path(path).parent / "model.safetensors") for path in TRANSLATIONS],


rule decode:
    input:
        TRANSLATIONS,


rule evaluate:
    input:
        [layout.task(task).report(tasks[task].metric) for task in STAGE_TASKS],


rule speed:
    input:
        [path for cell in PLANNED.get("table3", []) for path in cell.paths],
        "<results>/paper/table3.md",


rule tables:
    input:
        TABLES,


rule figures:
    input:
        [plot for task in STAGE_TASKS for plot in plots_of(task)],


rule paper:
    input:
        TABLES,
        "<results>/paper/ledger.jsonl",
        PAPER_FIGURES,
        # By name, as a model that was deleted would not be missed beside scores that are there.
        [f"{run}/model.safetensors" for run in PAPER_RUNS],
        CURVES,
        "<results>/paper/report.html",


rule report:
    input:
        TABLES,
        "<results>/paper/report.html",
        pages=expand("<results>/shown/{page}.html", page=PAGES),
    output:
        "<results>/report.html",
    log:
        "<logs>/report.log",
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        # Of the main workflow, with what --config and --configfile said; all processes can read it.
        config=lambda w: json.dumps(
            with_texts(workflow.modifier_stack[0].globals["config"], masked)
        ),
        snakefile=workflow.main_snakefile,
        targets=reported_files,
    shell:
        "snakemake --report {output:q} --snakefile {params.snakefile:q}"
        " --configfile <(echo {params.config:q}) -- {params.targets:q} > {log:q} 2>&1"
