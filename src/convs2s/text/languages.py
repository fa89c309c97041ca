"""Which languages the preparations suit less well, known without loading the tokenizer."""

import re

from convs2s.config.corpus import PREPARATIONS

# Chinese, Cantonese, Japanese, Thai, Lao, Khmer and Burmese have no blanks between words.
_WITHOUT_BLANKS = re.compile("zh|yue|ja|th|lo|km|my")
# The languages for which sacremoses has a list of abbreviations. They are copied here, because
# importing sacremoses takes half a second.
_WITH_ABBREVIATIONS = re.compile(
    "as|bn|ca|cs|de|el|en|es|et|fi|fr|ga|gu|hi|hu|is|it|kn|lt|lv|ml|mni|mr|nl|or|pa|pl|pt|ro|ru|sk|"
    "sl|sv|ta|tdt|te|yue|zh"
)
# Languages of India whose signs under and between letters are letters for sacremoses only.
_WITH_JOINING_SIGNS = re.compile("as|bn|gu|hi|kn|ml|mni|mr|or|pa|ta|te")


def preparation_warning(language: str, preparation: str) -> str | None:
    """Return what a user has to know of a language's text in a preparation; None if nothing.

    Of ``language``, the part before an underscore counts. Preparations of extensions and ``none``
    do not depend on what is known here.
    """
    if preparation not in PREPARATIONS or preparation == "none":
        return None
    code = language.partition("_")[0]
    if _WITHOUT_BLANKS.fullmatch(code):
        return (
            f"text in '{language}' has no blanks between words, and no preparation here splits "
            "it: split it yourself and state `preparation: {train: none, test: none}` "
            "(docs/own_language_pair.md)"
        )
    if _WITH_JOINING_SIGNS.fullmatch(code):
        return (
            f"'{language}': words are not cut at the signs that join letters, where Moses' "
            "tokenizer cuts them (docs/preparation.md)"
        )
    if _WITH_ABBREVIATIONS.fullmatch(code):
        return None
    text = (
        f"'{language}' has no list of abbreviations: the list of English is used "
        "(docs/preparation.md)"
    )
    if code == "ko":
        text += "; spaces between words stay, which Moses of 2017 removes"
    if len(code) > 2:
        text += (
            "; if the language has a code of two letters, such as ro for Romanian, use "
            "that code"
        )
    return text
