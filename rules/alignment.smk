"""Word alignments of the training text and the tables made from them. BPE is never aligned."""


rule align_words:
    """Align the words of a task's training text."""
    input:
        source=of_text("<results>/{task}/corpus/{stage}/train.source.zst"),
        target=of_text("<results>/{task}/corpus/{stage}/train.target.zst"),
        changed=changed("align_words"),
    output:
        "<results>/{task}/alignment/links",
    log:
        "<logs>/{task}/align_words.log",
    benchmark:
        "<benchmarks>/{task}/align_words.tsv"
    wildcard_constraints:
        task=alternatives(OWN_TEXT),
    conda:
        environment("text")
    resources:
        # Memory and time are those for 5 million pairs (config/costs.yaml).
        mem_mb=memory(16000),
        runtime=minutes(60, large=720),
    params:
        code=code("align_words"),
        sample=lambda w: tasks[w.task].alignment.model_dump(include={"aligner", "pairs", "seed"}),
    script:
        "../workflow/scripts/align_words.py"


rule build_dictionary:
    """Make the dictionary, and the candidates of each word, from a task's word alignments."""
    input:
        source=of_text("<results>/{task}/corpus/{stage}/train.source.zst"),
        target=of_text("<results>/{task}/corpus/{stage}/train.target.zst"),
        links="<results>/{task}/alignment/links",
        changed=changed("build_dictionary"),
    output:
        dictionary="<results>/{task}/alignment/dictionary.tsv",
        candidates="<results>/{task}/alignment/candidates.tsv",
    log:
        "<logs>/{task}/build_dictionary.log",
    benchmark:
        "<benchmarks>/{task}/build_dictionary.tsv"
    wildcard_constraints:
        task=alternatives(OWN_TEXT),
    conda:
        environment("text")
    resources:
        mem_mb=memory(8000),
        runtime=minutes(20, large=120),
    params:
        code=code("build_dictionary"),
    script:
        "../workflow/scripts/build_dictionary.py"
