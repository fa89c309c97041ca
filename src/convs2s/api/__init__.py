"""What programs and notebooks use: models in memory that translate and score."""
