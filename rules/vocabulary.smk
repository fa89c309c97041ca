"""From cleaned text to numbers: word counts, BPE codes, vocabularies, token stores."""


rule count_words:
    input:
        text=lambda w: side(w, "train", w.lang),
        pairs="<results>/{task}/corpus/clean/train.json",
    output:
        intermediate("<results>/{task}/corpus/words/{scatteritem}.{lang}.tsv.zst"),
    log:
        "<logs>/{task}/count_words/{scatteritem}.{lang}.log",
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("count_words.py"),
    script:
        "../workflow/scripts/count_words.py"


rule add_word_counts:
    input:
        gather.shards("<results>/{{task}}/corpus/words/{scatteritem}.{{lang}}.tsv.zst"),
    output:
        "<results>/{task}/corpus/words/{lang}.tsv.zst",
    log:
        "<logs>/{task}/add_word_counts/{lang}.log",
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("add_word_counts.py"),
    script:
        "../workflow/scripts/add_word_counts.py"


rule joint_codes:
    input:
        lambda w: [words(w, lang) for lang in languages_of(w)],
    output:
        "<results>/{task}/vocabulary/codes",
    log:
        "<logs>/{task}/codes.log",
    conda:
        "../envs/text.yaml"
    resources:
        mem_mb=memory_to_learn_codes,
    params:
        merges=lambda w: tasks[w.task]["vocabulary"]["merges"],
        code=script_code("codes.py"),
    script:
        "../workflow/scripts/codes.py"


use rule joint_codes as codes_of_one_side with:
    input:
        lambda w: words(w, w.lang),
    output:
        "<results>/{task}/vocabulary/codes.{lang}",
    log:
        "<logs>/{task}/codes.{lang}.log",


rule vocabulary:
    input:
        words=lambda w: words(w, w.lang),
        codes=lambda w: codes(w, w.lang),
    output:
        "<results>/{task}/vocabulary/{lang}.tsv",
    log:
        "<logs>/{task}/vocabulary/{lang}.log",
    conda:
        "../envs/text.yaml"
    params:
        settings=lambda w: tasks[w.task]["vocabulary"],
        size=lambda w: flow.vocabulary_size(tasks[w.task], w.lang),
        code=script_code("vocabulary.py"),
    script:
        "../workflow/scripts/vocabulary.py"


rule binarize:
    input:
        unpack(lambda w: what_to_binarize(w, "valid")),
    output:
        store="<results>/{task}/dataset/valid.arrow",
        facts="<results>/{task}/dataset/valid.json",
    log:
        "<logs>/{task}/binarize/valid.log",
    conda:
        "../envs/text.yaml"
    params:
        facts=lambda w: flow.dataset_facts(w.task, tasks[w.task]),
        code=script_code("binarize.py"),
    script:
        "../workflow/scripts/binarize.py"


use rule binarize as binarize_shard with:
    input:
        unpack(lambda w: what_to_binarize(w, "train")),
        pairs=lambda w: text_path(w, "corpus/clean/train.json"),
    output:
        store=intermediate("<results>/{task}/dataset/train.{scatteritem}.arrow"),
        facts=intermediate("<results>/{task}/dataset/train.{scatteritem}.json"),
    log:
        "<logs>/{task}/binarize/train.{scatteritem}.log",


rule join_shards:
    input:
        stores=gather.shards("<results>/{{task}}/dataset/train.{scatteritem}.arrow"),
        facts=gather.shards("<results>/{{task}}/dataset/train.{scatteritem}.json"),
    output:
        store="<results>/{task}/dataset/train.arrow",
        facts="<results>/{task}/dataset/train.json",
    log:
        "<logs>/{task}/join_shards.log",
    conda:
        "../envs/text.yaml"
    params:
        facts=lambda w: flow.dataset_facts(w.task, tasks[w.task]),
        code=script_code("join_shards.py"),
    script:
        "../workflow/scripts/join_shards.py"
