"""Engines and the processes they run in: the engine protocol, the runner around one, the daemon's handle on it."""
