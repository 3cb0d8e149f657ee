"""Summaries by a Hugging Face encoder-decoder model made for it, such as bart-large-cnn."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import chain
from typing import Any

from drillrank.errors import check_positive, invalid_input, require
from drillrank.likelihood.huggingface import best_device, best_dtype, longest_input, pretrained
from drillrank.likelihood.process import require_torch, settle_threads
from drillrank.structure.sentences import sentences
from drillrank.views.summaries import is_short


class HuggingFaceSummarizer:
    """Summarises sections with a sequence-to-sequence model; loaded at the first use.

    A section of up to 200 tokens is its own summary. One that the model cannot read at once is cut between sentences,
    and its summary is that of its parts, joined by spaces.

    Args:
        name: Model id or directory.
        device: `"cuda"`, `"mps"`, `"cpu"` ...; None takes the first of these that is there.
        dtype: Of the weights, such as `"float32"`; `"auto"` is bfloat16 where the device computes in it fast.
        batch_size: Texts read at once.
        max_tokens: Longest summary in tokens of the model; None for what its configuration says.
        revision: Branch, tag or commit of the model.

    Raises:
        MissingExtra: torch or transformers is not installed.
        InvalidInput: a number is below 1, or, at the first use, there is no such model.

    The model's weights must be safetensors. Results are the same in every run: nothing is sampled.

        texts = [unit.body for unit in whole_sections()(document)]
        summary_texts = HuggingFaceSummarizer("facebook/bart-large-cnn").summaries(texts)
        chunks = section_chunks(document, "report", summary_texts=summary_texts)
    """

    def __init__(
        self,
        name: str = "facebook/bart-large-cnn",
        *,
        device: str | None = None,
        dtype: str = "auto",
        batch_size: int = 8,
        max_tokens: int | None = None,
        revision: str | None = None,
    ) -> None:
        check_positive(batch_size=batch_size, **({} if max_tokens is None else {"max_tokens": max_tokens}))
        require_torch("hf")
        require("transformers", "hf")
        self._options: dict[str, Any] = {
            "name": name,
            "device": device,
            "dtype": dtype,
            "batch_size": batch_size,
            "max_tokens": max_tokens,
            "revision": revision,
        }
        self._loaded: tuple[Any, Any] | None = None
        self._lock = threading.Lock()  # of the tokenizer and the model

    def __repr__(self) -> str:
        """All options that a summary depends on, so that caches can tell two summarisers apart."""
        told = ("name", "revision", "dtype", "max_tokens")
        return f"HuggingFaceSummarizer({', '.join(f'{key}={self._options[key]!r}' for key in told)})"

    def __getstate__(self) -> dict[str, Any]:
        """Without weights: they are loaded again."""
        return self._options

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def summaries(self, texts: Sequence[str]) -> list[str]:
        """One summary per text.

        Raises:
            InvalidInput: there is no such model.
        """
        found = list(texts)
        long = [position for position, text in enumerate(texts) if not is_short(text)]
        if not long:
            return found
        with self._lock:
            windows = [self._windows(texts[position]) for position in long]
            short = iter(self._generate(list(chain.from_iterable(windows))))
        for position, own in zip(long, windows, strict=True):
            found[position] = " ".join(filter(None, (next(short).strip() for _ in own)))
        return found

    def _model(self) -> tuple[Any, Any]:
        settle_threads()
        if self._loaded is None:
            import torch
            import transformers

            name, revision, dtype = (self._options[key] for key in ("name", "revision", "dtype"))
            device = torch.device(self._options["device"] or best_device())
            with invalid_input(f"{name!r} is no sequence-to-sequence model that can be loaded"):
                tokenizer = transformers.AutoTokenizer.from_pretrained(name, revision=revision)
            model = pretrained(
                transformers.AutoModelForSeq2SeqLM,
                name,
                revision=revision,
                dtype=best_dtype(device) if dtype == "auto" else dtype,
                use_safetensors=True,
            )
            self._loaded = tokenizer, model.to(device)
        return self._loaded

    def _windows(self, text: str) -> list[str]:
        """The text in parts that the model can read, cut between sentences where that is possible."""
        tokenizer, model = self._model()
        limit = longest_input(model.config, tokenizer)
        if limit is None:
            return [text]
        room = limit - tokenizer.num_special_tokens_to_add()
        windows: list[str] = []
        left = 0
        starts = [start for start, _ in sentences(text)]
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
            ids = tokenizer(text[start:end], add_special_tokens=False, verbose=False)["input_ids"]
            if len(ids) <= left:
                windows[-1] += text[start:end]
            elif len(ids) <= room:
                windows.append(text[start:end])
            else:
                windows += [tokenizer.decode(ids[at : at + room]) for at in range(0, len(ids), room)]
            left = left - len(ids) if len(ids) <= left else max(room - len(ids), 0)
        return windows

    def _generate(self, windows: Sequence[str]) -> list[str]:
        import torch

        tokenizer, model = self._model()
        limit = longest_input(model.config, tokenizer)
        # Cut and padded here: a tokenizer that is asked to does so by changing its own state.
        ids = [tokenizer(window, verbose=False)["input_ids"] for window in windows]
        ids = [own if limit is None or len(own) <= limit else [*own[: limit - 1], own[-1]] for own in ids]
        order = sorted(range(len(ids)), key=lambda position: len(ids[position]))
        longest: dict[str, int] = {}
        if self._options["max_tokens"] is not None:
            longest = {"max_new_tokens": self._options["max_tokens"], "min_length": 0}
        written = [""] * len(ids)
        for first in range(0, len(order), self._options["batch_size"]):
            batch = order[first : first + self._options["batch_size"]]
            width = max(len(ids[position]) for position in batch)
            padded = [[*ids[position], *[tokenizer.pad_token_id] * (width - len(ids[position]))] for position in batch]
            mask = [[1] * len(ids[position]) + [0] * (width - len(ids[position])) for position in batch]
            with torch.inference_mode():
                answers = model.generate(
                    input_ids=torch.tensor(padded, device=model.device),
                    attention_mask=torch.tensor(mask, device=model.device),
                    do_sample=False,
                    **longest,
                )
            texts = tokenizer.batch_decode(answers, skip_special_tokens=True)
            for position, text in zip(batch, texts, strict=True):
                written[position] = text
        return written
