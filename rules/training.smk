"""From token stores to a model file.

The trainer keeps its state in a folder beside the output that no rule declares, as Snakemake deletes
the outputs of a killed job. Rerun the same command to resume from it.
"""

import shlex

from convs2s.pipeline.process import logged
from convs2s.training.identity import TRAINING_VERSION

# A scheduler ends a job at its time limit; on this machine nobody does.
TIME_LIMIT = " --time-limit {resources.runtime}" if workflow.remote_exec else ""

TRAIN = (
    "python -m convs2s train {params.folder:q} --settings {input.settings:q} --seed {wildcards.seed}"
    " --output {output.model:q} {params.tables} {resources.machine} --workers {resources.gpu}"
)

OF_A_TRAINING = {
    "mem_mb": lambda w, attempt: attempt * requested_memory(settings, w.task, w.model, gpus(w)),
    "runtime": "1d",  # at every attempt, as each goes on from the state of the one before
    "machine": machine_of_training,
}

# The job of several nodes runs on the first one, and starts a task on each by srun itself: the Slurm
# plugin knows this by `mpi`, and takes `tasks` for those of each GPU unless it is told of those too.
if options.nodes > 1:
    OF_A_TRAINING |= {"mpi": "srun", "tasks": options.nodes, "tasks_per_gpu": 0}
    given = workflow.resource_settings  # by set-resources to this rule, else to all
    own = given.overwrite_resources.get(module_of_rules.modify_rulename("train_model"), {})
    defaults = {**(given.default_resources or {}), **own}
    OF_A_TRAINING["slurm_extra"] = lambda w: slurm_options(gpus(w), defaults)


rule write_model_settings:
    output:
        "<model>/settings.json",
    log:
        "<logs>/{task}/{model}/settings.log",
    localrule: True
    conda:
        "../envs/text.yaml"
    params:
        settings=lambda w: settings.models[w.model].training_settings(),
    script:
        "../workflow/scripts/write_model_settings.py"


rule train_model:
    input:
        unpack(tables_of_text),
        settings="<model>/settings.json",
        dataset=dataset_of,
    output:
        model="<model>/seed{seed}/model.safetensors",
        records=multiext("<model>/seed{seed}/", "history.jsonl", "training.json"),
    log:
        "<logs>/{task}/{model}/seed{seed}/train.log",
    conda:
        "../envs/train.yaml"
    threads: lambda w: threads(w) * max(1, gpus(w))  # of each worker as many as on a CPU
    resources:
        **OF_A_TRAINING,
        gpu=lambda w: gpus(w) * (1 if workflow.remote_exec else options.nodes),
        nodes=options.nodes,
    params:
        folder=lambda w, input: str(Path(input.dataset[0]).parents[1]),
        tables=lambda w, input: " ".join(  # as options of the command
            shlex.join([f"--{name}", *input.get(name)]) for name in tables_of_text(w)
        ),
        version=TRAINING_VERSION,  # another one trains again, as no fingerprint of code does
    shell:
        logged(TRAIN + TIME_LIMIT, before='"$(dirname {output.model:q})"/state/train.log')


rule measure_training_speed:
    input:
        history="<model>/{run}/history.jsonl",
        training="<model>/{run}/training.json",
    output:
        "<model>/{run,seed[0-9]+}/training.speed.json",
    log:
        "<logs>/{task}/{model}/{run}/training.speed.log",
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        run=run_header,
    script:
        "../workflow/scripts/measure_training_speed.py"


# A model that others trained and published, in place of a task's own trainings.
rule import_released:
    input:
        lambda w: local_files(tasks[w.task].released_references()),
    output:
        "<model>/released/model.safetensors",
    log:
        "<logs>/{task}/{model}/released/import.log",
    wildcard_constraints:
        task=alternatives(name for name, task in tasks.items() if task.released),
    conda:
        "../envs/train.yaml"
    resources:
        mem_mb=lambda w, attempt: attempt * 8000,
    params:
        released=lambda w: tasks[w.task].released.model_dump(mode="json"),
        metadata=model_metadata,
    script:
        "../workflow/scripts/import_released.py"
