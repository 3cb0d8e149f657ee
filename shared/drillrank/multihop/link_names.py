"""Kinds of links by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from drillrank.errors import InvalidInput
from drillrank.multihop.hyperlinks import Hyperlinks
from drillrank.multihop.links import LinkSource, MetadataLinks, RetrievedLinks, passage_links
from drillrank.multihop.mentions import NameMentions, TitleMentions
from drillrank.multihop.reference_links import ReferenceLinks

LINKS: tuple[LinkSource, ...] = (passage_links, Hyperlinks(), TitleMentions(), NameMentions())
"""What passages say about each other themselves."""

TextLinkName = Literal["metadata", "hyperlinks", "titles", "names", "references"]
LinkName = Literal[TextLinkName, "relationships", "retrieval"]
LINKS_IN_TEXTS: tuple[Literal["metadata", "hyperlinks", "titles", "names"], ...] = (
    "metadata",
    "hyperlinks",
    "titles",
    "names",
)
"""What passages say about each other themselves."""


def named_links(names: Iterable[LinkName], metadata_key: str = "links") -> tuple[LinkSource, ...]:
    """Links by name, for configurations.

    Args:
        names: `"metadata"` (ids under `metadata_key`), `"hyperlinks"`, `"titles"` (mentions of another one's title),
            `"names"` (mentions of a name that another one mentions, too), `"references"` (such as
            "see Section 8", within one document), `"relationships"` (`Passage.links`),
            `"retrieval"` (a second retrieval, with the passage in the query).
        metadata_key: Metadata key with linked ids.

    Raises:
        InvalidInput: a name is unknown.

    >>> [type(links).__name__ for links in named_links(["metadata", "titles"])]
    ['MetadataLinks', 'TitleMentions']
    """
    known: dict[str, LinkSource] = {
        "metadata": MetadataLinks(metadata_key),
        "hyperlinks": Hyperlinks(),
        "titles": TitleMentions(),
        "names": NameMentions(),
        "references": ReferenceLinks(),
        "relationships": passage_links,
        "retrieval": RetrievedLinks(),
    }
    names = tuple(names)
    for name in names:
        if name not in known:
            raise InvalidInput(f"Links are some of {', '.join(known)}; not {name!r:.200}.")
    return tuple(known[name] for name in names)
