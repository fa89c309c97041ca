"""Read checkpoints of other toolkits, and take vocabularies from models of other trainings."""
