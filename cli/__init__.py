"""The command line: a thin client of the daemon. Imports corral.core only; only `serve` loads the daemon, on use."""
