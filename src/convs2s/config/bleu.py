"""The ways in which BLEU splits a text into words."""

from typing import Literal

BleuTokenizer = Literal["13a", "intl", "zh", "char", "none"]
"""Tokenizers of sacrebleu for plain text that need no other package.

``13a`` is the tokenizer of mteval-v13a.
"""

BleuForm = Literal["tokenized", BleuTokenizer, "ja-mecab", "ko-mecab"]
"""The tokenizer of plain text, or ``tokenized`` for words that are separated by blanks."""
