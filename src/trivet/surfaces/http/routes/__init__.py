"""Which routes are there? One file a noun."""
