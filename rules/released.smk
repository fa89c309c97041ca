"""Models that others trained and published, in place of a task's own trainings: the run `released`."""


rule import_released:
    input:
        lambda w: released_files(w.task),
    output:
        "<model>/released/model.safetensors",
    log:
        "<logs>/{task}/{model}/released/import.log",
    wildcard_constraints:
        task=flow.alternatives(name for name, task in tasks.items() if task["released"]),
    conda:
        "../envs/train.yaml"
    resources:
        mem_mb=8000,
    params:
        released=lambda w: tasks[w.task]["released"],
        facts=lambda w: flow.model_facts(w.task, tasks[w.task]),
        downloads=DOWNLOADS,
        code=script_code("import_released.py"),
    script:
        "../workflow/scripts/import_released.py"
