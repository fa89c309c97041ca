"""What a user asks for by name: each stage for the tasks of config.yaml's `tasks`, and the paper."""

import json


rule download:
    input:
        [
            path
            for task in STAGE_TASKS
            for split in flow.splits(tasks[task])
            for path in files_of(task, split)
        ],
        [path for task in STAGE_TASKS for path in released_files(task)],
    localrule: True


rule prepare:
    input:
        of_tasks("dataset/train.arrow", TRAINED_TASKS),
        of_tasks("dataset/valid.arrow", TRAINED_TASKS),
        [
            f"{RESULTS}/{text}/corpus/counts.txt"
            for text in dict.fromkeys(flow.text_of(tasks, task) for task in TRAINED_TASKS)
        ],
    localrule: True


rule align:
    input:
        of_tasks("alignment/dictionary.tsv", TRAINED_TASKS),
    localrule: True


rule train:
    input:
        [str(Path(path).parent / "model.safetensors") for path in of_headlines("jsonl")],
    localrule: True


rule decode:
    input:
        of_headlines("jsonl"),
    localrule: True


rule evaluate:
    input:
        of_tasks("bleu.txt"),
    localrule: True


rule speed:
    input:
        [path for cell in CELLS["table3"] for path in cell.paths],
        "<results>/paper/table3.md",
    localrule: True


rule tables:
    input:
        expand("<results>/paper/{table}.md", table=CELLS),
    localrule: True


rule figures:
    input:
        [plot for task in STAGE_TASKS for plot in plots_of(task)],
    localrule: True


rule paper:
    input:
        rules.tables.input,
        rules.figures.input,
    localrule: True


rule report:
    input:
        rules.tables.input,
        rules.figures.input,
        rules.evaluate.input,
    output:
        f"{RESULTS}/report.html",
    log:
        "<logs>/report.log",
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        config=json.dumps(config),  # what --config and --configfile said, too
    shell:
        "snakemake --report {output} --configfile <(echo {params.config:q})"
        " -- tables figures evaluate > {log} 2>&1"
