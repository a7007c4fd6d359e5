"""The llama.cpp engine: continuous batching on llama-cpp-python's low-level API."""
