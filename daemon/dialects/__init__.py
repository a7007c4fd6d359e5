"""The wire forms of inference: name -> "module:attribute" of a tuple of Endpoints, gathered when the app is built."""

DIALECTS: dict[str, str] = {
    "ollama": "corral.daemon.dialects.ollama:ENDPOINTS",
    "openai": "corral.daemon.dialects.openai:ENDPOINTS",
}
