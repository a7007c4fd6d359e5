"""What a model can do, read from its GGUF header and templates (contract section 7)."""

from __future__ import annotations

import re

from .gguf import GGUF

COMPLETION = "completion"
EMBEDDING = "embedding"
TOOLS = "tools"
INSERT = "insert"
THINKING = "thinking"
VISION = "vision"
RERANK = "rerank"

_RANK_POOLING = 4  # LLAMA_POOLING_TYPE_RANK
_JINJA_TOOLS = re.compile(r"\btools\b")


def find_capabilities(gguf: GGUF, template: str | None, has_projector: bool) -> tuple[str, ...]:
    """Capabilities, in the order that answers list them. `template` is the Modelfile's, before the GGUF's own."""
    if gguf.pooling_type is not None:
        return (EMBEDDING, RERANK) if gguf.pooling_type == _RANK_POOLING else (EMBEDDING,)
    found = [COMPLETION]
    if has_projector:
        found.append(VISION)
    if template is None:
        jinja = gguf.chat_template or ""
        if _JINJA_TOOLS.search(jinja):
            found.append(TOOLS)
        if "enable_thinking" in jinja or "<think>" in jinja:
            found.append(THINKING)
        return tuple(found)
    if ".Tools" in template:
        found.append(TOOLS)
    if ".Suffix" in template:
        found.append(INSERT)
    if ".Thinking" in template:
        found.append(THINKING)
    return tuple(found)
