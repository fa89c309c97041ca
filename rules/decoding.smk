"""From a model, or several as an ensemble, and a test set's raw text to translations; how long it takes."""


rule decode_test_set:
    input:
        models=models,
        text=lambda w: test_side(w, "raw", "source"),
        tuned=tuned,
    output:
        lines="<model>/{run}/{testset}.{decoding}.jsonl",
        text="<model>/{run}/{testset}.{decoding}.txt",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.decode.log",
    conda:
        "../envs/train.yaml"
    threads: threads
    resources:
        gpu=0 if options["device"] == "cpu" else 1,
        device=options["device"],
        torch_threads=threads,
    params:
        settings=lambda w: settings.decodings[w.decoding],
        code=script_code("decode.py"),
    script:
        "../workflow/scripts/decode.py"


rule time_decoding:
    input:
        models=models,
        text=lambda w: test_side(w, "raw", "source"),
        tuned=tuned,
    output:
        "<model>/{run}/{testset}.{decoding}.{device}.speed.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.{device}.speed.log",
    conda:
        "../envs/train.yaml"
    threads: timing_threads
    resources:
        gpu=lambda w: int(w.device == "cuda"),
    params:
        facts=run_facts,
        code=script_code("time_decoding.py"),
    script:
        "../workflow/scripts/time_decoding.py"
