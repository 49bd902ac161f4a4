"""Results of statements as files: formats, writers, and files that are complete or absent."""
