"""From words to numbers: word counts, BPE codes, vocabularies, token stores.

In the paths below, `{stage}` is the text that models read: `clean`, or `truecased` in a truecased task.
"""

# The tasks that take the vocabulary of another task's model (key `vocabulary_of`). All other tasks
# learn their own.
TAKES_VOCABULARY = {name for name, task in tasks.items() if task.vocabulary_of}


rule count_words:
    """Count the words of training text."""
    input:
        source=of_text("<results>/{task}/corpus/{stage}/train.source.zst"),
        target=of_text("<results>/{task}/corpus/{stage}/train.target.zst"),
        changed=changed("count_words"),
    output:
        source="<results>/{task}/corpus/words/source.tsv.zst",
        target="<results>/{task}/corpus/words/target.tsv.zst",
    log:
        "<logs>/{task}/count_words.log",
    benchmark:
        "<benchmarks>/{task}/count_words.tsv"
    wildcard_constraints:
        task=alternatives(OWN_TEXT),
    group:
        "text"
    conda:
        environment("text")
    resources:
        mem_mb=memory(2000),
        runtime=minutes(20, large=120),
    params:
        code=code("count_words"),
    script:
        "../workflow/scripts/count_words.py"


rule learn_bpe:
    """Learn BPE codes from the words of both sides, or of one side (`codes.LANG`)."""
    input:
        # `<results>/{task}/corpus/words/source.tsv.zst`, `target.tsv.zst`, or both for joint codes.
        lambda w: in_one_line(plan.counted_words)(w.task, w.suffix),
        changed=changed("learn_bpe"),
    output:
        "<results>/{task}/vocabulary/codes{suffix}",
    log:
        "<logs>/{task}/learn_bpe{suffix}.log",
    benchmark:
        "<benchmarks>/{task}/learn_bpe{suffix}.tsv"
    wildcard_constraints:
        suffix=r"(\.[a-z]+(_[a-z]+)?)?",
        task=alternatives(tasks.keys() - TAKES_VOCABULARY),
    group:
        "vocabulary"
    conda:
        environment("text")
    resources:
        # subword-nmt took 214 bytes of memory for each byte of the compressed tables of words
        # (docs/notes/2026-11-21-preparation.md).
        mem_mb=lambda w, input, attempt: attempt * max(4000, int(1000 + 300 * input.size_mb)),
        runtime=minutes(30, large=240),
    params:
        code=code("learn_bpe"),
        merges=lambda w: tasks[w.task].vocabulary.merges,
    script:
        "../workflow/scripts/learn_bpe.py"


rule build_vocabulary:
    """Make the vocabulary of a side."""
    input:
        words=lambda w: of_text(f"<results>/{{task}}/corpus/words/{side_of(w)}.tsv.zst")(w),
        bpe_codes=bpe_codes,
        changed=changed("build_vocabulary"),
    output:
        "<results>/{task}/vocabulary/{lang}.tsv",
    log:
        "<logs>/{task}/build_vocabulary/{lang}.log",
    benchmark:
        "<benchmarks>/{task}/build_vocabulary/{lang}.tsv"
    wildcard_constraints:
        task=alternatives(tasks.keys() - TAKES_VOCABULARY),
    group:
        "vocabulary"
    conda:
        environment("text")
    resources:
        mem_mb=memory(8000),
        runtime=minutes(10, large=120),
    params:
        code=code("build_vocabulary"),
        settings=lambda w: tasks[w.task].vocabulary.model_dump(
            include={"threshold", "glossaries", "minimum_count"}
        ),
        size=lambda w: tasks[w.task].vocabulary_size(w.lang),
    script:
        "../workflow/scripts/build_vocabulary.py"


rule take_codes:
    """Take the BPE codes of another task's model."""
    input:
        model=model_of_vocabulary,
        changed=changed("take_codes", model_of_vocabulary),
    output:
        "<results>/{task}/vocabulary/codes",
    log:
        "<logs>/{task}/take_codes.log",
    benchmark:
        "<benchmarks>/{task}/take_codes.tsv"
    wildcard_constraints:
        task=alternatives(TAKES_VOCABULARY),
    conda:
        environment("train")
    resources:
        mem_mb=memory(4000),
        runtime=minutes(10),
    params:
        code=code("take_codes"),
    script:
        "../workflow/scripts/take_codes.py"


rule take_vocabulary:
    """Take a side's vocabulary from another task's model."""
    input:
        model=model_of_vocabulary,
        # The counts in the vocabulary are those of this task's words.
        words=lambda w: of_text(f"<results>/{{task}}/corpus/words/{side_of(w)}.tsv.zst")(w),
        changed=changed("take_vocabulary", model_of_vocabulary),
    output:
        "<results>/{task}/vocabulary/{lang}.tsv",
    log:
        "<logs>/{task}/take_vocabulary/{lang}.log",
    benchmark:
        "<benchmarks>/{task}/take_vocabulary/{lang}.tsv"
    wildcard_constraints:
        task=alternatives(TAKES_VOCABULARY),
    conda:
        environment("train")
    resources:
        mem_mb=memory(8000),
        runtime=minutes(10, large=120),
    params:
        code=code("take_vocabulary"),
        side=lambda w: side_of(w),
        kind=lambda w: tasks[w.task].vocabulary.kind,
    script:
        "../workflow/scripts/take_vocabulary.py"


rule binarize:
    """Make the token stores of training and validation text, which a training reads."""
    input:
        train_source=of_text("<results>/{task}/corpus/{stage}/train.source.zst"),
        train_target=of_text("<results>/{task}/corpus/{stage}/train.target.zst"),
        valid_source=of_text("<results>/{task}/corpus/{stage}/valid.source.zst"),
        valid_target=of_text("<results>/{task}/corpus/{stage}/valid.target.zst"),
        counts=of_text("<results>/{task}/corpus/counts.txt"),  # checks that filters were equal
        bpe_codes=bpe_codes,
        vocabularies=vocabularies,
        changed=changed("binarize"),
    output:
        stores=multiext("<results>/{task}/dataset/", "train.arrow", "valid.arrow"),
        descriptions=multiext("<results>/{task}/dataset/", "train.json", "valid.json"),
    log:
        "<logs>/{task}/binarize.log",
    benchmark:
        "<benchmarks>/{task}/binarize.tsv"
    group:
        "vocabulary"
    conda:
        environment("text")
    resources:
        mem_mb=memory(4000),
        runtime=minutes(20, large=240),
    params:
        code=code("binarize"),
        metadata=lambda w: settings.dataset_metadata(w.task).model_dump(mode="json"),
        most_tokens=lambda w: tasks[w.task].clean.tokens,
    script:
        "../workflow/scripts/binarize.py"


rule count_dataset:
    """Count the pairs in the token stores, unknown tokens, and test lines that were trained on."""
    input:
        train="<results>/{task}/dataset/train.json",
        valid="<results>/{task}/dataset/valid.json",
        # `<results>/{task}/corpus/raw/test.source.zst` and `.target.zst` of each test set.
        tests=lambda w: plan.test_text(w.task),
        overlap=of_text("<results>/{task}/corpus/overlap.json"),
        bpe_codes=bpe_codes,
        vocabularies=vocabularies,
        truecasers=lambda w: plan.truecasers(w.task),
        changed=changed("count_dataset"),
    output:
        table="<results>/{task}/dataset/counts.txt",
        counts="<results>/{task}/dataset/counts.json",
    log:
        "<logs>/{task}/count_dataset.log",
    benchmark:
        "<benchmarks>/{task}/count_dataset.tsv"
    priority: 1  # before trainings
    localrule: True
    conda:
        environment("text")
    params:
        code=code("count_dataset"),
        most_tokens=lambda w: tasks[w.task].clean.tokens,
    script:
        "../workflow/scripts/count_dataset.py"
