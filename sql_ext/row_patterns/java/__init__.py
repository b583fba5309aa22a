"""Sources in Java; a package, so that they are installed with the others."""
