"""The Modelfile language, and what a model is made of: its template, its GGUF, its capabilities, the making of it."""
