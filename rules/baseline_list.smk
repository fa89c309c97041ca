"""Another system's list of hypotheses, by each model and run (the LSTM paper's table 2)."""


use rule score_n_best as score_baseline_list with:
    input:
        models=models,
        source=test_side("tok", "source"),
        n_best=baseline_list,
        tuned=[],
    output:
        "<model>/{run}/{testset}.scored.nbest.zst",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.scored.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.scored.tsv"
    params:
        decoding=scale_of_list,


use rule rescore_n_best as rescore_baseline_list with:
    input:
        n_best="<model>/{run}/{testset}.scored.nbest.zst",
        raw=test_side("raw", "target"),
        tokenized=test_side("tok", "target"),
    output:
        translations="<model>/{run}/{testset}.rescored.txt",
        text="<model>/{run}/{testset}.rescored.bleu.txt",
        json="<model>/{run}/{testset}.rescored.bleu.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.rescored.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/{testset}.rescored.tsv"
    params:
        header=header_of_baseline_list,
