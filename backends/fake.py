"""A fake engine for daemon tests: bytes are tokens, and what the prompt asks for is what happens.

The last line of the prompt is a script: `say TEXT` answers TEXT, `count N` counts to N, `forever` never ends, `die`
kills the process, `fault` raises, `hang` never returns from a step. Any other line is echoed.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..core.errors import LoadFailed
from ..core.events import FinishReason
from ..core.types import LoadSpec
from .protocol import EmbedInput, EngineInfo, EngineRequest, Picture, PicturePart, StepOutput, Vision

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_END = 256
_DIMENSIONS = 8


class ByteTokenizer:
    """Each byte is a token."""

    bos_text = ""
    eos_text = "<end>"
    specials = frozenset({"<end>"})
    num_vocab = _END + 1
    special_tokens = {"<end>": _END}

    def encode(self, text: str, *, parse_special: bool) -> list[int]:
        """UTF-8 bytes; the text of the end token is one token when special texts count."""
        if not parse_special:
            return list(text.encode())
        pieces = [list(piece.encode()) for piece in text.split(self.eos_text)]
        return [token for index, piece in enumerate(pieces) for token in ([_END] if index else []) + piece]

    def prefix(self) -> list[int]:
        """Nothing stands in front."""
        return []

    def piece(self, token: int) -> bytes:
        """The byte itself."""
        return b"" if token == _END else bytes([token])

    def special_text(self, token: int) -> str:
        """The end token's text."""
        return self.eos_text if token == _END else ""

    def whole(self, tokens: Sequence[int]) -> list[int]:
        """The text itself, or the end token where there is none."""
        return list(tokens) or [_END]

    def pair(self, query: Sequence[int], document: Sequence[int]) -> list[int]:
        """Both with the end token between."""
        return [*query, _END, *document]

    def vocabulary(self) -> tuple[list[bytes], list[int]]:
        """All bytes and the end."""
        return [self.piece(token) for token in range(_END + 1)], [_END]


class FakeVision:
    """An image is as long as its file, and stands in the prompt between two spaces."""

    def read(self, data: bytes) -> Picture:
        """One part."""
        stand_ins = [-1 - byte for byte in data]
        return Picture([[ord(" ")], PicturePart(stand_ins, len(data), None), [ord(" ")]])


class FakeEngine:
    """Runs scripts in place of a model. A window of 13 is refused, for tests of loads that fail.

    A text's vector counts its bytes by their remainder of 8.
    """

    def __init__(self, spec: LoadSpec, on_progress: Callable[[float], None]) -> None:
        on_progress(1.0)
        options = spec.options
        if options.num_ctx == 13:
            raise LoadFailed("the fake engine refuses a window of 13")
        self.tokenizer = ByteTokenizer()
        window = options.num_ctx or 4096
        self.info = EngineInfo(window, options.num_parallel or 4, 1 << 20, 0, None, embed_window=window)
        self._waiting: list[EngineRequest] = []
        self._running: dict[int, tuple[EngineRequest, Iterator[int], int]] = {}

    @property
    def has_work(self) -> bool:
        """Whether anything runs or waits."""
        return bool(self._running or self._waiting)

    def add(self, request: EngineRequest) -> None:
        """Take a script in."""
        self._waiting.append(request)

    def open_projector(self, path: str) -> Vision:
        """Each byte of an image stands for itself."""
        return FakeVision()

    def abort(self, request_id: int) -> None:
        """Drop a script."""
        self._waiting = [request for request in self._waiting if request.id != request_id]
        self._running.pop(request_id, None)

    def step(self) -> list[StepOutput]:
        """One byte of every script."""
        while self._waiting and len(self._running) < self.info.num_parallel:
            request = self._waiting.pop(0)
            self._running[request.id] = (request, _script(request), 0)
        return [self._advance(request_id) for request_id in list(self._running)]

    def embed(self, inputs: Sequence[EmbedInput]) -> Iterator[list[npt.NDArray[np.float32]]]:
        """Counts of remainders, a text at a time."""
        import numpy as np  # here: scripts need none

        for item in inputs:
            found = np.array(item.tokens) % _DIMENSIONS
            yield [np.bincount(found, minlength=_DIMENSIONS).astype(np.float32)]

    def close(self) -> None:
        """Nothing to free."""

    def _advance(self, request_id: int) -> StepOutput:
        request, script, num_tokens = self._running[request_id]
        prompt = _prompt_logprobs(request) if not num_tokens else ()
        if num_tokens >= request.max_tokens:
            del self._running[request_id]
            return StepOutput(request_id, None, FinishReason.LENGTH, prompt=prompt)
        may_end = num_tokens >= request.sampling.min_tokens and not request.sampling.ignore_eos
        token = _allowed(request, next(script, _END if may_end else ord(".")))
        self._running[request_id] = (request, script, num_tokens + 1)
        finish = FinishReason.STOP if token == _END else None
        if finish is None and num_tokens + 1 >= request.max_tokens:
            finish = FinishReason.LENGTH
        if finish:
            del self._running[request_id]
        return StepOutput(request_id, token, finish, token == _END, -0.5, ((token, -0.5),), prompt=prompt)


def _prompt_logprobs(request: EngineRequest) -> tuple[tuple[float, tuple[tuple[int, float], ...]], ...]:
    return tuple((-0.25, ((token, -0.25),)) for token in request.tokens[1:]) if request.prompt_logprobs else ()


def _allowed(request: EngineRequest, token: int) -> int:
    """The token of the script, or where a constraint forbids it, the first that is allowed."""
    if request.constraint is None:
        return token
    import numpy as np  # here: scripts without constraints need none

    logits = np.zeros(_END + 1, np.float32)
    logits[token] = 1.0
    request.constraint.restrict(logits)
    chosen = int(logits.argmax())
    request.constraint.accept(chosen)
    return chosen


def _script(request: EngineRequest) -> Iterator[int]:
    text = bytes(token for token in request.tokens if 0 <= token < _END).decode("utf-8", "replace")
    line = text.strip().rsplit("\n", 1)[-1]
    verb, _, rest = line.partition(" ")
    if verb == "die":
        os._exit(9)
    if verb == "fault":
        raise RuntimeError("the script asked for a fault")
    if verb == "hang":
        threading.Event().wait()
    if verb == "forever":
        # A step of a real engine takes milliseconds; without a pause the test machine would drown in events.
        pause = threading.Event()
        return (ord(".") for _ in itertools.count() if not pause.wait(0.002))
    if verb == "count":
        return iter(" ".join(str(number) for number in range(1, int(rest) + 1)).encode())
    return iter((rest if verb == "say" else line).encode())
