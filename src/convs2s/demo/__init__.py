"""The demo corpus: English and French sentences from a bilingual grammar of the project's own.

``docs/demo_corpus.md`` says what it shows and how it is made.
"""
