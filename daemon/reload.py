"""Whether a request can be served by what is loaded: pure comparisons of load options."""

from __future__ import annotations

import msgspec

from ..core.types import LoadOptions
from ..core.wire import Loaded

# Options that decide where the weights lie: these are worth another load. Other load options are not.
_PLACING = ("num_gpu", "main_gpu", "tensor_split")


def reload_reason(loaded: Loaded, have: LoadOptions, want: LoadOptions) -> str | None:
    """Why a request needs another load, in words for its answer, or None when it does not.

    A smaller window is served by a larger one that is loaded.
    """
    if want.num_ctx is not None and want.num_ctx > loaded.num_ctx:
        return f"num_ctx {loaded.num_ctx} -> {want.num_ctx}"
    for name in _PLACING:
        old, new = getattr(have, name), getattr(want, name)
        if new is not None and new != old:
            return f"{name} {'default' if old is None else old} -> {new}"
    return None


def ignored_options(have: LoadOptions, want: LoadOptions) -> list[str]:
    """A warning for each load option that a request asks for, and that stays as it was when the model was loaded."""
    return [
        f"{name} {new} was ignored: the model is loaded with {'the default' if old is None else old}; stop it first"
        for name, new in msgspec.structs.asdict(want).items()
        if name != "num_ctx" and new is not None and (old := getattr(have, name)) != new
    ]
