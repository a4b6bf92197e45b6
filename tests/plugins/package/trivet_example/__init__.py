"""A leg and a reranker for trivet, from a package of its own."""
