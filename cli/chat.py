"""The state of a chat and the requests made from it. No terminal here."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from .answer import Lines
from .client import Client


class ChatSession:
    """One conversation with one model. `messages` holds the turns since the start or the last `clear`."""

    def __init__(
        self,
        client: Client,
        model: str,
        *,
        system: str | None = None,
        options: dict[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        """`fields` are sent with each request as they are: format, think, keep_alive."""
        self._client = client
        self.model = model
        self.system = system
        self.options = dict(options or {})
        self.fields = fields
        self.messages: list[dict[str, Any]] = []

    def load(self, model: str) -> None:
        """Switch to a model and have it loaded, with an empty conversation. On an error the old one stays.

        Errors: Failure, Unreachable.
        """
        self._client.request("POST", "/api/chat", {**self._body(), "model": model, "messages": [], "stream": False})
        if model != self.model:
            self.model, self.system = model, None
        self.clear()

    def ask(self, text: str) -> Lines:
        """The streamed answer to the conversation with one more message of the user."""
        messages = [*self._system_messages(), *self.messages, {"role": "user", "content": text}]
        return self._client.stream("/api/chat", {**self._body(), "messages": messages})

    def remember(self, text: str, answer: str, thinking: str = "") -> None:
        """Add a turn to the conversation. One without any answer is left out, so that it can be asked again."""
        if answer or thinking:
            reply = {"role": "assistant", "content": answer, **({"thinking": thinking} if thinking else {})}
            self.messages += [{"role": "user", "content": text}, reply]

    def clear(self) -> None:
        """Forget the conversation; system text and options stay."""
        self.messages = []

    def show(self) -> dict[str, Any]:
        """The daemon's description of the model. Errors: Failure, Unreachable."""
        shown: dict[str, Any] = self._client.request("POST", "/api/show", {"model": self.model})
        return shown

    def save(self, name: str) -> None:
        """Make a model of this one with the chat's system text, options and conversation.

        Errors: Failure, Unreachable.
        """
        body: dict[str, Any] = {"model": name, "from": self.model}
        if self.system is not None:
            body["system"] = self.system
        if self.options:
            body["parameters"] = self.options
        if self.messages:
            # New messages take the place of the model's own, which stand before them in this chat.
            body["messages"] = [*(self.show().get("messages") or []), *self.messages]
        with closing(self._client.stream("/api/create", body)) as lines:
            for _ in lines:
                pass

    def _body(self) -> dict[str, Any]:
        return {"model": self.model, **self.fields, **({"options": self.options} if self.options else {})}

    def _system_messages(self) -> list[dict[str, Any]]:
        # A first message of the system replaces the model's system text, also when it is empty.
        return [] if self.system is None else [{"role": "system", "content": self.system}]
