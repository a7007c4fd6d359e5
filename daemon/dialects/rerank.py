"""Documents in the order of how well they answer a query, in the forms of Jina and Cohere, and of TEI.

A model with a rank head reads query and document together. Of any other, the vectors of both are compared.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ...core.durations import parse_keep_alive
from ...core.errors import InvalidRequest
from ...core.options import check_options
from .bodies import Body
from .endpoint import EmbedCall, Endpoint
from .ollama_encoder import encode_error as encode_native_error
from .openai_encoder import encode_error
from .rerank_encoder import RankDetails, RankEncoder

_MAX_DOCUMENTS = 10_000
# Fields of hosted services that would change scores and cannot here.
_IGNORED = ("max_tokens_per_doc", "max_chunks_per_doc", "rank_fields")


class Document(msgspec.Struct, frozen=True):
    """A document as an object."""

    text: str


class RankBody(Body, frozen=True):
    """POST /v1/rerank: `query` and `documents`; or in TEI's form `query` and `texts`."""

    model: str | None = None
    query: str | None = None
    documents: list[str | Document] | None = None
    top_n: Annotated[int, msgspec.Meta(ge=1)] | None = None
    return_documents: bool | None = None
    texts: list[str] | None = None
    return_text: bool | None = None
    raw_scores: bool | None = None
    truncate: bool | None = None
    truncation_direction: str | None = None
    user: str | None = None
    priority: int | None = None
    max_tokens_per_doc: int | None = None
    max_chunks_per_doc: int | None = None
    rank_fields: list[str] | None = None
    keep_alive: Any = None
    options: dict[str, Any] | None = None


def parse_rank(body: RankBody) -> EmbedCall:
    """A body of any rerank endpoint. Errors: InvalidRequest names the field."""
    if (body.documents is None) == (body.texts is None):
        raise InvalidRequest("documents is required: a list of texts, or of objects with text (TEI's form has `texts`)")
    given: list[Any] = (body.texts if body.documents is None else body.documents) or []
    if not 1 <= len(given) <= _MAX_DOCUMENTS:
        raise InvalidRequest(f"documents must hold from 1 to {_MAX_DOCUMENTS} texts, not {len(given)}")
    if not body.query:
        raise InvalidRequest("query is required: the text that documents are compared with")
    if body.truncation_direction not in (None, "right", "Right"):
        raise InvalidRequest("truncation_direction must be right: texts lose their ends")
    is_list = body.documents is None
    options, warnings = check_options(body.options or {})
    ignored = [f"{name} was ignored: this version cannot do this" for name in _IGNORED if getattr(body, name)]
    return EmbedCall(
        # TEI and llama.cpp serve one model, which their clients do not name.
        model=(body.model or "").strip(),
        verb="rerank",
        inputs=tuple(item.text if isinstance(item, Document) else item for item in given),
        query=body.query,
        options=options,
        keep_alive=parse_keep_alive(body.keep_alive),
        truncate=body.truncate is not False,
        warnings=(*warnings, *ignored),
        details=RankDetails(
            is_list=is_list,
            has_text=bool(body.return_text if is_list else body.return_documents),
            is_raw=body.raw_scores is True,
            top_n=body.top_n,
        ),
    )


def _endpoint(path: str, error: Any) -> Endpoint:
    summary = "Documents in the order of how well they answer a query"
    return Endpoint("POST", path, RankBody, parse_rank, RankEncoder, error, summary)


ENDPOINTS = (
    _endpoint("/v1/rerank", encode_error),
    _endpoint("/v2/rerank", encode_error),
    _endpoint("/rerank", encode_error),
    _endpoint("/api/rerank", encode_native_error),
)
