"""The report of a run of the paper: tables, figures, curves and translations in one HTML file."""
