"""Models: embedders make vectors of texts, scorers rate a passage for a query."""
