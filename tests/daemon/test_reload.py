"""When a request needs another load, and what it hears when it does not."""

from __future__ import annotations

import pytest
from corral.core.types import LoadOptions
from corral.core.wire import Loaded
from corral.daemon.reload import ignored_options, reload_reason

LOADED = Loaded(num_ctx=4096, num_parallel=4, size_bytes=0, size_vram_bytes=0)


@pytest.mark.parametrize(
    "want", [LoadOptions(), LoadOptions(num_ctx=512), LoadOptions(num_ctx=4096), LoadOptions(num_batch=64)]
)
def test_nothing_is_loaded_again_for_less(want: LoadOptions) -> None:
    assert reload_reason(LOADED, LoadOptions(), want) is None


def test_larger_window_is_worth_a_load() -> None:
    assert reload_reason(LOADED, LoadOptions(), LoadOptions(num_ctx=8192)) == "num_ctx 4096 -> 8192"


def test_other_placement_is_worth_a_load() -> None:
    assert reload_reason(LOADED, LoadOptions(num_gpu=10), LoadOptions(num_gpu=0)) == "num_gpu 10 -> 0"
    assert reload_reason(LOADED, LoadOptions(num_gpu=10), LoadOptions()) is None


def test_options_that_stay_are_told() -> None:
    warnings = ignored_options(LoadOptions(num_thread=2), LoadOptions(num_thread=2, num_batch=64, num_ctx=512))
    assert len(warnings) == 1
    assert warnings[0].startswith("num_batch 64 was ignored")
