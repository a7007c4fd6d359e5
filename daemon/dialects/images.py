"""Images in requests: base64 text or data: URLs to bytes, checked to be of a kind that models take."""

from __future__ import annotations

import base64
import binascii
import re

from ...core.errors import InvalidRequest
from ...core.types import Image

_DATA_URL = re.compile(r"data:image/(?:jpeg|jpg|png|webp|gif);base64,", re.IGNORECASE)
_SIGNATURES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8")


def read_image(text: str, where: str) -> Image:
    """An image of base64 text. Errors: InvalidRequest names the place."""
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest(f"{where} is not base64") from None
    if not data.startswith(_SIGNATURES) and not (data[:4] == b"RIFF" and data[8:12] == b"WEBP"):
        raise InvalidRequest(f"{where} is not a JPEG, PNG, GIF or WebP image")
    return Image(data)


def read_image_url(url: str, where: str) -> Image:
    """An image of a data: URL. Nothing is fetched. Errors: InvalidRequest names the place."""
    head = _DATA_URL.match(url)
    if head is None:
        raise InvalidRequest(f"{where} must be a data: URL of a JPEG, PNG, GIF or WebP image; nothing is downloaded")
    return read_image(url[head.end() :], where)
