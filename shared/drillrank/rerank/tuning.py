"""Instructions for PromptRank, written by a T5. `drillrank.evaluation.tune` finds the best of them.

The T5 fills <X> and <Y> in "Task: <X> documents <Y> question based on them. Question:". Then "Task:" and "based on
them", which only guide it, are removed.              Khalifa et al. (2023), sections 2.2 and A.2; Gao et al. (2021)
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from drillrank.errors import InvalidInput, check_positive, warn
from drillrank.likelihood import HuggingFaceModel, load_language_model

# Section 2.2 and A.2: a span-filling T5 completes <X> and <Y>; then "based on them" is removed.
INSTRUCTION_SEARCH_TEMPLATES = (
    "Task: <X> documents <Y> question based on them. Question:",
    "Task: <X> previous documents and <Y> question based on them. Question:",
)
_SENTINELS = ("<extra_id_0>", "<extra_id_1>", "<extra_id_2>")
_BATCH_SIZE = 50  # samples
_MAX_TOKENS = 30  # of both fillings
_MAX_SAMPLES = 5  # per instruction: most samples are repetitions at the end


def generate_instructions(
    model: str | HuggingFaceModel, count: int = 200, *, top_k: int = 10, seed: int = 0
) -> list[str]:
    """Let a T5 write instructions by filling the paper's two templates, each for half of the samples.

    The template with "previous documents" gives instructions after the path, the other one instructions before it.

    Args:
        model: A T5 trained to fill spans (`"hf:google-t5/t5-base"`), or any encoder-decoder model with T5's sentinel
            tokens. Its weights are loaded again in float32, also those of a model that is ready for scoring.
        count: Number of distinct instructions.
        top_k: Number of tokens to sample from at each step.
        seed: The same seed writes the same instructions on the same machine.

    Returns:
        Instructions with `{path}`, in the order in which they were sampled. If the model repeats itself, there are
        fewer than `count`, with a warning.

    Raises:
        InvalidInput: The model has no sentinel tokens or is not an encoder-decoder model, or wrote nothing usable.
        MissingExtra: torch or transformers is not installed.
    """
    check_positive(count=count, top_k=top_k)
    filler, instructions = load_language_model(model), dict[str, None]()
    if not isinstance(filler, HuggingFaceModel):
        raise InvalidInput(
            f"Instructions require an encoder-decoder model, got {filler.spec!r:.200}. Use a T5, such as "
            "hf:google-t5/t5-base."
        )
    fillings = _filler(filler, top_k)
    templates = INSTRUCTION_SEARCH_TEMPLATES
    for draw in range(0, -(-count * _MAX_SAMPLES // _BATCH_SIZE), len(templates)):
        drawn = [
            [_instruction(template, *pair) for pair in fillings(template, seed + draw + number)]
            for number, template in enumerate(templates)
        ]
        instructions |= dict.fromkeys(wording for pair in zip_longest(*drawn) for wording in pair if wording)
        if len(instructions) >= count:
            return list(instructions)[:count]
    if not instructions:
        raise InvalidInput(f"{filler.spec!r:.200} fills no spans, so it wrote no instruction. Use a T5.")
    warn("The model wrote fewer different instructions than count. A larger top_k may help.")
    return list(instructions)


def _filler(lm: HuggingFaceModel, top_k: int) -> Callable[[str, int], list[tuple[str, str]]]:
    """Return a function from a template and a seed to a batch of fillings. Other output than T5's format is dropped."""
    import torch
    import transformers

    name, options = lm.spec.removeprefix("hf:"), lm.options
    # An engine in half precision has a wider head than the rest, and hooks on it while it scores: load another one.
    engine = HuggingFaceModel(name, **{**options, "dtype": "float32"}).engine
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
        name, revision=options["revision"], trust_remote_code=options["trust_remote_code"]
    )
    vocabulary = tokenizer.get_vocab()
    if not engine.model.config.is_encoder_decoder or any(name not in vocabulary for name in _SENTINELS):
        raise InvalidInput(
            f"{lm.spec!r:.200} is not an encoder-decoder model with T5's sentinel tokens <extra_id_0> .... Use a T5."
        )
    first, second, third = (vocabulary[name] for name in _SENTINELS)

    def draw(template: str, seed: int) -> list[tuple[str, str]]:
        text = template.replace("<X>", _SENTINELS[0]).replace("<Y>", _SENTINELS[1])
        devices = [engine.device] if engine.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), torch.inference_mode():
            torch.manual_seed(seed)
            written = engine.model.generate(
                **tokenizer(text, return_tensors="pt").to(engine.device),
                do_sample=True,
                top_k=top_k,
                num_return_sequences=_BATCH_SIZE,
                max_new_tokens=_MAX_TOKENS,
            )
        fillings = []
        for ids in written.tolist():
            _, rest = _split_at(ids, first)
            x_ids, rest = _split_at(rest, second)
            y_ids, _ = _split_at(rest, third)
            x, y = (" ".join(tokenizer.decode(part, skip_special_tokens=True).split()) for part in (x_ids, y_ids))
            if x and y and "{path}" not in x + y:
                fillings.append((x, y))
        return fillings

    return draw


def _split_at(ids: list[int], sentinel: int) -> tuple[list[int], list[int]]:
    """Return the tokens before and after the first occurrence of a token."""
    sentinel_index = ids.index(sentinel) if sentinel in ids else len(ids)
    return ids[:sentinel_index], ids[sentinel_index + 1 :]


def _instruction(template: str, x: str, y: str) -> str:
    """Return the template with its fillings and `{path}`, without the parts that guide the model."""
    text = template.replace("Task: ", "").replace(" based on them", "")
    before, question, after = text.rpartition("Question:")
    path_first = "previous documents" in template
    wording = f"{{path}} {before}" if path_first else f"{before}{{path}} "
    return (wording + question + after).replace("<X>", x).replace("<Y>", y)
