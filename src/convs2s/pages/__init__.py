"""HTML pages that need no network: the report, the page of attention, the page of the server."""
