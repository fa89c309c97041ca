"""From token stores to a model file.

The trainer keeps its state in a folder beside the output that no rule declares, as Snakemake deletes
the outputs of a killed job. Run the same command again and it goes on from there.
"""


include: "inputs/training.smk"


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
        dataset=expand("<results>/{{task}}/dataset/{split}.arrow", split=["train", "valid"]),
    output:
        model="<model>/seed{seed}/model.safetensors",
        records=multiext("<model>/seed{seed}/", "history.jsonl", "training.json"),
    log:
        "<logs>/{task}/{model}/seed{seed}/train.log",
    benchmark:
        "<benchmarks>/{task}/{model}/seed{seed}/train.tsv"
    conda:
        "../envs/train.yaml"
    threads: threads
    resources:
        **OF_A_TRAINING,
        gpu=gpus,
        nodes=options.nodes,
    params:
        folder=lambda w: prefixed(layout.task(w.task).path),
        tables=table_options,
        version=TRAINING_VERSION,
    shell:
        logged(f"python -m convs2s train {TRAINING_OPTIONS} {GRANTED}", before=LOG_OF_ALL_TRIES)


rule measure_training_speed:
    input:
        history="<model>/{run}/history.jsonl",
        training="<model>/{run}/training.json",
    output:
        "<model>/{run}/training.speed.json",
    log:
        "<logs>/{task}/{model}/{run}/training.speed.log",
    wildcard_constraints:
        run="seed[0-9]+",
    localrule: True
    conda:
        "../envs/score.yaml"
    params:
        run=run_header,
        code=script_code("measure_training_speed.py"),
    script:
        "../workflow/scripts/measure_training_speed.py"
