"""The demo corpus: English and French sentences from a bilingual grammar of the project's own.

``docs/demo_corpus.md`` says what it shows and how it is made.
"""

from convs2s.text.demo.corpus import generate, write_demo_corpus

__all__ = ["generate", "write_demo_corpus"]
