"""``vocabulary`` of a task: what a token is."""

from typing import Literal

from convs2s.config.fields import Items, NonNegativeInt, PositiveInt, Text
from convs2s.config.section import Section


class VocabularySettings(Section):
    """What a token is: a piece of a word that BPE leaves, or a whole word."""

    kind: Literal["bpe", "word"] = "bpe"
    """bpe: byte pair encoding (merges, joint, threshold, glossaries apply, or the sizes in place of
    a threshold); word: the most frequent words (the sizes apply)."""
    merges: PositiveInt = 8000
    """BPE merge operations (the paper: 40,000)."""
    joint: bool = True
    """Whether one set of merges is learned on both languages together."""
    threshold: NonNegativeInt = 0
    """Subwords seen less often than this in a language's training text are split further; 0 splits
    none."""
    glossaries: Items[Text] = ()
    """Regular expressions of words that BPE leaves whole."""
    source_size: PositiveInt | None = None
    """Most types of the source vocabulary, special tokens not counted; null keeps all."""
    target_size: PositiveInt | None = None
    """Likewise for the target."""
    minimum_count: PositiveInt = 1
    """Types seen less often than this in the training text are left out; where there is a
    threshold, subwords are split further first."""

    def bpe_codes_name(self, language: str) -> str | None:
        """Return the name of a language's BPE codes: joint ones are one file; None for words."""
        if self.kind == "word":
            return None
        return "codes" if self.joint else f"codes.{language}"
