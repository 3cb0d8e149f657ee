"""The settings of `MultiViewChunker` that are rarely touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drillrank.errors import OnFailure, check_positive
from drillrank.settings import as_settings, check_one_of
from drillrank.text import Tokens, check_language, token_counter

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, kw_only=True)
class ViewSettings:
    """How tokens are counted and the LLM is asked.

    Attributes:
        tokens: What counts `max_tokens` and `min_tokens`: None for drillrank's estimate, which is the same everywhere,
            `"tiktoken:<encoding>"`, a function from a text to a number, or a tokenizer: see
            `drillrank.text.token_counter`.
        on_failure: Where a call fails, or brings nothing of use: `"continue"` with what there is without it, and a
            `DrillrankWarning`; or `"raise"`.
        workers: Most LLM calls at the same time: of one question, or of one call with documents.
        language: Whose stemmer finds keywords and summaries: one of `drillrank.text.LANGUAGES`.

    Raises:
        InvalidInput: a value is not one of those named, or below 1.
    """

    tokens: Tokens = None
    on_failure: OnFailure = "continue"
    workers: int = 4
    language: str = "english"

    def __post_init__(self) -> None:
        token_counter(self.tokens)
        check_one_of(OnFailure, on_failure=self.on_failure)
        check_positive(workers=self.workers)
        check_language(self.language)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Settings by name, as JSON has them.

        Raises:
            InvalidInput: a name is unknown, or a value cannot be used.
        """
        return as_settings(cls, given)
