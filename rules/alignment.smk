"""Word alignments of the training text, on words and never on BPE, and the tables from them."""


rule align_words:
    input:
        unpack(training_text),
    output:
        "<results>/{task}/alignment/links",
    log:
        "<logs>/{task}/align_words.log",
    conda:
        "../envs/text.yaml"
    resources:
        mem_mb=lambda w, attempt: attempt * 16000,  # 5 million pairs; hours too (config/costs.yaml)
        runtime=lambda w, attempt: min(attempt * 720, 1440),
    params:
        sample=lambda w: tasks[w.task].alignment.model_dump(include={"aligner", "pairs", "seed"}),
    script:
        "../workflow/scripts/align_words.py"


rule build_dictionary:
    input:
        unpack(training_text),
        links="<results>/{task}/alignment/links",
    output:
        dictionary="<results>/{task}/alignment/dictionary.tsv",
        candidates="<results>/{task}/alignment/candidates.tsv",
    log:
        "<logs>/{task}/build_dictionary.log",
    conda:
        "../envs/text.yaml"
    script:
        "../workflow/scripts/build_dictionary.py"
