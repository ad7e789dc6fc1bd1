"""Chunks from a JSON Lines file, plain or gzipped, one at a time: our form, or BEIR's."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from pipeline.errors import InputError
from pipeline.golden.readers.ids import Ids
from pipeline.lines import read_lines
from pipeline.text import is_blank
from pipeline.types import make_key, split_key

MAX_CHUNK_INDEX = 2**31 - 1
"""The largest value of PostgreSQL's integer."""

MAX_ID_BYTES = 2000
"""An entry of a PostgreSQL index holds 2,704 bytes at most, document id and index together."""


MAX_CONTENT_BYTES = 2**20
"""More is a document, not a chunk; PostgreSQL's tsvector ends there too."""

MAX_DIMENSIONS = 16_000
"""pgvector's limit of a `vector`."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk to load. `embedding`: shape (dimensions,), where the file brings a vector."""

    document_id: str
    chunk_index: int
    content: str
    tenant: str | None = None
    language: str | None = None
    embedding: NDArray[np.float32] | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """The chunk key: document_id:chunk_index."""
        return make_key(self.document_id, self.chunk_index)


def _number_as_text(value: object) -> object:
    return str(value) if type(value) is int else value


def _blank_as_none(value: object) -> object:
    return None if isinstance(value, str) and is_blank(value) else _number_as_text(value)


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character, which PostgreSQL cannot store")
    return text


def _indexable(text: str) -> str:
    if is_blank(text):
        raise ValueError("is blank")
    if len(text.encode()) > MAX_ID_BYTES:
        raise ValueError(f"is longer than {MAX_ID_BYTES} bytes")
    return text


def _short_enough(text: str) -> str:
    if (size := len(text.encode())) > MAX_CONTENT_BYTES:
        raise ValueError(f"is {size:,} bytes long; at most {MAX_CONTENT_BYTES:,} are allowed")
    return text


_Text = Annotated[str, AfterValidator(_storable)]
_Id = Annotated[_Text, BeforeValidator(_number_as_text), AfterValidator(_indexable)]
_Label = Annotated[
    Annotated[_Text, AfterValidator(_indexable)] | None, BeforeValidator(_blank_as_none)
]
_Number = Annotated[float, Field(allow_inf_nan=False)]


class _Record(BaseModel):
    """A line of the file: types are exact, keys that we do not know are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore")

    document_id: _Id
    chunk_index: int = Field(ge=0, le=MAX_CHUNK_INDEX)
    content: Annotated[_Text, AfterValidator(_short_enough)]
    tenant: _Label = None
    language: _Label = None
    embedding: list[_Number] | None = Field(
        None, validation_alias=AliasChoices("embedding", "vector")
    )


class _BeirRecord(BaseModel):
    """A line of BEIR's corpus.jsonl; other keys, as `metadata`, are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore")

    id: _Id = Field(alias="_id")
    title: _Text | None = None
    text: Annotated[_Text, AfterValidator(_short_enough)]


def corpus_file(path: Path) -> Path:
    """Return the file of chunks: in a BEIR folder its corpus. Raises InputError without one."""
    if not path.is_dir():
        return path
    for name in ("corpus.jsonl", "corpus.jsonl.gz"):
        if (path / name).is_file():
            return path / name
    raise InputError(f"{path}: is a folder without corpus.jsonl: name a file, or a BEIR folder")


def read_chunks(
    path: Path, dimensions: int | None = None, *, document_ids: bool = False
) -> Iterator[Chunk]:
    """Yield the chunks of a file, a JSON object a line.

    A line with `_id`, `text` and perhaps `title` is BEIR's: a document of one chunk, title and text
    on lines of their own, unless its id ends in a chunk index and not `document_ids`; judgments are
    read alike.

    `document_id` (string or integer), `chunk_index` (integer >= 0) and `content` (string, may be
    blank) are required; `tenant`, `language` and `embedding` (or `vector`, a list of numbers) may
    be absent or null. `dimensions`: the length each vector must have; None: that of the first.
    Memory holds one chunk and the keys seen, about 200 bytes each.

    Raises InputError with file, line and reason at the first line that cannot be used, and for a
    file without chunks.
    """
    first_lines: dict[str, int] = {}
    for number, line in read_lines(path):
        try:
            chunk = _parse(line, dimensions, document_ids=document_ids)
        except ValueError as error:
            raise InputError(f"{path}:{number}: {_reason(error)}") from error
        first = first_lines.setdefault(chunk.key, number)
        if first != number:
            raise InputError(f"{path}:{number}: key {chunk.key!r} is on line {first} already")
        if dimensions is None and chunk.embedding is not None:
            dimensions = len(chunk.embedding)
        yield chunk
    if not first_lines:
        raise InputError(f"{path} holds no chunks: expected one JSON object a line")


def _parse(line: str, dimensions: int | None, *, document_ids: bool) -> Chunk:
    """Make a chunk of a line, or raise ValueError with the reason."""
    # Within a text of JSON the quotation marks would be escaped: these are names.
    if '"_id"' in line and '"document_id"' not in line:
        return _of_beir(
            _BeirRecord.model_validate_json(line.rstrip()), Ids(all_documents=document_ids)
        )
    record = _Record.model_validate_json(line.rstrip())
    return Chunk(
        document_id=record.document_id,
        chunk_index=record.chunk_index,
        content=record.content,
        tenant=record.tenant,
        language=record.language,
        embedding=None if record.embedding is None else _vector(record.embedding, dimensions),
    )


def _of_beir(record: _BeirRecord, ids: Ids) -> Chunk:
    document_id, chunk_index = split_key(ids.key(record.id))
    if int(chunk_index) > MAX_CHUNK_INDEX:
        raise ValueError(f"_id ends in a chunk index above {MAX_CHUNK_INDEX:,}")
    title = record.title if record.title and not is_blank(record.title) else None
    content = f"{title}\n{record.text}" if title else record.text
    return Chunk(document_id, int(chunk_index), content)


def _vector(numbers: list[float], dimensions: int | None) -> NDArray[np.float32]:
    """Return the vector as pgvector will hold it, or raise ValueError where it has no direction."""
    if len(numbers) > MAX_DIMENSIONS:
        raise ValueError(f"embedding has {len(numbers):,} dimensions; {MAX_DIMENSIONS:,} at most")
    if dimensions is not None and len(numbers) != dimensions:
        raise ValueError(f"embedding has {len(numbers)} dimensions, expected {dimensions}")
    with np.errstate(over="ignore"):
        vector = np.asarray(numbers, dtype=np.float32)
    norm = float(np.linalg.norm(vector.astype(np.float64)))
    if not np.isfinite(norm):
        raise ValueError("embedding holds a number too large for a 4-byte float")
    if norm == 0:
        raise ValueError("embedding is empty or all zeros: it has no direction to compare")
    return vector


def _reason(error: ValueError) -> str:
    """Return one line that names the key of the record and what is wrong with its value."""
    if not isinstance(error, ValidationError):
        return str(error)
    first: Any = error.errors(include_url=False)[0]
    match first["type"]:
        case "value_error":
            message = str(first["ctx"]["error"])
        case "missing":
            message = "is missing"
        case "json_invalid":
            fault = str(first["ctx"]["error"]).replace("line 1 column", "column")
            return f"not valid JSON ({fault}): expected one object a line"
        case "model_type":
            return "not a JSON object: expected one a line"
        case _:
            message = first["msg"].replace("Input should be", "must be")
    return f"{'.'.join(map(str, first['loc']))} {message}"
