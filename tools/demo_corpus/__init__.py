"""The grammar that writes the demo corpora; ``docs/demo_corpus.md`` says what they show."""
