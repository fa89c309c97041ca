"""Models that others trained and published, in place of a task's own trainings: the run `released`."""


rule import_released:
    input:
        lambda w: local_files(tasks[w.task].released_references()),
    output:
        "<model>/released/model.safetensors",
    log:
        "<logs>/{task}/{model}/released/import.log",
    benchmark:
        "<benchmarks>/{task}/{model}/released/import.tsv"
    wildcard_constraints:
        task=alternatives(name for name, task in tasks.items() if task.released),
    conda:
        "../envs/train.yaml"
    resources:
        mem_mb=lambda w, attempt: attempt * 8000,
    params:
        released=lambda w: on_disk.tasks[w.task].released.model_dump(mode="json"),
        metadata=model_metadata,
        downloads=on_disk.scale.downloads_dir,
    script:
        "../workflow/scripts/import_released.py"
