"""A model's chat template: a prompt as the user's turn of a conversation, and what follows as the assistant's."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from drillrank.errors import InvalidInput
from drillrank.likelihood.base import Request
from drillrank.prompts import Evidence, Prompt, Wording

_ASKED, _ANSWERED = "drillrank-is-asked-this", "drillrank-is-answered-this"


class _Turns(NamedTuple):
    """What a template writes around one question and its answer.

    Attributes:
        before: In front of the question.
        between: Between question and answer.
        trims: Whether it takes blanks away from both ends of the question.
    """

    before: str
    between: str
    trims: bool


class ChatTemplate:
    """The chat template of a Hugging Face tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def worded(self, request: Request) -> Request:
        """The request with its prompt as the user's turn; what follows it begins the assistant's.

        The template is rendered with an answer in it, so that a model that thinks first is told that it has done so.

        Raises:
            InvalidInput: the tokenizer has no chat template, or one that changes what is said.
        """
        turns = self._turns
        said = _trimmed(request.prompt) if turns.trims else request.prompt
        prompt = (Wording(turns.before), *said, Wording(turns.between))
        return Request(prompt, request.target, request.max_tokens, chat=True)

    @cached_property
    def _turns(self) -> _Turns:
        name = getattr(self._tokenizer, "name_or_path", "") or type(self._tokenizer).__name__
        if not getattr(self._tokenizer, "chat_template", None):
            raise InvalidInput(
                f"{name!r} has no chat template: leave chat out, or take a model that was tuned to chat."
            )
        turns = [{"role": "user", "content": f" {_ASKED} "}, {"role": "assistant", "content": _ANSWERED}]
        try:
            text = self._tokenizer.apply_chat_template(turns, tokenize=False)
        except Exception as error:  # of the template's own code
            raise InvalidInput(f"The chat template of {name!r} cannot be used: {error}") from error
        before, asked, rest = text.partition(_ASKED)
        between, answered, _ = rest.partition(_ANSWERED)
        if not asked or not answered:
            raise InvalidInput(f"The chat template of {name!r} does not say question and answer as they are: {text!r}.")
        trims = not (before.endswith(" ") and between.startswith(" "))
        return _Turns(before, between, True) if trims else _Turns(before[:-1], between[1:], False)


def _trimmed(prompt: Prompt) -> Prompt:
    """The prompt without blanks at both ends."""
    parts = list(prompt)
    for places, strip in ((range(len(parts)), str.lstrip), (range(len(parts) - 1, -1, -1), str.rstrip)):
        for place in places:
            part = parts[place]
            text = strip(part.text if isinstance(part, Evidence) else part)
            parts[place] = Evidence(text, part.max_tokens) if isinstance(part, Evidence) else type(part)(text)
            if text:
                break
    return tuple(parts)
