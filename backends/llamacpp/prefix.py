"""Which slots hold which beginnings of prompts: whole blocks of tokens, found by chained hashes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence

# llama.cpp's attention on the CPU takes another path for 64 tokens of a sequence or more at once, and rounds
# differently there. Prompts are evaluated in blocks of this many, and hashed in the same, so that a prompt's tokens
# come out the same whether the part before them was in the cache or not.
BLOCK = 64


def root_key(salt: Hashable) -> int:
    """The key before the first block. Another `salt` gives other keys throughout."""
    return hash((salt,))


def chain_key(parent: int, block: Sequence[int]) -> int:
    """The key of a block, which depends on all tokens before it through the key of the block before.

    The chaining is that of vLLM's automatic prefix caching. Keys may collide: who finds one compares the tokens too.
    """
    return hash((parent, tuple(block)))


def block_keys(tokens: Sequence[int], salt: Hashable) -> list[int]:
    """A key for each whole block of a prompt."""
    keys = [root_key(salt)]
    for start in range(0, len(tokens) // BLOCK * BLOCK, BLOCK):
        keys.append(chain_key(keys[-1], tokens[start : start + BLOCK]))
    return keys[1:]


class PrefixIndex:
    """Slots by the keys of the blocks that they hold."""

    def __init__(self) -> None:
        self._holders: defaultdict[int, set[int]] = defaultdict(set)

    def add(self, slot: int, keys: Collection[int]) -> None:
        """Note that a slot holds blocks."""
        for key in keys:
            self._holders[key].add(slot)

    def discard(self, slot: int, keys: Collection[int]) -> None:
        """Note that a slot holds them no more."""
        for key in keys:
            self._holders[key].discard(slot)
            if not self._holders[key]:
                del self._holders[key]

    def find(self, keys: Sequence[int]) -> tuple[int, frozenset[int]]:
        """How many blocks of a prompt are held by any slot, and by which."""
        for number in range(len(keys), 0, -1):
            if holders := self._holders.get(keys[number - 1]):
                return number, frozenset(holders)
        return 0, frozenset()
