"""Who else does this, and how well, on the same work in the same run? One file an engine, one verb a measurement."""
