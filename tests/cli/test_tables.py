"""Tables, sizes, ages and durations as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from corral.cli.description import describe
from corral.cli.formats import format_duration, format_size, format_span, format_until, format_when
from corral.cli.tables import installed_table, loaded_table

NOW = datetime(2026, 8, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [(0, "0 B"), (986, "986 B"), (1000, "1 KB"), (1234567, "1.2 MB"), (92_000_000, "92 MB"), (4_700_000_000, "4.7 GB")],
)
def test_size_uses_decimal_units(num_bytes: int, text: str) -> None:
    assert format_size(num_bytes) == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (750, "750ns"),
        (12_500_000, "12.5ms"),
        (1_234_567_891, "1.234567891s"),
        (62_500_000_000, "1m2.5s"),
        (3_600_000_000_000, "1h0m0s"),
        (1_050_000, "1.05ms"),
    ],
)
def test_duration_reads_as_go_prints_it(nanoseconds: int, text: str) -> None:
    assert format_duration(nanoseconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "Less than a second"),
        (1, "1 second"),
        (59, "59 seconds"),
        (61, "About a minute"),
        (299, "4 minutes"),
        (3700, "About an hour"),
        (86400 * 3, "3 days"),
        (86400 * 20, "2 weeks"),
        (86400 * 100, "3 months"),
        (86400 * 800, "2 years"),
    ],
)
def test_span_uses_its_largest_unit(seconds: float, text: str) -> None:
    assert format_span(seconds) == text


def test_times_are_relative_to_now() -> None:
    assert format_when("2026-08-01T11:00:00.123456789Z", NOW) == "59 minutes ago"
    assert format_until("2026-08-01T12:04:30.5Z", NOW) == "4 minutes from now"
    assert format_until("2318-01-01T00:00:00Z", NOW) == "Forever"
    assert format_until("2026-08-01T11:59:59Z", NOW) == "Stopping..."


def test_installed_models_are_aligned() -> None:
    models = [
        {
            "name": "smollm2:latest",
            "digest": "a" * 64,
            "size": 91_700_000,
            "modified_at": (NOW - timedelta(days=3)).isoformat(),
        },
        {"name": "m:1", "digest": "b" * 64, "size": 5, "modified_at": (NOW - timedelta(hours=2)).isoformat()},
    ]
    assert installed_table(models, NOW).splitlines() == [
        "NAME              ID              SIZE     MODIFIED",
        "smollm2:latest    aaaaaaaaaaaa    91 MB    3 days ago",
        "m:1               bbbbbbbbbbbb    5 B      2 hours ago",
    ]


@pytest.mark.parametrize(
    ("size_vram", "text"), [(0, "100% CPU"), (1000, "100% GPU"), (520, "48%/52% CPU/GPU"), (2000, "Unknown")]
)
def test_loaded_model_says_where_it_runs(size_vram: int, text: str) -> None:
    model = {
        "name": "m:latest",
        "digest": "c" * 64,
        "size": 1000,
        "size_vram": size_vram,
        "context_length": 4096,
        "expires_at": "2026-08-01T12:05:00Z",
    }
    header, row = loaded_table([model], NOW).splitlines()
    assert header.split() == ["NAME", "ID", "SIZE", "PROCESSOR", "CONTEXT", "UNTIL"]
    assert [cell.strip() for cell in row.split("    ") if cell.strip()] == [
        "m:latest",
        "cccccccccccc",
        "1 KB",
        text,
        "4096",
        "5 minutes from now",
    ]


SHOWN = {
    "details": {"parameter_size": "134.52M", "quantization_level": "Q4_1", "family": "llama"},
    "model_info": {
        "general.architecture": "llama",
        "llama.context_length": 2048,
        "llama.embedding_length": 576,
        "tokenizer.ggml.tokens": None,
    },
    "capabilities": ["completion"],
    "parameters": 'stop                           "<|im_end|>"\ntemperature                    0.5',
    "system": "You are brief.\n",
    "license": "Apache License\nVersion 2.0\nmore\n",
    "tensors": [{"name": "token_embd.weight", "type": "Q8_0", "shape": [576, 49152]}],
}


def test_description_has_a_section_for_each_part() -> None:
    assert describe(SHOWN) == (
        "  Model\n"
        "    architecture        llama\n"
        "    parameters          134.52M\n"
        "    context length      2048\n"
        "    embedding length    576\n"
        "    quantization        Q4_1\n"
        "\n  Capabilities\n    completion\n"
        '\n  Parameters\n    stop           "<|im_end|>"\n    temperature    0.5\n'
        "\n  System\n    You are brief.\n"
        "\n  License\n    Apache License\n    Version 2.0\n    ...\n"
    )


def test_description_adds_metadata_and_tensors_when_verbose() -> None:
    text = describe(SHOWN, verbose=True)
    assert ["tokenizer.ggml.tokens", "-"] in [line.split() for line in text.splitlines()]
    assert "    token_embd.weight    Q8_0    [576, 49152]\n" in text
