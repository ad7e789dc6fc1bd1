"""From the ids of other tools to chunk keys."""

import re

# As `pipeline.types.make_key` writes it: "07" is no chunk index, and 18 digits fit a bigint.
_CHUNK_KEY = re.compile(r".+:(?:0|[1-9][0-9]{0,17})", re.DOTALL)


def is_chunk_key(text: str) -> bool:
    """Tell whether a text has the form of a chunk key: something, a colon, a chunk index."""
    return _CHUNK_KEY.fullmatch(text) is not None


class Ids:
    """Makes chunk keys of ids, and counts those that had no chunk index.

    Most tools judge documents. An id that does not end in a chunk index, as `guide.html` or
    `urn:isbn:0451450523`, stands for chunk 0 of the document of that name; so does every id,
    whatever it ends in, with `all_documents`.
    """

    def __init__(self, *, all_documents: bool = False) -> None:
        self._all_documents = all_documents
        self.documents = 0

    def key(self, name: str) -> str:
        """Return the chunk key that an id stands for."""
        key = self.uncounted(name)
        self.documents += key != name
        return key

    def uncounted(self, name: str) -> str:
        """Return the same, for what is only shown."""
        return name if not self._all_documents and is_chunk_key(name) else f"{name}:0"

    def notices(self) -> list[str]:
        """Say what was made of ids without a chunk index; empty where there was none."""
        if not self.documents:
            return []
        what = "taken as document ids" if self._all_documents else "have no chunk index"
        return [f"{self.documents:,} ids {what}: each stands for chunk 0 of its document (id:0)"]
