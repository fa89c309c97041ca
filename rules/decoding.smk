"""Translations of test sets by a model or an ensemble, and the time that they take."""

import os


rule decode_test_set:
    """Translate a test set by a model or an ensemble."""
    input:
        models=models_of_run,
        source=of_text("<results>/{task}/corpus/raw/{testset}.source.zst"),
        tuned=tuned_penalty,
        changed=changed("decode_test_set"),
    output:
        lines="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.jsonl",
        text="<results>/{task}/models/{model}/{run}/{testset}.{decoding}.txt",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.decode.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.decode.tsv"
    group:
        "translate"
    conda:
        environment("train")
    threads: lambda w: options.cores or settings.models[w.model].training.threads
    resources:
        mem_mb=memory_of_models,
        runtime=minutes(60),
        gpu=min(1, GPUS),
        translations=1,
    params:
        # A change of the device in config.yaml translates nothing again.
        code=code("decode_test_set"),
        decoding=decoding,
    script:
        "../workflow/scripts/decode_test_set.py"


rule time_decoding:
    """Measure how long a model takes to translate a test set."""
    input:
        models=models_of_run,
        source=of_text("<results>/{task}/corpus/raw/{testset}.source.zst"),
        tuned=tuned_penalty,
        changed=changed("time_decoding"),
    output:
        "<results>/{task}/models/{model}/{run}/{testset}.{decoding}.{device}.speed.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.{device}.speed.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.{decoding}.{device}.speed.tsv"
    conda:
        environment("train")
    # All cores of this machine, so that no other job disturbs the measurement. The profiles of
    # clusters set 4 instead.
    threads: lambda w: options.cores or os.cpu_count()
    resources:
        mem_mb=memory_of_models,
        runtime=minutes(120),
        gpu=lambda w: int(w.device == "cuda"),
    params:
        code=code("time_decoding"),
        run=run_header,
        decoding=decoding,
    script:
        "../workflow/scripts/time_decoding.py"
