"""A neural model on this machine: loaded at the first use, shared between threads, pickled without its weights."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from drillrank.errors import InvalidInput
from drillrank.likelihood.base import Likelihood, NextTokenRequest, NextTokens, Request, TrainedAnswers, as_said
from drillrank.likelihood.from_options import FromOptions
from drillrank.likelihood.prompt_tokens import fit_to_budgets
from drillrank.likelihood.trained_answers import read_trained_answers
from drillrank.prompts import Evidence

if TYPE_CHECKING:
    from drillrank.likelihood.engine import Engine

Loaded = TypeVar("Loaded", bound="Engine")


class LocalModel(FromOptions, Generic[Loaded]):
    """What models on this machine have in common, whatever computes them.

    Args:
        name: Model id or directory.
        given: The constructor's `locals()`; `chat` is among the options.

    Raises:
        InvalidInput: the name is empty.
    """

    kind: ClassVar[str]
    """What stands in front of the colon of a specification."""

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        if not name:
            raise InvalidInput(f'"{self.kind}:" needs a model id or a directory behind the colon.')
        super().__init__(name, given)
        self._engine: Loaded | None = None
        self._lock = threading.Lock()

    @property
    def spec(self) -> str:
        """The kind and the model's name."""
        return f"{self.kind}:{self._name}"

    @property
    def include_eos_by_default(self) -> bool:
        """True for encoder-decoder models, whose training targets end with the end-of-sequence token."""
        return self.engine.include_eos_by_default

    @property
    def engine(self) -> Loaded:
        """The loaded model; loads it if need be."""
        with self._lock:
            if self._engine is None or self._engine.left_behind:
                self._engine = self._load()
            return self._engine

    @property
    def tells_next_tokens(self) -> bool:
        """True."""
        return True

    @cached_property
    def trained_answers(self) -> TrainedAnswers | None:
        """What the checkpoint's `1_LogitScore/config.json` names, if it has one."""
        return read_trained_answers(self._name, self._options.get("revision"))

    def _log_likelihood(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        return self.engine.log_likelihood(as_said(requests, self._options["chat"]), temperature, include_eos)

    def _next_tokens(self, requests: Sequence[NextTokenRequest], logits: bool) -> list[NextTokens]:
        return self.engine.next_tokens(requests, logits)

    def first_tokens(self, text: str, count: int) -> str:
        """The longest beginning of a text that has at most `count` tokens, special ones not counted.

        Longest as budgets have it: it has `count` tokens, or more than that with one token more of the text.
        """
        request = Request((Evidence(text, count),), "")
        [fitted] = fit_to_budgets([request], self.engine.tokenizer, None, with_targets=False)
        return fitted.text

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, special tokens not counted."""
        return len(self.engine.tokenizer(text).ids)

    @abstractmethod
    def _load(self) -> Loaded: ...
