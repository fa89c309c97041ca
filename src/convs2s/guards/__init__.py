"""What stands between this package and files that anyone may have made, cut or damaged."""
