"""What both hosts' components add to the settings of a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drillrank.drilldown.settings import D3Settings
from drillrank.errors import InvalidInput, check_limits, check_positive
from drillrank.hosts.namespaces import check_namespace
from drillrank.settings import Settings, declared, setting
from drillrank.views.expansion import Expansion, check_expansion
from drillrank.views.settings import RetrieverName, ViewIndexSettings, ViewSettings

EXPLAIN = (
    "Whether results say why they stand where they stand (see `drillrank.evaluation.explain`): LlamaIndex sends an "
    "`ExplanationEvent`, LangChain's documents have it as metadata `drillrank_explanation`. The model is asked for the "
    "question after nothing, path search for the paths that it returns; False costs nothing."
)


def _join_pages() -> Any:
    return setting(default=True, description="Whether documents that are pages of one file are read as one.")


@declared
class ExplainSettings(Settings):
    """Whether a component says why.

    Raises:
        InvalidInput: `explain` is neither True nor False.
    """

    explain: bool = setting(default=False, description=EXPLAIN)

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        _check_switch(explain=self.explain)


@declared
class SplitterSettings(ViewSettings):
    """Settings of what cuts documents into views.

    Raises:
        InvalidInput: as `ViewSettings`, or there are two namespaces.
    """

    separator: str = setting(default=" > ", description="Between the headings of `drillrank_section_path`.")
    namespace: str | None = setting(default=None, description="Of all documents.")
    namespace_key: str | None = setting(
        default=None, description="Key of the documents' metadata that holds the namespace of each."
    )
    join_pages: bool = _join_pages()

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        check_namespace(self.namespace, self.namespace_key)
        _check_switch(join_pages=self.join_pages)
        _check_separator(self.separator)


@declared
class ViewRetrieverSettings(ViewIndexSettings, ExplainSettings):
    """Settings of what retrieves over views.

    Raises:
        InvalidInput: as `ViewIndexSettings`, or `expand` is unknown.
    """

    retriever: RetrieverName
    weights: Mapping[str, float] | None
    top_n: int = setting(default=5, description="Sections to return.")
    expand: Expansion | None = setting(
        default=None,
        description='`"neighbours"` or `"parent"`: after each section found come those around it, with its score and '
        "its id as metadata `drillrank_expanded_from`, beyond `top_n`.",
    )

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        check_positive(top_n=self.top_n)
        check_expansion(self.expand)


@declared
class D3RetrieverSettings(ExplainSettings, D3Settings):
    """Settings of what drills down in a host's documents.

    Raises:
        InvalidInput: as `D3Settings`, or `top_n` is below 1.
    """

    top_n: int | None = setting(
        default=None,
        description="Paragraphs to return; None returns what the LLM chose, or as many as make the expected F1 "
        "largest.",
    )
    separator: str = setting(
        default=" > ", description="Between the headings of `drillrank_section_path`, as the splitter was told."
    )
    join_pages: bool = _join_pages()

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        check_limits(top_n=self.top_n)
        _check_switch(join_pages=self.join_pages)
        _check_separator(self.separator)


def _check_separator(separator: object) -> None:
    if not isinstance(separator, str) or not separator:
        raise InvalidInput(f"separator is a string that is not empty; not {separator!r:.100}.")


def _check_switch(**switches: object) -> None:
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} is True or False; not {value!r:.100}.")
