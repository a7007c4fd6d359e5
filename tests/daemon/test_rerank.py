"""Rerank: bodies of both forms, scores of rank heads and of vectors, and the whole path on the fake engine."""

from __future__ import annotations

from typing import Any

import pytest
from corral.core.errors import InvalidRequest
from corral.daemon.dialects.rerank import ENDPOINTS
from daemons import RunningDaemon


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"query": "q"}, "documents is required"),
        ({"query": "q", "documents": ["a"], "texts": ["a"]}, "documents is required"),
        ({"query": "q", "documents": []}, "documents must hold from 1 to"),
        ({"query": "q", "documents": "a"}, "documents must be a list, not 'a'"),
        ({"query": "q", "documents": [5]}, "documents[0] must be a string or an object, not 5"),
        ({"query": "q", "documents": [{"title": "a"}]}, "documents[0]"),
        ({"documents": ["a"]}, "query is required"),
        ({"query": "", "documents": ["a"]}, "query is required"),
        ({"query": "q", "documents": ["a"], "top_n": 0}, "top_n must be at least 1, not 0"),
        ({"query": "q", "texts": ["a"], "truncation_direction": "left"}, "truncation_direction must be right"),
    ],
)
def test_error_names_what_is_wrong(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        ENDPOINTS[0].read({"model": "m", **fields})
    assert message in refused.value.message


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank", "/api/rerank"])
async def test_documents_come_best_first(daemon: RunningDaemon, path: str) -> None:
    # The fake engine's vectors count bytes by their remainder of 8.
    body = {"model": "fake", "query": "aa", "documents": ["b", "ab", {"text": "aaa"}], "return_documents": True}
    status, answer = await daemon.post(path, body)
    assert status == 200
    assert answer["model"] == "fake"
    assert [row["index"] for row in answer["results"]] == [2, 1, 0]
    scores = [row["relevance_score"] for row in answer["results"]]
    assert scores == pytest.approx([1, 2**-0.5, 0], abs=1e-6)
    assert answer["results"][0]["document"] == {"text": "aaa"}
    assert answer["usage"]["total_tokens"] == len("aa" + "b" + "ab" + "aaa")


async def test_form_of_tei_needs_no_model(daemon: RunningDaemon) -> None:
    status, answer = await daemon.post("/rerank", {"query": "aa", "texts": ["b", "aaa"]})
    assert status == 200
    assert [row["index"] for row in answer] == [1, 0]
    assert answer[0]["score"] == pytest.approx(1)


async def test_errors_have_the_form_of_the_path(daemon: RunningDaemon) -> None:
    _, answer = await daemon.post("/v1/rerank", {"model": "fake", "query": "q"})
    assert answer["error"]["type"] == "invalid_request_error"
    _, answer = await daemon.post("/api/rerank", {"model": "fake", "query": "q"})
    assert "documents is required" in answer["error"]
