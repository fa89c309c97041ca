"""From filtered text to numbers: word counts, BPE codes, vocabularies, token stores."""

# The tasks whose vocabulary is a model's, and those that learn their own.
TAKES_VOCABULARY = {name for name, task in tasks.items() if task.vocabulary_of}
LEARNS_VOCABULARY = tasks.keys() - TAKES_VOCABULARY


rule count_words:
    input:
        text=lambda w: training_text(w)[w.side],
        pairs="<corpus>/clean/train.json",
    output:
        intermediate("<corpus>/words/{block}.{side}.tsv.zst"),
    log:
        "<logs>/{task}/count_words/{block}.{side}.log",
    conda:
        "../envs/text.yaml"
    script:
        "../workflow/scripts/count_words.py"


rule add_word_counts:
    input:
        tables=collect("<corpus>/words/{block}.{{side}}.tsv.zst", block=PARTS),
    output:
        "<corpus>/words/{side}.tsv.zst",
    log:
        "<logs>/{task}/add_word_counts/{side}.log",
    conda:
        "../envs/text.yaml"
    script:
        "../workflow/scripts/add_word_counts.py"


rule learn_bpe:
    input:
        words=words_of_codes,
    output:
        "<results>/{task}/vocabulary/codes{suffix}",
    log:
        "<logs>/{task}/learn_bpe{suffix}.log",
    wildcard_constraints:
        suffix=r"(\.[a-z]+(_[a-z]+)?)?",
        task=alternatives(LEARNS_VOCABULARY),
    conda:
        "../envs/text.yaml"
    resources:
        # subword-nmt took 214 bytes for a byte of the compressed tables (docs/notes/2026-11-21-preparation.md)
        mem_mb=lambda w, input, attempt: attempt * max(4000, int(1000 + 300 * input.size_mb)),
    params:
        merges=lambda w: tasks[w.task].vocabulary.merges,
    script:
        "../workflow/scripts/learn_bpe.py"


rule build_vocabulary:
    input:
        words=words,
        bpe_codes=lambda w: bpe_codes(w, w.lang),
    output:
        "<results>/{task}/vocabulary/{lang}.tsv",
    log:
        "<logs>/{task}/build_vocabulary/{lang}.log",
    wildcard_constraints:
        task=alternatives(LEARNS_VOCABULARY),
    conda:
        "../envs/text.yaml"
    params:
        settings=lambda w: tasks[w.task].vocabulary.model_dump(
            include={"threshold", "glossaries", "minimum_count"}
        ),
        size=lambda w: tasks[w.task].vocabulary_size(w.lang),
    script:
        "../workflow/scripts/build_vocabulary.py"


rule take_codes:
    input:
        model=model_of_vocabulary,
    output:
        "<results>/{task}/vocabulary/codes",
    log:
        "<logs>/{task}/take_codes.log",
    wildcard_constraints:
        task=alternatives(TAKES_VOCABULARY),
    conda:
        "../envs/train.yaml"
    script:
        "../workflow/scripts/take_codes.py"


rule take_vocabulary:
    input:
        model=model_of_vocabulary,
        words=words,
    output:
        "<results>/{task}/vocabulary/{lang}.tsv",
    log:
        "<logs>/{task}/take_vocabulary/{lang}.log",
    wildcard_constraints:
        task=alternatives(TAKES_VOCABULARY),
    conda:
        "../envs/train.yaml"
    params:
        side=side_of,
        kind=lambda w: tasks[w.task].vocabulary.kind,
    script:
        "../workflow/scripts/take_vocabulary.py"


rule binarize:
    input:
        unpack(to_binarize),
    output:
        multiext("<results>/{task}/dataset/{part,valid}", store=".arrow", description=".json"),
    log:
        "<logs>/{task}/binarize/{part}.log",
    conda:
        "../envs/text.yaml"
    params:
        metadata=dataset_metadata,
        most_tokens=lambda w: tasks[w.task].clean.tokens,
    script:
        "../workflow/scripts/binarize.py"


use rule binarize as binarize_block with:
    input:
        unpack(to_binarize),
        pairs=lambda w: text_folder(w).training_report,
    output:
        store=intermediate("<results>/{task}/dataset/{part}.arrow"),
        description=intermediate("<results>/{task}/dataset/{part}.json"),
    wildcard_constraints:
        part=f"train.({alternatives(PARTS)})",


rule count_dataset:
    input:
        multiext("<results>/{task}/dataset/", train="train.json", valid="valid.json"),
    output:
        "<results>/{task}/dataset/counts.txt",
    log:
        "<logs>/{task}/count_dataset.log",
    conda:
        "../envs/text.yaml"
    params:
        most_tokens=lambda w: tasks[w.task].clean.tokens,
    script:
        "../workflow/scripts/count_dataset.py"


rule join_blocks:
    input:
        stores=collect("<results>/{{task}}/dataset/train.{block}.arrow", block=PARTS),
        descriptions=collect("<results>/{{task}}/dataset/train.{block}.json", block=PARTS),
    output:
        multiext("<results>/{task}/dataset/train", store=".arrow", description=".json"),
    log:
        "<logs>/{task}/join_blocks.log",
    conda:
        "../envs/text.yaml"
    params:
        metadata=dataset_metadata,
    script:
        "../workflow/scripts/join_blocks.py"
