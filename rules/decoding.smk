"""From a model, or several as an ensemble, and a test set's raw text to translations; how long it takes."""


rule decode_test_set:
    input:
        models=models,
        source=test_side("raw", "source"),
        tuned=tuned_penalty,
    output:
        multiext("<model>/{run}/{testset}.{decoding}", lines=".jsonl", text=".txt"),
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.decode.log",
    conda:
        "../envs/train.yaml"
    threads: threads
    resources:
        **ON_DEVICE,
    params:
        decoding=decoding,
    script:
        "../workflow/scripts/decode_test_set.py"


rule time_decoding:
    input:
        models=models,
        source=test_side("raw", "source"),
        tuned=tuned_penalty,
    output:
        "<model>/{run}/{testset}.{decoding}.{device}.speed.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.{device}.speed.log",
    conda:
        "../envs/train.yaml"
    threads: timing_threads
    resources:
        mem_mb=memory_of_models,
        gpu=lambda w: int(w.device == "cuda"),
    params:
        run=run_header,
        decoding=decoding,
    script:
        "../workflow/scripts/time_decoding.py"
