"""Word alignments of the training text, on words and never on BPE, and the tables from them."""


rule align_words:
    input:
        lambda w: both_sides(w, "train"),
    output:
        "<results>/{task}/alignment/links",
    log:
        "<logs>/{task}/align.log",
    conda:
        "../envs/text.yaml"
    params:
        sample=lambda w: tasks[w.task]["alignment"],
        code=script_code("align.py"),
    script:
        "../workflow/scripts/align.py"


rule lexicon:
    input:
        text=lambda w: both_sides(w, "train"),
        links="<results>/{task}/alignment/links",
    output:
        dictionary="<results>/{task}/alignment/dictionary.tsv",
        candidates="<results>/{task}/alignment/candidates.tsv",
    log:
        "<logs>/{task}/lexicon.log",
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("lexicon.py"),
    script:
        "../workflow/scripts/lexicon.py"
