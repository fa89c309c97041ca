"""From cleaned text to numbers: BPE codes, vocabularies, token stores."""


rule joint_codes:
    input:
        lambda w: both_sides(w, "train"),
    output:
        "<results>/{task}/vocabulary/codes",
    log:
        "<logs>/{task}/codes.log",
    conda:
        "../envs/text.yaml"
    params:
        merges=lambda w: tasks[w.task]["vocabulary"]["merges"],
        code=script_code("codes.py"),
    script:
        "../workflow/scripts/codes.py"


use rule joint_codes as codes_of_one_side with:
    input:
        lambda w: side(w, "train", w.lang),
    output:
        "<results>/{task}/vocabulary/codes.{lang}",
    log:
        "<logs>/{task}/codes.{lang}.log",


rule vocabulary:
    input:
        text=lambda w: side(w, "train", w.lang),
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


rule binarise:
    input:
        text=lambda w: both_sides(w, w.split),
        codes=lambda w: [path for lang in languages_of(w) for path in codes(w, lang)],
        vocabularies=lambda w: [
            f"{RESULTS}/{w.task}/vocabulary/{lang}.tsv" for lang in languages_of(w)
        ],
    output:
        store="<results>/{task}/dataset/{split}.arrow",
        facts="<results>/{task}/dataset/{split}.json",
    log:
        "<logs>/{task}/binarise/{split}.log",
    wildcard_constraints:
        split="train|valid",
    conda:
        "../envs/text.yaml"
    params:
        facts=lambda w: flow.dataset_facts(w.task, tasks[w.task]),
        code=script_code("binarise.py"),
    script:
        "../workflow/scripts/binarise.py"
