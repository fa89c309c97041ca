"""From filtered text to numbers: word counts, BPE codes, vocabularies, token stores."""


include: "inputs/vocabulary.smk"


rule count_words:
    input:
        text=lambda w: text_folder(w).text(tasks[w.task].model_text, "train", w.lang),
        pairs="<results>/{task}/corpus/clean/train.json",
    output:
        intermediate("<results>/{task}/corpus/words/{block}.{lang}.tsv.zst"),
    log:
        "<logs>/{task}/count_words/{block}.{lang}.log",
    benchmark:
        "<benchmarks>/{task}/count_words/{block}.{lang}.tsv"
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("count_words.py"),
    script:
        "../workflow/scripts/count_words.py"


rule add_word_counts:
    input:
        tables=expand("<results>/{{task}}/corpus/words/{block}.{{lang}}.tsv.zst", block=PARTS),
    output:
        "<results>/{task}/corpus/words/{lang}.tsv.zst",
    log:
        "<logs>/{task}/add_word_counts/{lang}.log",
    benchmark:
        "<benchmarks>/{task}/add_word_counts/{lang}.tsv"
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("add_word_counts.py"),
    script:
        "../workflow/scripts/add_word_counts.py"


rule learn_bpe:
    input:
        words=lambda w: [words(w, language) for language in languages(w)],
    output:
        "<results>/{task}/vocabulary/codes",
    log:
        "<logs>/{task}/learn_bpe.log",
    benchmark:
        "<benchmarks>/{task}/learn_bpe.tsv"
    wildcard_constraints:
        task=alternatives(LEARNS_VOCABULARY),
    conda:
        "../envs/text.yaml"
    resources:
        mem_mb=memory_to_learn_bpe,
    params:
        merges=lambda w: tasks[w.task].vocabulary.merges,
        code=script_code("learn_bpe.py"),
    script:
        "../workflow/scripts/learn_bpe.py"


rule build_vocabulary:
    input:
        words=lambda w: words(w, w.lang),
        bpe_codes=lambda w: bpe_codes(w, w.lang),
    output:
        "<results>/{task}/vocabulary/{lang}.tsv",
    log:
        "<logs>/{task}/build_vocabulary/{lang}.log",
    benchmark:
        "<benchmarks>/{task}/build_vocabulary/{lang}.tsv"
    wildcard_constraints:
        task=alternatives(LEARNS_VOCABULARY),
    conda:
        "../envs/text.yaml"
    params:
        settings=lambda w: tasks[w.task].vocabulary.model_dump(
            include={"threshold", "glossaries", "minimum_count"}
        ),
        size=lambda w: tasks[w.task].vocabulary_size(w.lang),
        code=script_code("build_vocabulary.py"),
    script:
        "../workflow/scripts/build_vocabulary.py"


rule take_codes:
    input:
        model=model_of_vocabulary,
    output:
        "<results>/{task}/vocabulary/codes",
    log:
        "<logs>/{task}/take_codes.log",
    benchmark:
        "<benchmarks>/{task}/take_codes.tsv"
    wildcard_constraints:
        task=alternatives(TAKES_VOCABULARY),
    conda:
        "../envs/train.yaml"
    params:
        code=script_code("take_codes.py"),
    script:
        "../workflow/scripts/take_codes.py"


rule take_vocabulary:
    input:
        model=model_of_vocabulary,
        words=lambda w: words(w, w.lang),
    output:
        "<results>/{task}/vocabulary/{lang}.tsv",
    log:
        "<logs>/{task}/take_vocabulary/{lang}.log",
    benchmark:
        "<benchmarks>/{task}/take_vocabulary/{lang}.tsv"
    wildcard_constraints:
        task=alternatives(TAKES_VOCABULARY),
    conda:
        "../envs/train.yaml"
    params:
        side=lambda w: "source" if w.lang == languages(w)[0] else "target",
        kind=lambda w: tasks[w.task].vocabulary.kind,
        code=script_code("take_vocabulary.py"),
    script:
        "../workflow/scripts/take_vocabulary.py"


rule binarize:
    input:
        unpack(to_binarize("valid")),
    output:
        store="<results>/{task}/dataset/valid.arrow",
        description="<results>/{task}/dataset/valid.json",
    log:
        "<logs>/{task}/binarize/valid.log",
    benchmark:
        "<benchmarks>/{task}/binarize/valid.tsv"
    conda:
        "../envs/text.yaml"
    params:
        metadata=dataset_metadata,
        most_tokens=lambda w: tasks[w.task].clean.tokens,
        code=script_code("binarize.py"),
    script:
        "../workflow/scripts/binarize.py"


rule count_dataset:
    input:
        train="<results>/{task}/dataset/train.json",
        valid="<results>/{task}/dataset/valid.json",
    output:
        "<results>/{task}/dataset/counts.txt",
    log:
        "<logs>/{task}/count_dataset.log",
    benchmark:
        "<benchmarks>/{task}/count_dataset.tsv"
    conda:
        "../envs/text.yaml"
    params:
        most_tokens=lambda w: tasks[w.task].clean.tokens,
        code=script_code("count_dataset.py"),
    script:
        "../workflow/scripts/count_dataset.py"


rule join_blocks:
    input:
        stores=expand("<results>/{{task}}/dataset/train.{block}.arrow", block=PARTS),
        descriptions=expand("<results>/{{task}}/dataset/train.{block}.json", block=PARTS),
    output:
        store="<results>/{task}/dataset/train.arrow",
        description="<results>/{task}/dataset/train.json",
    log:
        "<logs>/{task}/join_blocks.log",
    benchmark:
        "<benchmarks>/{task}/join_blocks.tsv"
    conda:
        "../envs/text.yaml"
    params:
        metadata=dataset_metadata,
        code=script_code("join_blocks.py"),
    script:
        "../workflow/scripts/join_blocks.py"
