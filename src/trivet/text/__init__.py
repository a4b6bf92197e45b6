"""Text analysis: tokens, terms, passages, trigrams, dates, and what a query asks for beyond its words."""
