"""What work takes: hours, disk and memory, measured of what has run and expected of the rest."""
