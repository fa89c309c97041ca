"""What ``make faults`` runs: every kind of fault at its full size."""
