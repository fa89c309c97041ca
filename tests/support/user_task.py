"""A task file as a user writes it."""

TASK = """
description: A user's own language pair
languages: {source: en, target: fr}
corpus:
  train: [{source: train.en, target: train.fr}]
  valid: [{source: valid.en, target: valid.fr}]
  tests: {mine: [{source: test.en, target: test.fr}]}
"""
