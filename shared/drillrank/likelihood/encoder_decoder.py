"""Encoder-decoder models, whatever computes them: prompts for the encoder, each with all its targets."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence

from drillrank.errors import InvalidInput
from drillrank.likelihood.base import NextTokenRequest, Request
from drillrank.likelihood.engine import Engine, Targets
from drillrank.likelihood.prompt_tokens import fit_to_budgets, prompts_alone
from drillrank.likelihood.text_tokenizer import Tokenised


class EncoderDecoder(Engine):
    """T5, BART and their kin: log P(target | encoder input), teacher-forced."""

    include_eos_by_default = True

    def _score(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> Targets:
        distinct_targets = list(dict.fromkeys(request.target for request in requests))
        target_ids = dict(zip(distinct_targets, self.tokenizer.batch(distinct_targets), strict=True))
        end = [self.eos_id] if include_eos and self.eos_id is not None else []
        self._check_targets(target_ids)
        targets = Targets()
        askers: dict[tuple[int, ...], list[int]] = {}
        for position, (request, (prompt, cut_tokens)) in enumerate(zip(requests, self._prompts(requests), strict=True)):
            targets.add(target_ids[request.target].ids + end, cut_tokens)
            askers.setdefault(prompt, []).append(position)
        self._run(askers, targets, temperature)
        return targets

    def _ask(self, requests: Sequence[NextTokenRequest], temperature: float | None) -> Targets:
        targets, alone = Targets(), Targets()
        askers: dict[tuple[int, ...], list[int]] = {}
        prompts = self._prompts(prompts_alone(requests))
        for (prompt, cut_tokens), answers in zip(prompts, self._answer_ids(requests), strict=True):
            targets.add(answers, cut_tokens)
            for answer in answers:
                askers.setdefault(prompt, []).append(len(alone.ids))
                alone.add([answer], cut_tokens)
        self._run(askers, alone, temperature)
        targets.found = alone.found  # whose slots are the same
        return targets

    def _prompts(self, requests: Sequence[Request]) -> list[tuple[tuple[int, ...], int]]:
        """What the encoder reads for each request, and how many tokens of documents it does not."""
        special = len(self.tokenizer.prefix) + len(self.tokenizer.suffix)
        window = None if self.window is None else self.window - special
        return [
            ((*self.tokenizer.started(prompt.tokens.ids), *self.tokenizer.suffix), prompt.cut_tokens)
            for prompt in fit_to_budgets(requests, self.tokenizer, window, with_targets=False)
        ]

    def _check_targets(self, target_ids: Mapping[str, Tokenised]) -> None:
        """Models that count positions have a longest target, too."""
        room = sys.maxsize if self._decoder_window is None else self._decoder_window - len(self.tokenizer.prefix) - 1
        for target, tokens in target_ids.items():
            if len(tokens.ids) > room:
                raise InvalidInput(
                    f"The question, or what else is scored, has {len(tokens.ids)} tokens, and the model can write "
                    f"{room}: shorten it, or take another model. It begins with {target[:40]!r}."
                )

    @property
    def _decoder_window(self) -> int | None:
        """Positions of the decoder, if the model counts them."""
        return None

    @abstractmethod
    def _run(
        self, askers: Mapping[tuple[int, ...], Sequence[int]], targets: Targets, temperature: float | None
    ) -> None:
        """Fill in what is found of the targets; `askers` are the positions of those behind each prompt."""
