"""From token stores to a model file.

The trainer keeps its states in `state/` beside the model. No rule declares that folder, as Snakemake
deletes the outputs of a killed job. A rerun resumes from the last state of the very same data, recipe,
seed and TRAINING_VERSION; one of others is never loaded. A training that is finished is not repeated:
its model is written again from its state.
"""

import shlex

from convs2s.config.identity import machine_settings, training_settings
from convs2s.costs.memory import requested_memory
from convs2s.pipeline.process import logged, options_of_training
from convs2s.training.identity import TRAINING_VERSION

# GPUs of a training on each of its nodes.
GPUS = 0 if options.device == "cpu" else options.gpus or 1

# Workers of a training on each node; 0: as many as GPUs that the job was granted.
WORKERS = 1 if options.device == "cpu" else options.gpus or 0

# A training on several nodes is one job that starts a task on each by srun itself: the Slurm plugin
# knows this by `mpi`. `gres` is of each node, where `gpu` could be 3 on one and 1 on another.
NODES = {"mpi": "srun", "tasks": options.nodes, "tasks_per_gpu": 0} if options.nodes > 1 else {}
if GPUS and options.nodes > 1:
    NODES |= {"gres": f"gpu:{GPUS}"}


rule write_model_settings:
    """Write down the recipe of a model."""
    output:
        "<results>/{task}/models/{model}/settings.json",
    log:
        "<logs>/{task}/{model}/settings.log",
    benchmark:
        "<benchmarks>/{task}/{model}/settings.tsv"
    localrule: True
    conda:
        "../envs/text.yaml"
    params:
        tries=tries("write_model_settings"),
        # The model's section of config/models.yaml without what changes no result: checkpoint_minutes,
        # tensorboard and threads. With it the digest of an extension's network. No `code`: an edit of
        # the code must not train again; where results change, TRAINING_VERSION is raised.
        settings=lambda w: training_settings(settings.models[w.model]),
    script:
        "../workflow/scripts/write_model_settings.py"


rule train_model:
    """Train a model, from its last saved state if there is one."""
    input:
        recipe="<results>/{task}/models/{model}/settings.json",  # a change of it trains again
        dataset=multiext("<results>/{task}/dataset/", "train.arrow", "valid.arrow"),
        descriptions=multiext("<results>/{task}/dataset/", "train.json", "valid.json"),
        vocabularies=lambda w: expand(
            "<results>/{task}/vocabulary/{lang}.tsv", task=w.task, lang=tasks[w.task].language_pair
        ),
        bpe_codes=bpe_codes,
        # The model file that the recipe's key training.start.from names, for all seeds: a path, such as
        # `<results>/wmt14_en_fr/models/convs2s/seed1/model.safetensors`, or a download; mostly none.
        start=lambda w: in_one_line(plan.start_of)(w.model),
        # Dictionary and truecasers go into the model file alone: where one is new, the file is written
        # again and nothing is trained. Candidates are what a model with vocabulary selection trains on.
        dictionary=branch(
            lambda w: tasks[w.task].has_dictionary,
            then=of_text("<results>/{task}/alignment/dictionary.tsv"),
        ),
        candidates=branch(
            lambda w: settings.models[w.model].architecture.selection is not None,
            then=of_text("<results>/{task}/alignment/candidates.tsv"),
        ),
        truecasers=lambda w: (
            [
                of_text(f"<results>/{{task}}/corpus/truecaser.{side}.tsv")(w)
                for side in ("source", "target")
            ]
            if tasks[w.task].preparation.truecase
            else []
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
        "../envs/train.yaml"
    threads: lambda w: max(1, GPUS) * (options.cores or settings.models[w.model].training.threads)
    resources:
        **NODES,
        mem_mb=lambda w, attempt: attempt * requested_memory(settings, w.task, w.model, GPUS),
        runtime=1440,  # minutes, at every attempt: each goes on from the state of the one before
        gpu=GPUS * options.nodes,
        nodes=options.nodes,
    params:
        # In place of `code`: it is raised where the same recipe and seed would give another model.
        version=TRAINING_VERSION,
        tries=tries("train_model"),
        # What takes `input` is not compared with the last run, nor is the command below: devices,
        # workers, threads and minutes between states do not train again.
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
    """How fast a training was, by its history."""
    input:
        history="<results>/{task}/models/{model}/{run}/history.jsonl",
        training="<results>/{task}/models/{model}/{run}/training.json",
    output:
        "<results>/{task}/models/{model}/{run,seed[0-9]+}/training.speed.json",
    log:
        "<logs>/{task}/{model}/{run}/training.speed.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/training.speed.tsv"
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        code=code("measure_training_speed"),
        run=run_header,
    script:
        "../workflow/scripts/measure_training_speed.py"


rule import_released:
    """A model that others trained and published, in place of a task's own trainings."""
    input:
        # Checkpoint, dictionaries and codes that the task's key `released` names; archives once, such as
        # `<downloads>/dl.fbaipublicfiles.com/fairseq/models/wmt14.v2.en-fr.fconv-py.tar.bz2`.
        lambda w: files_of(tasks[w.task].released_references()),
    output:
        "<results>/{task}/models/{model}/released/model.safetensors",
    log:
        "<logs>/{task}/{model}/released/import.log",
    benchmark:
        "<benchmarks>/{task}/{model}/released/import.tsv"
    wildcard_constraints:
        task=alternatives(name for name, task in tasks.items() if task.released),
    conda:
        "../envs/train.yaml"
    resources:
        mem_mb=memory(8000),
        runtime=minutes(30),
    params:
        code=code("import_released"),
        # {model} is the model of the task's headline. metadata: the task's name and its keys
        # `languages` and `preparation.test`.
        released=lambda w: tasks[w.task].released.model_dump(mode="json"),
        metadata=lambda w: tasks[w.task].model_metadata().model_dump(mode="json"),
    script:
        "../workflow/scripts/import_released.py"
