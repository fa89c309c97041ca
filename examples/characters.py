"""A tokenizer: characters as words, so that a model needs no vocabulary of pieces of words.

Run it: put `extensions: [examples/characters.py]` into config.yaml, and into a task's file

    preparation: {train: characters, test: characters}
    vocabulary: {kind: word}
    alignment: {dictionary: identity}
    clean: {maximum: null, ratio: null}

Then ask for the task's score; or see the words of a text:

    echo "Two cars." | convs2s tokenize --language en --preparation characters

It shows what a preparation is: a class that is made for a language, and turns a line of text into
words, joined by single spaces, and such words into text again. The model file carries its name.
"""

BLANK = "\u2581"
"""Stands for a blank of the text, as words cannot hold one."""


class Characters:
    """Characters as words. It is made for each language of a task, and needs none of them."""

    def __init__(self, language: str) -> None:
        """Take the two-letter code of a language."""

    def prepare(self, line: str) -> str:
        """Return the words of a raw line, joined by single spaces."""
        return " ".join(BLANK.join(line.split()))

    def restore(self, words: str) -> str:
        """Return the text of words."""
        return words.replace(" ", "").replace(BLANK, " ").strip()


PREPARATIONS = {"characters": Characters}
