"""The programming interface for programs and notebooks: models that translate and score."""
