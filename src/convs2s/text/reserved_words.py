"""Words that stand for something else than themselves: text that holds one means an unknown word.

Text that comes tokenized writes ``<unk>`` where its makers left out a rare word. The others are
special tokens here or in other toolkits, and no text is to forge one.
"""

RESERVED_WORDS = frozenset({"<pad>", "<s>", "</s>", "<unk>"})
"""They are in no vocabulary, dictionary or BPE code, and each is a token of its own."""
