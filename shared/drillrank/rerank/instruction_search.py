"""Instruction search: a span-filling language model writes instructions for `tune` to choose from.

T5 fills <X> and <Y> in "Task: <X> documents <Y> question based on them. Question:"; then "Task:" and "based on them",
which only steer it, are dropped.                      Khalifa et al. (2023), sections 2.2 and A.2; Gao et al. (2021)
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from drillrank.errors import DrillrankWarning, InvalidInput, check_positive
from drillrank.likelihood import HuggingFaceModel, load_language_model
from drillrank.prompts import INSTRUCTION_SEARCH_TEMPLATES

_SENTINELS = ("<extra_id_0>", "<extra_id_1>", "<extra_id_2>")
_MASKS = ("<X>", "<Y>")
_AT_ONCE = 50  # samples of one batch
_MAX_TOKENS = 30  # of both fillings
_PATIENCE = 5  # samples drawn for each instruction wanted, at most: most are repetitions at the end


def generate_instructions(
    model: str | HuggingFaceModel, count: int = 200, *, top_k: int = 10, seed: int = 0
) -> list[str]:
    """Let a T5 write instructions by filling the paper's templates, half of the samples each.

    The template with "previous documents" puts the instruction after the path, the other one before it.

    Args:
        model: A T5 trained to fill spans (`"hf:google-t5/t5-base"`), or any encoder-decoder model with T5's sentinel
            tokens. Its weights are loaded for this alone, in float32, also those of a model that is ready for scoring.
        count: Distinct instructions wanted.
        top_k: Tokens to sample from at each step.
        seed: The same seed writes the same instructions on the same machine.

    Returns:
        Instructions with `{path}`, in the order in which they were sampled; fewer than `count`, with a warning, if
        the model repeats itself.

    Raises:
        InvalidInput: the model has no sentinel tokens or is no encoder-decoder model, or wrote nothing that fits.
        MissingExtra: torch or transformers is not installed.
    """
    check_positive(count=count, top_k=top_k)
    filler = load_language_model(model)
    if not isinstance(filler, HuggingFaceModel):
        raise InvalidInput(
            f"Instructions are written by an encoder-decoder model of Hugging Face, not {filler.spec!r}."
        )
    found: dict[str, None] = {}
    samples = _Samples(filler, top_k, seed)
    for _ in range(-(-count * _PATIENCE // (_AT_ONCE * len(INSTRUCTION_SEARCH_TEMPLATES)))):
        drawn = [
            [_instruction(template, *fillings) for fillings in samples.draw(template)]
            for template in INSTRUCTION_SEARCH_TEMPLATES
        ]
        found |= dict.fromkeys(wording for pair in zip_longest(*drawn) for wording in pair if wording)
        if len(found) >= count:
            return list(found)[:count]
    if not found:
        raise InvalidInput(f"{filler.spec!r} wrote no instruction: it fills no spans. Take one that does, such as T5.")
    warnings.warn(
        f"{filler.spec!r} wrote {len(found)} different instructions, not {count}; a larger top_k brings more.",
        DrillrankWarning,
        stacklevel=2,
    )
    return list(found)


class _Samples:
    """Fillings of templates, sampled by a model with sentinel tokens."""

    def __init__(self, filler: HuggingFaceModel, top_k: int, seed: int) -> None:
        import transformers

        name, options = filler.spec.removeprefix("hf:"), filler.options
        # An engine in half precision has a wider head than the rest, and hooks on it while it scores: take another.
        engine = HuggingFaceModel(name, **{**options, "dtype": "float32"}).engine
        self._model, self._device = engine.model, engine.device
        self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
            name, revision=options["revision"], trust_remote_code=options["trust_remote_code"]
        )
        known = self._tokenizer.get_vocab()
        if not self._model.config.is_encoder_decoder or any(name not in known for name in _SENTINELS):
            raise InvalidInput(
                f"{filler.spec!r} is no encoder-decoder model with T5's sentinel tokens <extra_id_0> ...."
            )
        self._sentinels = [known[name] for name in _SENTINELS]
        self._top_k, self._seed = top_k, seed

    def draw(self, template: str) -> list[tuple[str, str]]:
        """Fillings of one batch; what does not follow T5's format is left out."""
        import torch

        text = template
        for mask, sentinel in zip(_MASKS, _SENTINELS, strict=False):
            text = text.replace(mask, sentinel)
        given = self._tokenizer(text, return_tensors="pt").to(self._device)
        generator_devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices=generator_devices), torch.inference_mode():
            torch.manual_seed(self._seed)
            self._seed += 1
            written = self._model.generate(
                input_ids=given["input_ids"],
                attention_mask=given["attention_mask"],
                do_sample=True,
                top_k=self._top_k,
                num_return_sequences=_AT_ONCE,
                max_new_tokens=_MAX_TOKENS,
            )
        return [fillings for ids in written.tolist() if (fillings := self._fillings(ids))]

    def _fillings(self, ids: Sequence[int]) -> tuple[str, str] | None:
        """What stands after the first and after the second sentinel."""
        first, second, third = self._sentinels
        if first not in ids or second not in ids[ids.index(first) :]:
            return None
        start = ids.index(first) + 1
        middle = ids.index(second, start)
        stop = ids.index(third, middle) if third in ids[middle:] else len(ids)
        decoded = [
            self._tokenizer.decode(part, skip_special_tokens=True) for part in (ids[start:middle], ids[middle:stop])
        ]
        x, y = (" ".join(text.split()) for text in decoded)
        return (x, y) if x and y and "{path}" not in x + y else None


def _instruction(template: str, x: str, y: str) -> str:
    """The template with its fillings, without what steers the model, and with the path in its place."""
    text = template.replace("Task: ", "").replace(" based on them", "")
    before, question, after = text.rpartition("Question:")
    path_first = "previous documents" in template
    wording = f"{{path}} {before}" if path_first else f"{before}{{path}} "
    return (wording + question + after).replace("<X>", x).replace("<Y>", y)
