"""A model converted for CTranslate2: quantised or not, on a CPU, without torch."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drillrank.errors import InvalidInput, check_positive, require
from drillrank.likelihood.forks import used_before_fork, warn_of_one_thread
from drillrank.likelihood.loading import told
from drillrank.likelihood.local import LocalModel

if TYPE_CHECKING:
    from drillrank.likelihood.ctranslate2_engine import CTranslate2Engine
    from drillrank.likelihood.text_tokenizer import TextTokenizer

logger = logging.getLogger(__name__)

LIMITS = "drillrank.json"
"""File beside a converted model: how much it can read, which CTranslate2's own configuration does not say."""
_VOCABULARIES = ("shared_vocabulary.json", "vocabulary.json")
_COMPUTE_TYPES = ("default", "auto", "int8", "int8_float32", "int16", "float32")


class CTranslate2Model(LocalModel["CTranslate2Engine"]):
    """An encoder-decoder or decoder-only model that `drillrank.likelihood.conversion.convert` has converted.

    Prompts, budgets and scores are those of the same model as `"hf:"`; prefixes are not shared, and an encoder-decoder
    scores targets of several tokens at temperature 1 alone.

    Args:
        directory: Of the converted model, with the tokenizer's files in it.
        compute_type: `"default"`: as converted; `"int8"`, `"float32"` ..., or `"auto"`: the fastest that the CPU has.
        threads: CPU threads; None for CTranslate2's own choice, which `OMP_NUM_THREADS` sets.
        batch_tokens: Tokens of one batch after padding; None for what suits a CPU.
        max_length: Longest prompt in tokens, special tokens included; None for the model's own limit. Documents are
            shortened to it, instructions never.
        chat: Whether each prompt is the user's turn of a conversation and what is scored the assistant's, by the
            tokenizer's chat template.

    Scores are natural log-probabilities per token of the model's own vocabulary.

    Raises:
        MissingExtra: ctranslate2 or transformers is not installed.
        InvalidInput: an option cannot be used, or, at the first use, the directory.
    """

    kind = "ct2"

    def __init__(
        self,
        directory: str,
        *,
        compute_type: str = "default",
        threads: int | None = None,
        batch_tokens: int | None = None,
        max_length: int | None = None,
        chat: bool = False,
    ) -> None:
        if compute_type not in _COMPUTE_TYPES:
            raise InvalidInput(f"compute_type is one of {', '.join(_COMPUTE_TYPES)}; not {compute_type!r}.")
        if threads is not None:
            check_positive(threads=threads)
        require("ctranslate2", "ct2")
        require("transformers", "ct2")
        super().__init__(directory, locals())

    def _load(self) -> CTranslate2Engine:
        import ctranslate2
        import transformers

        from drillrank.likelihood.ctranslate2_engine import CTranslate2Causal, CTranslate2Seq2Seq
        from drillrank.likelihood.text_tokenizer import TextTokenizer

        place = Path(self._name)
        if not ctranslate2.contains_model(str(place)):
            raise InvalidInput(
                f"{self._name!r} holds no model of CTranslate2: convert one, as in "
                "drillrank.likelihood.conversion.convert(model, directory)."
            )
        with told(f"The tokenizer's files (tokenizer.json, tokenizer_config.json) must lie in {self._name!r}"):
            named = transformers.AutoTokenizer.from_pretrained(place)
            tokenizer = TextTokenizer(named)
            _check_vocabulary(place, tokenizer)
        limits = _read(place / LIMITS)
        threads = self._options["threads"] or 0
        if used_before_fork() and threads != 1:
            threads = 1
            warn_of_one_thread()
        arguments = {"compute_type": self._options["compute_type"], "intra_threads": threads}
        encoder_decoder = "decoder_start_token" in _read(place / "config.json")
        kind = ctranslate2.Translator if encoder_decoder else ctranslate2.Generator
        with told(f"CTranslate2 cannot load {self._name!r}"):
            model = kind(str(place), device="cpu", **arguments)
        logger.info("Loaded %s by CTranslate2 in %s.", self._name, model.compute_type)
        longest = named.model_max_length if named.model_max_length < 10_000_000 else None
        return (CTranslate2Seq2Seq if encoder_decoder else CTranslate2Causal)(
            model,
            tokenizer,
            eos_id=tokenizer.eos_id,
            window=self._options["max_length"] or limits.get("max_length", longest),
            longest_target=limits.get("longest_target"),
            batch_tokens=self._options["batch_tokens"],
        )


def _check_vocabulary(place: Path, tokenizer: TextTokenizer) -> None:
    """Reject a tokenizer whose tokens are not the model's, which CTranslate2 knows by their names.

    Raises:
        InvalidInput: they are another's.
    """
    for file in (place / name for name in _VOCABULARIES if (place / name).is_file()):
        known = json.loads(file.read_text(encoding="utf-8"))
        if tokenizer.token_names[: tokenizer.text_tokens] != known[: tokenizer.text_tokens]:
            raise InvalidInput(f"The tokenizer in {str(place)!r} is that of another model than {file.name}.")


def _read(place: Path) -> dict[str, Any]:
    """What a file of JSON says; nothing if there is none.

    Raises:
        InvalidInput: it cannot be read.
    """
    with told(f"{place} cannot be read"):
        return dict(json.loads(place.read_text(encoding="utf-8"))) if place.is_file() else {}
