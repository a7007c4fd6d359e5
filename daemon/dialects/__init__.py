"""The wire forms of inference: name -> "module:attribute" of a tuple of Endpoints, gathered when the app is built."""

DIALECTS: dict[str, str] = {
    "ollama": "corral.daemon.dialects.ollama:ENDPOINTS",
    "openai": "corral.daemon.dialects.openai:ENDPOINTS",
    "responses": "corral.daemon.dialects.responses:ENDPOINTS",
    "anthropic": "corral.daemon.dialects.anthropic:ENDPOINTS",
    "tgi": "corral.daemon.dialects.tgi:ENDPOINTS",
    "llamacpp": "corral.daemon.dialects.llamacpp:ENDPOINTS",
    "tokens": "corral.daemon.dialects.tokens:ENDPOINTS",
    "rerank": "corral.daemon.dialects.rerank:ENDPOINTS",
}
