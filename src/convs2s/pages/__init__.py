"""Pages of one HTML file each, which fetch nothing: of the report, of attention, of the server."""
