"""Encoder-decoder models: each prompt is encoded once, for all its targets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from drillrank.likelihood.base import Request
from drillrank.likelihood.batching import by_length, in_halves
from drillrank.likelihood.engine import Engine, Scored, padded
from drillrank.likelihood.prompt_tokens import fit_to_budgets


class Seq2SeqEngine(Engine):
    """T5, BART and their kin: log P(target | encoder input), teacher-forced."""

    include_eos_by_default = True

    def _score(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Scored]:
        special = len(self.tokenizer.prefix) + len(self.tokenizer.suffix)
        window = None if self.window is None else self.window - special
        prompts = fit_to_budgets(requests, [""] * len(requests), self.tokenizer, window)
        distinct_targets = list(dict.fromkeys(request.target for request in requests))
        target_ids = dict(zip(distinct_targets, self.tokenizer.batch(distinct_targets), strict=True))
        end = [self.eos_id] if include_eos and self.eos_id is not None else []
        scored = []
        askers: dict[tuple[int, ...], list[int]] = {}
        for position, (request, prompt) in enumerate(zip(requests, prompts, strict=True)):
            target = target_ids[request.target].ids + end
            scored.append(Scored(target, prompt.cut_tokens, np.zeros(len(target))))
            encoded = (*self.tokenizer.prefix, *prompt.tokens.ids, *self.tokenizer.suffix)
            askers.setdefault(encoded, []).append(position)
        contexts = list(askers)

        def run(batch: list[int]) -> None:
            self._one_batch([contexts[i] for i in batch], [askers[contexts[i]] for i in batch], scored, temperature)

        for batch in by_length([len(context) for context in contexts], self.batch_tokens):
            in_halves(run, batch)
        return scored

    def _one_batch(
        self,
        contexts: Sequence[Sequence[int]],
        askers: Sequence[Sequence[int]],
        scored: Sequence[Scored],
        temperature: float,
    ) -> None:
        ids, mask = padded(contexts, self.device)
        states = self.model.get_encoder()(input_ids=ids, attention_mask=mask, return_dict=True).last_hidden_state
        waiting = [(row, position) for row, positions in enumerate(askers) for position in positions]
        start = [self.model.config.decoder_start_token_id, *self.tokenizer.prefix]
        lengths = [len(scored[position].target) for _, position in waiting]
        for group in by_length(lengths, self.batch_targets):
            rows = torch.tensor([waiting[i][0] for i in group], device=self.device)
            members = [scored[waiting[i][1]] for i in group]
            decoder_ids, decoder_mask = padded([start + item.target[:-1] for item in members], self.device)
            counts = [len(item.target) for item in members]
            at_row = torch.repeat_interleave(torch.arange(len(members)), torch.tensor(counts)).to(self.device)
            first = len(start) - 1
            at_column = torch.cat([torch.arange(first, first + count) for count in counts]).to(self.device)
            with self._head_only_at(at_row, at_column):
                logits = self.model(
                    encoder_outputs=(states[rows],),
                    attention_mask=mask[rows],
                    decoder_input_ids=decoder_ids,
                    decoder_attention_mask=decoder_mask,
                    use_cache=False,
                ).logits
            log_probs = self._log_probs(logits, [id_ for item in members for id_ in item.target], temperature)
            at = 0
            for item in members:
                item.log_probs[:] = log_probs[at : at + len(item.target)]
                at += len(item.target)
