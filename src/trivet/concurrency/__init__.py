"""Threads of an open store, and the deadline of a request."""
