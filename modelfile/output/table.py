"""The table of call formats, and which of them a chat template's text tells of."""

from __future__ import annotations

from .bare_calls import LLAMA, LLAMA_PLAIN
from .call_format import CallFormat
from .cohere import COMMAND_R, COMMAND_R7B
from .harmony import HARMONY
from .named_calls import DEEPSEEK_R1, DEEPSEEK_V31, FUNCTIONARY, FUNCTIONARY_TAG, KIMI, MISTRAL, MISTRAL_NAMED
from .tagged_calls import FUNCTOOLS, GLM, GRANITE, HERMES, PHI, QWEN_CODER

# The signs of a row may be some of another's: those with more or rarer signs stand first.
FORMATS: tuple[CallFormat, ...] = (
    HARMONY,
    DEEPSEEK_R1,
    DEEPSEEK_V31,
    KIMI,
    COMMAND_R7B,
    COMMAND_R,
    MISTRAL_NAMED,
    MISTRAL,
    QWEN_CODER,
    GLM,
    FUNCTIONARY_TAG,
    PHI,
    GRANITE,
    HERMES,
    LLAMA,
    FUNCTOOLS,
    FUNCTIONARY,
    LLAMA_PLAIN,
)


def find_format(text: str) -> CallFormat | None:
    """The first row all of whose signs stand in the text."""
    return next((row for row in FORMATS if all(sign in text for sign in row.signs)), None)
