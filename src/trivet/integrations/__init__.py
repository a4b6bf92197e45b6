"""Adapters for frameworks. Each module translates the interfaces of one framework to calls of an ``Engine``."""
