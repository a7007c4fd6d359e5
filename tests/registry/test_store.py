"""The store as its users see it: names, replacement, copies, deletion, what survives crashes."""

from __future__ import annotations

import os

import pytest
from corral.core.errors import ModelNotFound, StoreFailed
from corral.core.names import parse_name
from corral.registry import gc, manifests
from corral.registry.manifests import Descriptor, Manifest
from corral.registry.store import Store


def make_manifest(store: Store, *layers: bytes) -> Manifest:
    config = b"{}"
    descriptors = [Descriptor(manifests.MODEL_TYPE, store.blobs.add_bytes(data), len(data)) for data in layers]
    return Manifest(
        2,
        manifests.MANIFEST_TYPE,
        Descriptor(manifests.CONFIG_TYPE, store.blobs.add_bytes(config), len(config)),
        tuple(descriptors),
    )


def test_model_is_found_in_any_case_and_shown_as_installed(store: Store) -> None:
    store.put(parse_name("Case/Model:Q8_A"), make_manifest(store, b"w"))
    found = store.get(parse_name("cASE/mODEL:q8_a"), "x")
    assert found.name.short == "Case/Model:Q8_A"
    assert found.manifest.size_bytes == 3


def test_names_that_differ_in_case_do_not_coexist(store: Store) -> None:
    store.put(parse_name("Model"), make_manifest(store, b"one"))
    store.put(parse_name("MODEL"), make_manifest(store, b"two"))
    assert [model.name.short for model in store.list_models()] == ["Model:latest"]
    assert store.get(parse_name("model"), "model").manifest.layers[0].size == 3


def test_unknown_model_is_an_error_that_quotes_the_caller(store: Store) -> None:
    with pytest.raises(ModelNotFound, match="model 'nosuch' not found"):
        store.get(parse_name("nosuch"), "nosuch")


def test_replacing_removes_layers_nobody_needs_and_keeps_shared_ones(store: Store) -> None:
    old = make_manifest(store, b"shared", b"old")
    store.put(parse_name("a"), old)
    removed = store.put(parse_name("a"), make_manifest(store, b"shared", b"new"))
    assert removed == [old.layers[1].digest]
    assert store.blobs.read(old.layers[0].digest) == b"shared"


def test_deleting_one_of_two_names_keeps_the_layers(store: Store) -> None:
    manifest = make_manifest(store, b"w")
    store.put(parse_name("a"), manifest)
    store.copy(store.get(parse_name("a"), "a"), parse_name("b"))
    assert store.get(parse_name("a"), "a").digest == store.get(parse_name("b"), "b").digest
    store.delete(parse_name("a"), "a")
    assert store.blobs.has(manifest.layers[0].digest)
    store.delete(parse_name("b"), "b")
    assert not store.blobs.has(manifest.layers[0].digest)
    assert not list(store.layout.manifests.iterdir())


def test_copy_onto_itself_changes_nothing(store: Store) -> None:
    store.put(parse_name("a"), make_manifest(store, b"w"))
    before = store.get(parse_name("a"), "a")
    store.copy(before, parse_name("A"))
    assert store.list_models() == [before]


def test_pinned_blob_survives_the_deletion_of_its_model(store: Store) -> None:
    manifest = make_manifest(store, b"w")
    store.put(parse_name("a"), manifest)
    with store.pinned([manifest.layers[0].digest]):
        store.delete(parse_name("a"), "a")
        assert store.blobs.has(manifest.layers[0].digest)


def test_manifest_with_an_absent_layer_is_refused(store: Store) -> None:
    manifest = make_manifest(store, b"w")
    store.blobs.remove(manifest.layers[0].digest)
    with pytest.raises(StoreFailed, match="not in the store"):
        store.put(parse_name("a"), manifest)
    assert store.list_models() == []


def test_second_daemon_on_one_folder_is_refused(store: Store) -> None:
    with pytest.raises(StoreFailed, match="another Corral daemon"):
        Store(store.layout.root).open()


def test_opening_clears_what_a_crash_left_and_keeps_models(store: Store) -> None:
    store.put(parse_name("a"), make_manifest(store, b"w"))
    (store.layout.tmp / "half").write_bytes(b"half a blob")
    store.close()
    again = Store(store.layout.root)
    again.open()
    assert not list(again.layout.tmp.iterdir())
    assert [model.name.short for model in again.list_models()] == ["a:latest"]
    again.close()


def test_opening_sweeps_old_orphans_and_keeps_young_ones(store: Store) -> None:
    digest = store.blobs.add_bytes(b"an upload whose create never came")
    now = store.layout.blob(digest).stat().st_ctime
    assert gc.stale(store.blobs, now + 60) == []
    assert gc.stale(store.blobs, now + gc.MIN_AGE_SECONDS + 60) == [digest]


def test_damaged_manifest_is_passed_over_and_stops_every_sweep(store: Store) -> None:
    manifest = make_manifest(store, b"needed by the damaged one")
    store.put(parse_name("good"), manifest)
    store.put(parse_name("bad"), manifest)
    store.layout.manifest(parse_name("bad")).write_text('{"schemaVersion": 2, "con')
    assert [model.name.short for model in store.list_models()] == ["good:latest"]
    store.delete(parse_name("good"), "good")
    assert store.blobs.has(manifest.layers[0].digest)


def test_models_are_listed_newest_first(store: Store) -> None:
    for name, seconds in (("old", 1_000), ("new", 3_000), ("middle", 2_000)):
        store.put(parse_name(name), make_manifest(store, name.encode()))
        os.utime(store.layout.manifest(parse_name(name)), (seconds, seconds))
    assert [model.name.model for model in store.list_models()] == ["new", "middle", "old"]
