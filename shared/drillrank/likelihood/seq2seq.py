"""Encoder-decoder models: each prompt is encoded once, for all its targets."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.likelihood.base import NextTokenRequest, Request
from drillrank.likelihood.batching import by_length, in_halves
from drillrank.likelihood.engine import Engine, Targets, to_device
from drillrank.likelihood.prompt_tokens import fit_to_budgets, prompts_alone
from drillrank.likelihood.text_tokenizer import Tokenised


class Seq2SeqEngine(Engine):
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

    def _run(
        self, askers: Mapping[tuple[int, ...], Sequence[int]], targets: Targets, temperature: float | None
    ) -> None:
        """Fill in what is found of the targets; `askers` are the positions of those behind each prompt."""
        contexts = list(askers)

        def run(batch: list[int]) -> None:
            self._one_batch([contexts[i] for i in batch], [askers[contexts[i]] for i in batch], targets, temperature)

        for batch in by_length([len(context) for context in contexts], self.batch_tokens):
            in_halves(run, batch)

    def _check_targets(self, target_ids: Mapping[str, Tokenised]) -> None:
        """Models that count positions have a longest target, too."""
        config = self.model.config
        window = getattr(config, "max_decoder_position_embeddings", getattr(config, "max_position_embeddings", None))
        room = sys.maxsize if window is None else window - len(self.tokenizer.prefix) - 1
        for target, tokens in target_ids.items():
            if len(tokens.ids) > room:
                raise InvalidInput(
                    f"The question, or what else is scored, has {len(tokens.ids)} tokens, and the model can write "
                    f"{room}: shorten it, or take another model. It begins with {target[:40]!r}."
                )

    def _one_batch(
        self,
        contexts: Sequence[Sequence[int]],
        askers: Sequence[Sequence[int]],
        targets: Targets,
        temperature: float | None,
    ) -> None:
        ids, mask = self._padded(contexts)
        states = self.model.get_encoder()(input_ids=ids, attention_mask=mask, return_dict=True).last_hidden_state
        waiting = [(row, position) for row, positions in enumerate(askers) for position in positions]
        start = [self.model.config.decoder_start_token_id, *self.tokenizer.prefix]

        def run(group: list[int]) -> None:
            rows = to_device(np.array([waiting[i][0] for i in group]), self.device)
            positions = [waiting[i][1] for i in group]
            wanted = [targets.ids[position] for position in positions]
            decoder_ids, decoder_mask = self._padded([start + target[:-1] for target in wanted])
            at_row = np.repeat(np.arange(len(wanted)), [len(target) for target in wanted])
            at_column = np.concatenate([len(start) - 1 + np.arange(len(target)) for target in wanted])
            with self._head_only_at(to_device(at_row, self.device), to_device(at_column, self.device)):
                logits = self.model(
                    encoder_outputs=(states[rows],),
                    attention_mask=mask[rows],
                    decoder_input_ids=decoder_ids,
                    decoder_attention_mask=decoder_mask,
                    use_cache=False,
                ).logits
            slots = [targets.starts[at] + place for at in positions for place in range(len(targets.ids[at]))]
            log_probs = self._log_probs(logits, [id_ for target in wanted for id_ in target], temperature)
            targets.found.append((slots, log_probs))

        counts = [len(targets.ids[position]) for _, position in waiting]
        # Each target looks at its prompt's states, of which it needs keys and values of its own.
        lengths = [len(contexts[row]) + count for (row, _), count in zip(waiting, counts, strict=True)]
        for group in by_length(lengths, 8 * self.batch_tokens, counts, self.batch_targets):
            in_halves(run, group)
