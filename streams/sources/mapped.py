"""JSON records of any form, by a mapping."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from tailbudget.streams.sources.base import Rules
from tailbudget.streams.sources.translated import Translated


class MappedDecoder(Translated):
    """Decodes records of a source with a mapping; see the package docstring for its promises."""

    name = "native"

    @classmethod
    def altered(cls, rules: Rules) -> Rules:
        """Return the rules as they are: the mapping names the service, or the source does."""
        return rules

    def translate(self, text: bytes) -> Iterable[bytes]:
        """Return the native record; what is no object is returned as it is, to be refused."""
        try:
            record = orjson.loads(text)
        except orjson.JSONDecodeError:
            return (text,)
        if not isinstance(record, dict) or self.rules.mapping is None:
            return (text,)
        return (orjson.dumps(self.rules.mapping.record(record), default=str),)
