"""The shipped Go templates, a row for each family of Jinja templates that models carry. A model gets the file as it is,
with trimmed.gotmpl behind it where it calls that."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """`files` are the template and variants of it, tried in order; `signs` stand in every Jinja template of the family.

    `stop` is for families that mark turns by plain text: their models may go on with the user's next turn.
    """

    files: tuple[str, ...]
    signs: tuple[str, ...]
    stop: tuple[str, ...] = ()


TEMPLATES: dict[str, Row] = {
    "chatml": Row(("chatml",), ("<|im_start|>", "<|im_end|>")),
    "qwen": Row(("qwen", "qwen-2.5"), ("<|im_start|>", "<|im_end|>", "You are ")),
    "llama2-chat": Row(("llama2-chat",), ("[INST]", "<<SYS>>")),
    "llama3-instruct": Row(("llama3-instruct",), ("<|start_header_id|>", "<|eot_id|>")),
    "mistral-instruct": Row(
        ("mistral-instruct", "mistral-instruct-v0.2", "mistral-instruct-v0.1"), ("[INST]", "[/INST]")
    ),
    "gemma-instruct": Row(("gemma-instruct",), ("<start_of_turn>", "<end_of_turn>")),
    "phi-3": Row(("phi-3", "phi-3-strict"), ("<|end|>",)),
    "command-r": Row(("command-r",), ("<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>")),
    "granite-instruct": Row(("granite-instruct",), ("Question:", "Answer:")),
    "zephyr": Row(("zephyr",), ("<|assistant|>",)),
    "vicuna": Row(("vicuna",), ("USER:", "ASSISTANT:"), ("USER:",)),
    "alpaca": Row(("alpaca",), ("### Instruction:", "### Response:"), ("### Instruction:",)),
    "deepseek-coder": Row(("deepseek-coder",), ("### Instruction:", "<|EOT|>")),
    "deepseek-chat": Row(("deepseek-chat",), ("User: ", "Assistant:")),
    "deepseek-r1": Row(("deepseek-r1", "deepseek-r1-plain"), ("<｜User｜>", "<｜Assistant｜>")),
}
