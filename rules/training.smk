"""From token stores to a model file.

The trainer keeps its state in a folder beside the output that no rule declares, as Snakemake deletes
the outputs of a killed job. Run the same command again and it goes on from there.
"""

from convs2s.config import model_settings
from convs2s.training.version import TRAINING_VERSION


def dictionary(wildcards):
    """The alignment dictionary, for models over words: only they replace unknown ones by it."""
    is_word = tasks[wildcards.task]["vocabulary"]["kind"] == "word"
    return text_path(wildcards, "alignment/dictionary.tsv") if is_word else []


rule model_settings:
    localrule: True
    output:
        "<results>/{task}/models/{model}/settings.json",
    log:
        "<logs>/{task}/{model}/settings.log",
    conda:
        "../envs/text.yaml"
    params:
        settings=lambda w: model_settings(settings, w.model),
    script:
        "../workflow/scripts/model_settings.py"


def train_options(wildcards, dictionary):
    """What the machine and the task add to the command line of a training."""
    extra = f" --dictionary {dictionary}" if dictionary else ""
    return f"--device {options['device']} --threads {threads(wildcards)}{extra}"


rule train_model:
    input:
        settings="<results>/{task}/models/{model}/settings.json",
        dataset=expand("<results>/{{task}}/dataset/{split}.arrow", split=["train", "valid"]),
        dictionary=dictionary,
    output:
        model="<results>/{task}/models/{model}/seed{seed}/model.safetensors",
        history="<results>/{task}/models/{model}/seed{seed}/history.jsonl",
        summary="<results>/{task}/models/{model}/seed{seed}/training.json",
    log:
        "<logs>/{task}/{model}/seed{seed}/train.log",
    conda:
        "../envs/train.yaml"
    threads: threads
    resources:
        gpu=0 if options["device"] == "cpu" else 1,
        mem_mb=16000,
        runtime="1d",
    params:
        folder=lambda w: f"{RESULTS}/{w.task}",
        options=lambda w, input: train_options(w, input.dictionary),
        version=TRAINING_VERSION,
    shell:
        "python -m convs2s train {params.folder} --settings {input.settings}"
        " --seed {wildcards.seed} --output {output.model} {params.options} 2>&1 | tee {log}"
