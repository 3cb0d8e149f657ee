"""Instructions to tune PromptRank over, written by a T5; `drillrank.evaluation.tune` finds the best of them.

The T5 fills <X> and <Y> in "Task: <X> documents <Y> question based on them. Question:"; then "Task:" and "based on
them", which only steer it, are dropped.              Khalifa et al. (2023), sections 2.2 and A.2; Gao et al. (2021)
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from drillrank.errors import InvalidInput, check_positive, warn
from drillrank.likelihood import HuggingFaceModel, load_language_model

# Section 2.2 and A.2: a span-filling T5 completes <X> and <Y>; then "based on them" is dropped.
INSTRUCTION_SEARCH_TEMPLATES = (
    "Task: <X> documents <Y> question based on them. Question:",
    "Task: <X> previous documents and <Y> question based on them. Question:",
)
_SENTINELS = ("<extra_id_0>", "<extra_id_1>", "<extra_id_2>")
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
    filler, found = load_language_model(model), dict[str, None]()
    if not isinstance(filler, HuggingFaceModel):
        raise InvalidInput(f"Instructions are written by an encoder-decoder model, hf:..., not {filler.spec!r:.200}.")
    fillings = _filler(filler, top_k)
    templates = INSTRUCTION_SEARCH_TEMPLATES
    for draw in range(0, -(-count * _PATIENCE // _AT_ONCE), len(templates)):
        drawn = [
            [_instruction(template, *pair) for pair in fillings(template, seed + draw + number)]
            for number, template in enumerate(templates)
        ]
        found |= dict.fromkeys(wording for pair in zip_longest(*drawn) for wording in pair if wording)
        if len(found) >= count:
            return list(found)[:count]
    if not found:
        raise InvalidInput(f"{filler.spec!r:.200} wrote no instruction: it fills no spans. Take a T5, which does.")
    message = f"{filler.spec!r:.200} wrote {len(found)} different instructions, not {count}: a larger top_k may help."
    warn(message)
    return list(found)


def _filler(lm: HuggingFaceModel, top_k: int) -> Callable[[str, int], list[tuple[str, str]]]:
    """From a template and a seed to fillings of one batch; what does not follow T5's format is left out."""
    import torch
    import transformers

    name, options = lm.spec.removeprefix("hf:"), lm.options
    # An engine in half precision has a wider head than the rest, and hooks on it while it scores: take another.
    engine = HuggingFaceModel(name, **{**options, "dtype": "float32"}).engine
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
        name, revision=options["revision"], trust_remote_code=options["trust_remote_code"]
    )
    known = tokenizer.get_vocab()
    if not engine.model.config.is_encoder_decoder or any(name not in known for name in _SENTINELS):
        raise InvalidInput(f"{lm.spec!r:.200} is no encoder-decoder model with T5's sentinel tokens <extra_id_0> ....")
    first, second, third = (known[name] for name in _SENTINELS)

    def draw(template: str, seed: int) -> list[tuple[str, str]]:
        text = template.replace("<X>", _SENTINELS[0]).replace("<Y>", _SENTINELS[1])
        devices = [engine.device] if engine.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), torch.inference_mode():
            torch.manual_seed(seed)
            written = engine.model.generate(
                **tokenizer(text, return_tensors="pt").to(engine.device),
                do_sample=True,
                top_k=top_k,
                num_return_sequences=_AT_ONCE,
                max_new_tokens=_MAX_TOKENS,
            )
        found = []
        for ids in written.tolist():
            _, filled = _parted(ids, first)
            of_x, filled = _parted(filled, second)
            of_y, _ = _parted(filled, third)
            x, y = (" ".join(tokenizer.decode(part, skip_special_tokens=True).split()) for part in (of_x, of_y))
            if x and y and "{path}" not in x + y:
                found.append((x, y))
        return found

    return draw


def _parted(ids: list[int], sentinel: int) -> tuple[list[int], list[int]]:
    """What stands before and what stands after a token."""
    location = ids.index(sentinel) if sentinel in ids else len(ids)
    return ids[:location], ids[location + 1 :]


def _instruction(template: str, x: str, y: str) -> str:
    """The template with its fillings, without what steers the model, and with the path in its place."""
    text = template.replace("Task: ", "").replace(" based on them", "")
    before, question, after = text.rpartition("Question:")
    path_first = "previous documents" in template
    wording = f"{{path}} {before}" if path_first else f"{before}{{path}} "
    return (wording + question + after).replace("<X>", x).replace("<Y>", y)
