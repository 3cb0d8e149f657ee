"""Decoder-only models, whatever computes them: prompt and target as one sequence of tokens."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from drillrank.likelihood.base import NextTokenRequest, Request
from drillrank.likelihood.engine import Engine, Found, Targets
from drillrank.likelihood.prefix_trie import TokenSequence
from drillrank.likelihood.prompt_tokens import as_one_string, prompts_alone


class DecoderOnly(Engine):
    """GPT, OPT, Llama, Qwen and their kin: log P(target | prompt) within one string."""

    include_eos_by_default = False

    def _score(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> Targets:
        end = [self.eos_id] if include_eos and self.eos_id is not None else []
        targets, sequences = Targets(), []
        for ids, first, cut_tokens in as_one_string(requests, self.tokenizer, self.window, end):
            sequences.append(TokenSequence(ids, first, targets.starts[-1]))
            targets.add(ids[first:], cut_tokens)
        targets.found = self._found(sequences, temperature)
        return targets

    def _ask(self, requests: Sequence[NextTokenRequest], temperature: float | None) -> Targets:
        targets, sequences = Targets(), []
        prompts = as_one_string(prompts_alone(requests), self.tokenizer, self.window)
        for (ids, _, cut_tokens), answers in zip(prompts, self._answer_ids(requests), strict=True):
            sequences.append(TokenSequence(ids, len(ids), targets.starts[-1], answers))
            targets.add(answers, cut_tokens)
        targets.found = self._found(sequences, temperature)
        return targets

    @abstractmethod
    def _found(self, sequences: Sequence[TokenSequence], temperature: float | None) -> Found:
        """What is to be read of the sequences: log-probabilities, or logits without a temperature."""
