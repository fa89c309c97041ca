"""Fetch published models, read checkpoints of other toolkits, take vocabularies from models."""
