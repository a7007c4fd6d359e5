"""Corral: a local model manager. The folders below are its layers; docs/ARCHITECTURE.md says what each owns."""

__version__ = "0.1.0"
