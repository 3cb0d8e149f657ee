"""Settings that both hosts' components of path search have beside the core's."""

from __future__ import annotations

from drillrank.hosts.keys import check_keys
from drillrank.hosts.settings import ExplainSettings
from drillrank.multihop.missing import MissingSettings
from drillrank.multihop.path_settings import PathSettings
from drillrank.settings import declared, setting


@declared
class LinkedRecordSettings(PathSettings):
    """How paths of stored records are searched and scored, and where their links stand.

    Raises:
        InvalidInput: as `PathSettings`, or the key is no string.
    """

    links_key: str = setting(default="links", description="Metadata key with linked ids, a list or comma-separated.")

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        check_keys(links_key=self.links_key)


@declared
class PathRetrieverSettings(ExplainSettings, LinkedRecordSettings, MissingSettings):
    """Those, how an LLM is asked what a path lacks, and whether paths are explained.

    Raises:
        InvalidInput: as all three.
    """
