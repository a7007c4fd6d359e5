"""The OpenAPI page: true to the code, and no request made from it is a fault of the daemon's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import schemathesis
import yaml
from corral.daemon.app import list_operations
from corral.daemon.openapi import describe_api
from daemons import RunningDaemon
from hypothesis import HealthCheck, given, settings
from threads import serve_in_thread

PAGE = Path(__file__).parent.parent.parent / "docs" / "openapi.yaml"


def test_page_in_docs_is_that_of_the_code() -> None:
    made = "run .venv/bin/python -m corral.daemon.openapi > docs/openapi.yaml"
    assert yaml.safe_load(PAGE.read_text()) == describe_api(list_operations()), made


def test_every_operation_has_a_name_of_its_own_and_a_summary() -> None:
    operations = [
        operation for path in describe_api(list_operations())["paths"].values() for operation in path.values()
    ]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    assert all(operation["summary"] for operation in operations)


async def test_page_is_served(daemon: RunningDaemon) -> None:
    status, page = await daemon.call("GET", "/openapi.json")
    assert status == 200
    assert page == yaml.safe_load(PAGE.read_text())


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The schema of a daemon that runs."""
    with serve_in_thread(tmp_path_factory.mktemp("api")) as url:
        yield schemathesis.openapi.from_url(f"{url}/openapi.json")


def test_no_request_is_a_fault_of_the_daemons(api: Any) -> None:
    operations = [found.ok() for found in api.get_all_operations()]
    assert len(operations) > 40
    for operation in operations:
        _try(operation)


def _try(operation: Any) -> None:
    @given(case=operation.as_strategy())
    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    def run(case: Any) -> None:
        if isinstance(case.body, dict) and "model" in case.body and len(str(case.body["model"])) % 2:
            # Names made up at random get no further than a 404.
            case.body["model"] = "fake"
        response = case.call(timeout=30)
        assert response.status_code < 500, f"{operation.label}: {case.body} gives {response.text}"

    run()
