"""The store of models on disk and the ways bytes get into it. Knows digests and manifests, not what is in a model."""
