"""Reading other toolkits' checkpoints, and vocabularies of other trainings."""
