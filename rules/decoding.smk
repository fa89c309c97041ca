"""From a model, or several as an ensemble, and a test set's raw text to translations."""


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
