"""The papers' figures, and plots of a training and of its attention."""


rule plot_bleu_by_layers:
    input:
        scores=wanted_scores,
        published=PUBLISHED_LEDGER,
    output:
        reported_figure("{table}", "bleu_by_layers", "Figure 2"),
        multiext("<results>/paper/{table}", ".pdf", ".points.csv"),
    log:
        "<logs>/paper/plot_bleu_by_layers.{table}.log",
    wildcard_constraints:
        table=LAYERS_FIGURE,
    conda:
        "../envs/plot.yaml"
    params:
        shown=lambda w: table_contents(w.table),
    script:
        "../workflow/scripts/plot_bleu_by_layers.py"


rule attend_to_example:
    input:
        model="<model>/{run}/model.safetensors",
        # No file where the sentence is the one that the paper shows.
        text=test_side("raw", "source") if scale.example_line else [],
        tuned=tuned_penalty,
    output:
        "<model>/{run,seed[0-9]+}/{testset}.{decoding}.example.json",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.example.log",
    conda:
        "../envs/train.yaml"
    params:
        header=run_header,
        stand_in=scale.stand_in,
        sentence=lambda w: (
            None if scale.example_line else settings.tables[EXAMPLE_FIGURE].example_source
        ),
        line=scale.example_line,
        decoding=decoding,
    script:
        "../workflow/scripts/attend_to_example.py"


rule plot_example:
    input:
        lambda w: drawn_cells(EXAMPLE_FIGURE)[0].paths[0],  # the first row's first run
    output:
        reported_figure(EXAMPLE_FIGURE, "example", "Figure 3"),
        f"<results>/paper/{EXAMPLE_FIGURE}.pdf",
    log:
        "<logs>/paper/plot_example.log",
    conda:
        "../envs/plot.yaml"
    script:
        "../workflow/scripts/plot_example.py"


rule project_phrases:
    input:
        model="<model>/{run}/model.safetensors",
    output:
        "<model>/{run,seed[0-9]+}/phrases.{phrases}.json",
    log:
        "<logs>/{task}/{model}/{run}/phrases.{phrases}.log",
    conda:
        "../envs/train.yaml"
    params:
        header=lambda w: {**run_header(w), "name": w.phrases},
        stand_in=scale.stand_in,
        phrases=lambda w: settings.phrases[w.phrases].model_dump(mode="json"),
    script:
        "../workflow/scripts/project_phrases.py"


rule plot_phrase_states:
    input:
        lambda w: [cell.paths[0] for cell in drawn_cells(PHRASE_FIGURE)],  # of each row
    output:
        reported_figure(PHRASE_FIGURE, "phrases", "LSTM, figure 2"),
        f"<results>/paper/{PHRASE_FIGURE}.pdf",
        points=f"<results>/paper/{PHRASE_FIGURE}.points.csv",
    log:
        "<logs>/paper/plot_phrase_states.log",
    conda:
        "../envs/plot.yaml"
    script:
        "../workflow/scripts/plot_phrase_states.py"


rule plot_bleu_by_length:
    input:
        unpack(curves_shown),
    output:
        reported_figure(LENGTH_FIGURE, "bleu_by_length", "LSTM, figure 3"),
        f"<results>/paper/{LENGTH_FIGURE}.pdf",
        points=f"<results>/paper/{LENGTH_FIGURE}.points.csv",
    log:
        "<logs>/paper/plot_bleu_by_length.log",
    conda:
        "../envs/plot.yaml"
    params:
        names=names_of_curves,
        stand_in=scale.stand_in,
    script:
        "../workflow/scripts/plot_bleu_by_length.py"


rule plot_learning_curve:
    input:
        history="<model>/{run}/history.jsonl",
    output:
        reported_plot("curve", "curve", "learning curve"),
        "<model>/{run}/curve.png",
    log:
        "<logs>/{task}/{model}/{run}/curve.log",
    conda:
        "../envs/plot.yaml"
    params:
        heading=heading_of_plot,
    script:
        "../workflow/scripts/plot_learning_curve.py"


rule plot_attention:
    input:
        model="<model>/{run}/model.safetensors",
        translations="<model>/{run}/{testset}.{decoding}.jsonl",
    output:
        reported_plot(
            "{testset}.{decoding}.attention{line}", "attention", "attention, sentence {line}"
        ),
        "<model>/{run}/{testset}.{decoding}.attention{line}.png",
    log:
        "<logs>/{task}/{model}/{run}/{testset}.{decoding}.attention{line}.log",
    conda:
        "../envs/train.yaml"
    params:
        heading=heading_of_plot,
    script:
        "../workflow/scripts/plot_attention.py"
