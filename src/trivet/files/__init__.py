"""Importing files: which files an import reads, the documents in them, and which of them did not change.

``paths.import_paths`` imports files and folders; ``importer.Importer`` takes documents from any other source.
``formats.FORMATS`` has the reader of each format that is not plain text, by suffix.
"""
