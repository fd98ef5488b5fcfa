"""Beyond one array: files, sketches and engines."""
