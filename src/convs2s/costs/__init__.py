"""The hours, disk and memory of work: measured for what has run, expected for the rest."""
