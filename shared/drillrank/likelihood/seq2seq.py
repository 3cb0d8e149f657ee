"""Encoder-decoder models on torch: each prompt is encoded once, for all its targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from drillrank.likelihood.batching import by_length, in_halves
from drillrank.likelihood.encoder_decoder import EncoderDecoder
from drillrank.likelihood.engine import Targets
from drillrank.likelihood.loading import longest_target
from drillrank.likelihood.torch_engine import TorchEngine, to_device


class Seq2SeqEngine(TorchEngine, EncoderDecoder):
    """T5, BART and their kin through transformers."""

    @property
    def _decoder_window(self) -> int | None:
        return longest_target(self.model.config)

    def _run(
        self, askers: Mapping[tuple[int, ...], Sequence[int]], targets: Targets, temperature: float | None
    ) -> None:
        contexts = list(askers)

        def run(batch: list[int]) -> None:
            self._one_batch([contexts[i] for i in batch], [askers[contexts[i]] for i in batch], targets, temperature)

        for batch in by_length([len(context) for context in contexts], self.batch_tokens):
            in_halves(run, batch)

    def _one_batch(
        self,
        contexts: Sequence[Sequence[int]],
        askers: Sequence[Sequence[int]],
        targets: Targets,
        temperature: float | None,
    ) -> None:
        ids, mask = self._padded(contexts)
        encoded = self.model.get_encoder()(input_ids=ids, attention_mask=mask, return_dict=True)
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
                    encoder_outputs=type(encoded)(**{**encoded, "last_hidden_state": encoded.last_hidden_state[rows]}),
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
