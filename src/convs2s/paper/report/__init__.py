"""The report on a run of the papers: tables, figures, curves and translations in one HTML file."""
