"""What a memory does beyond search: reinforce, report near-duplicates, redact secrets."""
