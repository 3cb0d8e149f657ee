"""Records that the kit puts into a store, and the embedding function that makes their order plain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from drillrank.passages import stable_uuid
from drillrank.structure import breadcrumb, parse_document
from drillrank.structure.stored_chunks import SECTION_KEY, VIEW_KEY, StoredChunk
from drillrank.vectors import Floats
from drillrank.views.chunks import Chunker
from drillrank.views.views import section_chunks

WORDS = ("harbour", "bridge", "market", "library", "museum", "station", "garden", "theatre")
"""Words that `sample_embed` counts. No metadata of the kit contains them."""

TENANTS = ("a", "b")
QUESTION = "When does the harbour open, and who keeps the keys of the bridge?"
_MARK = re.compile(r"q[a-z0-9]{1,40}?v\d{1,9}q")
_SOURCE_KEY = "drillrank_source_id"
_COUNTED = re.compile("|".join(WORDS))


def sample_embed(texts: list[str]) -> Floats:
    """Embed texts by how often they contain each of `WORDS`.

    Returns:
        Unit vectors, shape [n_texts, 9]. Cosine, inner product and Euclidean distance order them alike.

    >>> sample_embed(["The harbour.", "A market by the harbour."]).round(2)[:, :3]
    array([[1.  , 0.  , 0.  ],
           [0.71, 0.  , 0.71]])
    """
    counts = np.full((len(texts), len(WORDS) + 1), 0.0)  # [n_texts, n_dimensions]
    counts[:, -1] = 0.1  # no vector is zero
    for row, text in enumerate(texts):
        for word in _COUNTED.findall(text.lower()):
            counts[row, WORDS.index(word)] += 1.0
    vectors: Floats = counts / np.linalg.norm(counts, axis=1, keepdims=True)
    return vectors


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """A record as a store of texts and flat metadata keeps it. It is the `record` of the kit's chunks.

    Attributes:
        id: Id of the record. Each view of a section has its own.
        text: Text that is stored and embedded.
        metadata: Metadata of the user. For sections also drillrank's, under keys that begin with `drillrank_`.
        document_id: Id of the document that the record was cut from. None if it is a document.
    """

    id: str
    text: str
    metadata: Mapping[str, str | int] = field(default_factory=dict)
    document_id: str | None = None


SampleChunk = StoredChunk[SampleRecord]


def sample_chunk(id: str, text: str, metadata: Mapping[str, str | int] | None = None) -> SampleChunk:
    """Return a whole document as a store has it."""
    values = dict(metadata or {})
    record = SampleRecord(id, text, values)
    return StoredChunk(record, id, text, ("", id), view_text=text, aliases=(id,), metadata=dict(values))


def sample_chunks(tenants: Sequence[str] = TENANTS, version: int = 1) -> list[SampleChunk]:
    """Return one record of each tenant about each of `WORDS`. The records of two tenants are about the same things."""
    return [
        sample_chunk(sample_id(tenant, number), sample_text(tenant, number, version), sample_metadata(tenant, number))
        for tenant in tenants
        for number in range(len(WORDS))
    ]


def sample_id(tenant: str, number: int | str) -> str:
    """Return the id of a record, a UUID, as some stores take no other ids."""
    return stable_uuid("drillrank.testing", tenant, number)


def sample_text(tenant: str, number: int, version: int = 1) -> str:
    """Return the text of a record. Its mark names the tenant, the record and the version."""
    return f"The {WORDS[number]} opens at dawn, says {mark(tenant, number, version)}."


def sample_metadata(tenant: str, number: int) -> dict[str, str | int]:
    """Return the metadata of a record: its tenant, one of three groups, and the quarter of the town."""
    return {"tenant": tenant, "group": ("red", "green", "blue")[number % 3], "quarter": ("north", "south")[number % 2]}


def mark(tenant: str, number: int | str, version: int = 1) -> str:
    """Return a word that no other record contains."""
    return f"q{tenant}{number}v{version}q"


def marks_in(text: str) -> set[str]:
    """Return the marks in a text.

    >>> sorted(marks_in("It opens at dawn, says qa0v1q. qb3v2q disagrees."))
    ['qa0v1q', 'qb3v2q']
    """
    return set(_MARK.findall(text))


def sample_document(tenant: str, name: str, version: int = 1) -> str:
    """Return a Markdown document of a tenant, with one section about each of four of `WORDS`.

    Args:
        tenant: Tenant.
        name: `"guide"`, about the first four words, or `"rules"`, about the others.
        version: Version, which the marks name.
    """
    words = WORDS[:4] if name == "guide" else WORDS[4:]
    sections = [
        f"## The {word}\n\nThe {word} opens at dawn, says {mark(tenant, f'{name}{number}', version)}. "
        f"The keys lie with the keeper of the {word}.\n"
        for number, word in enumerate(words)
    ]
    return "\n".join(["# The town\n", *sections])


def sample_sections(tenants: Sequence[str] = TENANTS, version: int = 1) -> list[SampleChunk]:
    """Return the sections of two documents of each tenant, each in three views, as drillrank's splitters store them."""
    return [
        chunk
        for tenant in tenants
        for name in ("guide", "rules")
        for chunk in cut_document(tenant, name, version=version)
    ]


def cut_document(tenant: str, name: str, *, version: int = 1) -> list[SampleChunk]:
    """Return the sections of one document of `sample_sections`, each in three views."""
    document_id, text = f"{tenant}-{name}", sample_document(tenant, name, version)
    views = section_chunks(parse_document(text, "markdown"), document_id, chunker=Chunker(min_tokens=None))
    raw_ids = [view.section_id for view in views if view.view == "raw"]
    user_metadata: dict[str, str | int] = {"tenant": tenant}
    chunks = []
    for view in views:
        position, path = raw_ids.index(view.section_id), breadcrumb(view.path)
        links = {"parent_id": view.parent_id} if view.parent_id is not None else {}
        links |= {"previous_id": raw_ids[position - 1]} if position else {}
        links |= {"next_id": raw_ids[position + 1]} if position + 1 < len(raw_ids) else {}
        values: dict[str, str | int] = {
            SECTION_KEY: view.section_id,
            _SOURCE_KEY: document_id,
            VIEW_KEY: view.view,
            "drillrank_section_path": path,
            "drillrank_start": view.start,
            "drillrank_end": view.end,
            **{f"drillrank_{name}": id_ for name, id_ in links.items()},
        }
        raw_text = view.text if view.view == "raw" else ""
        chunks.append(
            StoredChunk(
                SampleRecord(view.id, view.text, user_metadata | values, document_id),
                *(view.section_id, raw_text, ("", document_id)),
                kind="section",
                view=view.view,
                view_text=view.text,
                path=path,
                start=view.start,
                end=view.end,
                metadata=dict(user_metadata),
                links=links,
                siblings={_SOURCE_KEY: document_id},
            )
        )
    return chunks
