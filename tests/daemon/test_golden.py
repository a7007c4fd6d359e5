"""Every dialect's golden cases: a body makes the recorded call, and events print the recorded answer and stream."""

from __future__ import annotations

import pytest
from corral.daemon.dialects.endpoint import Endpoint
from dialect_cases import Case, load_cases, print_answer, summarize


@pytest.mark.parametrize(("endpoint", "case"), load_cases("call"))
def test_body_makes_the_golden_call(endpoint: Endpoint, case: Case) -> None:
    assert summarize(endpoint.read(case.body)) == case.call


@pytest.mark.parametrize(("endpoint", "case"), load_cases("events"))
def test_events_print_the_golden_answer(endpoint: Endpoint, case: Case) -> None:
    whole, stream = print_answer(endpoint, case)
    assert whole == case.whole
    assert stream == (case.stream or [])
