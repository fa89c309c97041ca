"""The LSTM paper's figures: states of phrases, and BLEU by sentence length and by rarity of words."""


include: "inputs/lstm_figures.smk"


rule project_phrases:
    input:
        model="<model>/{run}/model.safetensors",
    output:
        "<model>/{run}/phrases.{phrases}.json",
    log:
        "<logs>/{task}/{model}/{run}/phrases.{phrases}.log",
    benchmark:
        "<benchmarks>/{task}/{model}/{run}/phrases.{phrases}.tsv"
    wildcard_constraints:
        run="seed[0-9]+",
        phrases=alternatives(settings.phrases),
    conda:
        "../envs/train.yaml"
    params:
        header=lambda w: {**run_header(w), "name": w.phrases},
        stand_in=scale.stand_in,
        phrases=lambda w: settings.phrases[w.phrases].model_dump(mode="json"),
        code=script_code("project_phrases.py"),
    script:
        "../workflow/scripts/project_phrases.py"


rule plot_phrase_states:
    input:
        lambda w: projections_shown(),
    output:
        report(
            "<results>/paper/lstm_figure2.svg",
            caption="../workflow/report/phrases.rst",
            category="figures",
            labels={"figure": "LSTM, figure 2"},
        ),
        "<results>/paper/lstm_figure2.pdf",
        points="<results>/paper/lstm_figure2.points.csv",
    log:
        "<logs>/paper/plot_phrase_states.log",
    benchmark:
        "<benchmarks>/paper/plot_phrase_states.tsv"
    conda:
        "../envs/plot.yaml"
    params:
        code=script_code("plot_phrase_states.py"),
    script:
        "../workflow/scripts/plot_phrase_states.py"


rule plot_bleu_by_length:
    input:
        unpack(lambda w: curves_shown()),
    output:
        report(
            "<results>/paper/lstm_figure3.svg",
            caption="../workflow/report/bleu_by_length.rst",
            category="figures",
            labels={"figure": "LSTM, figure 3"},
        ),
        "<results>/paper/lstm_figure3.pdf",
        points="<results>/paper/lstm_figure3.points.csv",
    log:
        "<logs>/paper/plot_bleu_by_length.log",
    benchmark:
        "<benchmarks>/paper/plot_bleu_by_length.tsv"
    conda:
        "../envs/plot.yaml"
    params:
        names=lambda w: names_of_curves(),
        stand_in=scale.stand_in,
        code=script_code("plot_bleu_by_length.py"),
    script:
        "../workflow/scripts/plot_bleu_by_length.py"
