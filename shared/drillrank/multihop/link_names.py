"""Kinds of links by name, and the kinds that a search follows by default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from drillrank.errors import InvalidInput
from drillrank.multihop.hyperlinks import Hyperlinks
from drillrank.multihop.links import LinkSource, MetadataLinks, RetrievedLinks, passage_links
from drillrank.multihop.mentions import NameMentions, TitleMentions
from drillrank.multihop.reference_links import ReferenceLinks
from drillrank.settings import Preset

TextLinkName = Literal["metadata", "hyperlinks", "titles", "names", "references"]
LinkName = Literal[TextLinkName, "relationships", "retrieval"]

LINKS_IN_TEXTS: tuple[Literal["metadata", "hyperlinks", "titles", "names"], ...] = (
    "metadata",
    "hyperlinks",
    "titles",
    "names",
)
"""Names of the kinds of links that a component of a framework follows by default."""

PAPER_LINK_NAMES: tuple[Literal["metadata", "hyperlinks"], ...] = ("metadata", "hyperlinks")
"""Names of the kinds of links that a component follows with `preset="paper"`: ids in metadata, and hyperlinks."""


def default_links(preset: Preset | None) -> tuple[LinkSource, ...]:
    """Return the links that a path search follows if the caller passes none: `Passage.links` in place of metadata."""
    _, *names = default_link_names(preset)
    return passage_links, *named_links(names)


def default_link_names(preset: Preset | None) -> tuple[Literal["metadata", "hyperlinks", "titles", "names"], ...]:
    """Return the names of the links that a component of a framework follows if the user passes none.

    >>> default_link_names("paper")
    ('metadata', 'hyperlinks')
    """
    return PAPER_LINK_NAMES if preset == "paper" else LINKS_IN_TEXTS


def named_links(names: Iterable[LinkName], metadata_key: str = "links") -> tuple[LinkSource, ...]:
    """Return links by name.

    Args:
        names: `"metadata"` (ids under `metadata_key`), `"hyperlinks"`, `"titles"` (mentions of the title of another
            passage), `"names"` (mentions of a name that another passage mentions, too), `"references"` (such as "see
            Section 8", within one document), `"relationships"` (`Passage.links`) or `"retrieval"` (a second retrieval,
            with the passage in the query).
        metadata_key: Metadata key of the linked ids.

    Raises:
        InvalidInput: A name is unknown.

    >>> [type(links).__name__ for links in named_links(["metadata", "titles"])]
    ['MetadataLinks', 'TitleMentions']
    """
    links_by_name: dict[str, LinkSource] = {
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
        if name not in links_by_name:
            raise InvalidInput(
                f"A kind of links must be one of {', '.join(links_by_name)}, got {name!r:.200}. Use these names."
            )
    return tuple(links_by_name[name] for name in names)
