"""Reserved words: words of a text that are spelled like special tokens, and are read as unknown.

Corpora that are distributed as tokenized text contain ``<unk>`` in place of rare words. The other
words are special tokens of this package or of other toolkits. They are reserved so that a text
cannot contain a special token.
"""

RESERVED_WORDS = frozenset({"<pad>", "<s>", "</s>", "<unk>"})
"""No vocabulary, dictionary or BPE code contains these words, and BPE does not split them."""
