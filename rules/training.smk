"""From token stores to a model file.

The trainer keeps its states in `state/` beside the model. No rule declares that folder, because
Snakemake deletes the outputs of a killed job. A rerun resumes from the last state with the same
data, recipe, seed and TRAINING_VERSION. Other states are never loaded. A finished training is not
repeated: its model is written again from its state.
"""

import shlex

from convs2s.config.identity import machine_settings, training_settings
from convs2s.costs.memory import requested_memory
from convs2s.pipeline.process import logged, options_of_training
from convs2s.training.identity import TRAINING_VERSION

# GPUs and workers of a training on each of its nodes. 0 workers means one per GPU that the
# scheduler grants to the job.
if options.device == "cpu":
    GPUS, WORKERS = 0, 1
else:
    GPUS, WORKERS = options.gpus or 1, options.gpus or 0

# A training on several nodes is one job, which starts a task on each node by srun itself. `mpi`
# tells this to the Slurm plugin. `gres` states the GPUs of each node; with `gpu`, Slurm could give
# 3 of 4 GPUs on one node and 1 on another.
NODES = {"mpi": "srun", "tasks": options.nodes, "tasks_per_gpu": 0} if options.nodes > 1 else {}
if GPUS and options.nodes > 1:
    NODES |= {"gres": f"gpu:{GPUS}"}


rule write_model_settings:
    """Write the architecture and the recipe of a model to a file."""
    input:
        changed=changed("write_model_settings"),
    output:
        "<results>/{task}/models/{model}/settings.json",
    log:
        "<logs>/{task}/{model}/settings.log",
    benchmark:
        "<benchmarks>/{task}/{model}/settings.tsv"
    localrule: True
    conda:
        environment("text")
    params:
        tries=tries("write_model_settings"),
        # The model's section in config/models.yaml, without the keys that change no result
        # (checkpoint_minutes, tensorboard, threads), and with the digest of an extension's network.
        # There is no param `code`, as an edit of the code must not start trainings again. If an
        # edit changes the results, TRAINING_VERSION is raised.
        settings=lambda w: training_settings(settings.models[w.model]),
    script:
        "../workflow/scripts/write_model_settings.py"


rule train_model:
    """Train a model, from its last saved state if there is one."""
    input:
        # The settings of the model. A change trains the model again.
        recipe=lambda w: plan.recipe_of(w.task, w.model, first_output("write_model_settings", w)),
        dataset=multiext("<results>/{task}/dataset/", "train.arrow", "valid.arrow"),
        descriptions=multiext("<results>/{task}/dataset/", "train.json", "valid.json"),
        vocabularies=vocabularies,
        bpe_codes=bpe_codes,
        # The model file that the recipe's key training.start.from names, the same for all seeds: a
        # path such as `<results>/wmt14_en_fr/models/convs2s/seed1/model.safetensors`, or a
        # download. Most recipes name none.
        start=lambda w: in_one_line(plan.start_of)(w.model),
        # The dictionary and the truecasers are only stored in the model file. If one of them is
        # new, the file is written again without training. The candidates change the training of a
        # model with vocabulary selection.
        dictionary=branch(
            lambda w: tasks[w.task].has_dictionary,
            then=of_text("<results>/{task}/alignment/dictionary.tsv"),
        ),
        candidates=branch(
            lambda w: settings.models[w.model].architecture.selection is not None,
            then=of_text("<results>/{task}/alignment/candidates.tsv"),
        ),
        truecasers=lambda w: plan.truecasers(w.task),
        changed=changed(
            "train_model",
            lambda w: in_one_line(plan.start_of)(w.model),
            {"version": TRAINING_VERSION},
        ),
    output:
        model="<results>/{task}/models/{model}/seed{seed}/model.safetensors",
        records=multiext(
            "<results>/{task}/models/{model}/seed{seed}/", "history.jsonl", "training.json"
        ),
    log:
        "<logs>/{task}/{model}/seed{seed}/train.log",
    benchmark:
        "<benchmarks>/{task}/{model}/seed{seed}/train.tsv"
    conda:
        environment("train")
    threads: lambda w: max(1, GPUS) * (options.cores or settings.models[w.model].training.threads)
    resources:
        **NODES,
        mem_mb=lambda w, attempt: attempt * requested_memory(settings, w.task, w.model, GPUS),
        runtime=1440,  # minutes at each attempt, which resumes from the state of the one before
        gpu=GPUS * options.nodes,
        nodes=options.nodes,
    params:
        # In place of `code`. It is raised when the same recipe and seed would give another model.
        version=TRAINING_VERSION,
        tries=tries("train_model"),
        # Snakemake compares neither a param that takes `input` nor the command below with the last
        # run. So changes of devices, workers, threads and minutes between states train nothing
        # again.
        files=lambda w, input: options_of_training(
            input, machine_settings(settings.models[w.model].training)
        ),
    shell:
        logged(
            "python -m convs2s train {params.files} --settings {input.recipe:q}"
            " --seed {wildcards.seed} --output {output.model:q}"
            " --cpus {threads} --time-limit {resources.runtime}"
            f" --requeue --workers {WORKERS} --nodes {options.nodes}"
            f" --device {options.device} --products {options.products}"
            + (f" --states {shlex.quote(options.states)}" if options.states else ""),
            before='"$(dirname {output.model:q})"/state/train.log',
        )


rule measure_training_speed:
    """Compute the speed of a training from its history."""
    input:
        history="<results>/{task}/models/{model}/{run}/history.jsonl",
        training="<results>/{task}/models/{model}/{run}/training.json",
        changed=changed("measure_training_speed"),
    output:
        "<results>/{task}/models/{model}/{run,seed[0-9]+}/training.speed.json",
    log:
        "<logs>/{task}/{model}/{run}/training.speed.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/training.speed.tsv"
    localrule: True
    conda:
        environment("score")
    params:
        code=code("measure_training_speed"),
        run=run_header,
    script:
        "../workflow/scripts/measure_training_speed.py"


rule import_released:
    """Convert a published model of others, which a task uses instead of trainings of its own."""
    input:
        # An archive is listed once, such as
        # `<downloads>/dl.fbaipublicfiles.com/fairseq/models/wmt14.v2.en-fr.fconv-py.tar.bz2`.
        lambda w: plan.released_files(w.task),
        changed=changed("import_released", lambda w: plan.released_files(w.task)),
    output:
        "<results>/{task}/models/{model}/released/model.safetensors",
    log:
        "<logs>/{task}/{model}/released/import.log",
    benchmark:
        "<benchmarks>/{task}/{model}/released/import.tsv"
    wildcard_constraints:
        task=alternatives(name for name, task in tasks.items() if task.released),
    conda:
        environment("train")
    resources:
        mem_mb=memory(8000),
        runtime=minutes(30),
    params:
        code=code("import_released"),
        # {model} is the model of the task's headline. `metadata` has the task's name and its keys
        # `languages` and `preparation.test`.
        released=lambda w: tasks[w.task].released.model_dump(mode="json"),
        metadata=lambda w: tasks[w.task].model_metadata().model_dump(mode="json"),
    script:
        "../workflow/scripts/import_released.py"
