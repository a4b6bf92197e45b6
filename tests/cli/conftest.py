"""Fixtures of the command line."""

from __future__ import annotations

from command_line import beir, clean_place, cli, command, notes, process, trec, trees, vectors  # noqa: F401
