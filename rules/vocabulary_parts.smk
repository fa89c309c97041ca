"""Rules of vocabulary.smk again, for a part of what they take: one side, a block of the text."""


use rule learn_bpe as learn_bpe_of_one_side with:
    input:
        words=lambda w: [words(w, w.lang)],
    output:
        "<results>/{task}/vocabulary/codes.{lang}",
    log:
        "<logs>/{task}/learn_bpe.{lang}.log",
    benchmark:
        "<benchmarks>/{task}/learn_bpe.{lang}.tsv"


use rule binarize as binarize_block with:
    input:
        unpack(to_binarize("train")),
        pairs=lambda w: text_folder(w).training_report,
    output:
        store=intermediate("<results>/{task}/dataset/train.{block}.arrow"),
        description=intermediate("<results>/{task}/dataset/train.{block}.json"),
    log:
        "<logs>/{task}/binarize/train.{block}.log",
    benchmark:
        "<benchmarks>/{task}/binarize/train.{block}.tsv"
