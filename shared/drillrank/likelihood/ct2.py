"""Models that CTranslate2 computes on a CPU. Tokens, targets and scores are those of torch; prefixes are not shared."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, check_positive, invalid_input, require
from drillrank.files import replace_folder
from drillrank.likelihood.huggingface import longest_input
from drillrank.likelihood.local import Engine, LocalModel, TokenSequence, longest_target
from drillrank.likelihood.process import keep_in_children, used_before_fork, warn_of_one_thread
from drillrank.likelihood.tokenizer import TextTokenizer

logger = logging.getLogger(__name__)

LIMITS = "drillrank.json"
"""File of a converted model with its maximum lengths, which CTranslate2's own configuration does not contain."""
_VOCABULARIES = ("shared_vocabulary.json", "vocabulary.json")
_QUANTIZATIONS = ("int8", "int8_float32", "int16", "float32")
_COMPUTE_TYPES = ("default", "auto", *_QUANTIZATIONS)
_BATCH_TOKENS = 2048
_LOGIT_BYTES = 256 * 2**20  # of float32 logits of a batch: those of a decoder are computed at every token

_Values = npt.NDArray[np.float64]


class CTranslate2Model(LocalModel["CTranslate2Engine"]):
    """Encoder-decoder or decoder-only model that `convert` has converted.

    Prompts, budgets and scores are those of the same model as `"hf:"`. Prefixes are not shared, and an encoder-decoder
    scores targets of several tokens at temperature 1 only.

    Args:
        directory: Directory of the converted model and its tokenizer.
        compute_type: `"default"` for that of the conversion, `"int8"`, `"float32"` and others, or `"auto"` for the
            fastest on the CPU.
        threads: Number of CPU threads; None for CTranslate2's own choice, which `OMP_NUM_THREADS` sets.
        batch_tokens: Number of tokens of one batch after padding; None for a default for CPUs.
        max_length: Maximum number of tokens of a prompt, special tokens included; None for the model's own limit.
            Documents are truncated to it, instructions are not.
        chat: True if each prompt is the user's turn of a conversation and the scored text the assistant's, by the
            tokenizer's chat template.
        show_progress: True to show a progress bar on standard error.

    Scores are natural log-probabilities per token of the model's own vocabulary.

    Raises:
        MissingExtra: ctranslate2 or transformers is not installed.
        InvalidInput: An option cannot be used, or, at the first use, the directory.
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
        show_progress: bool = False,
    ) -> None:
        if compute_type not in _COMPUTE_TYPES:
            raise InvalidInput(f"compute_type must be one of {', '.join(_COMPUTE_TYPES)}, got {compute_type!r:.200}.")
        if threads is not None:
            check_positive(threads=threads)
        require("ctranslate2", "ct2")
        require("transformers", "ct2")
        super().__init__(directory, locals())

    def _load(self) -> CTranslate2Engine:
        import ctranslate2
        import transformers

        folder = Path(self._name)
        if not ctranslate2.contains_model(str(folder)):
            raise InvalidInput(
                f"{self._name!r:.200} contains no model of CTranslate2. Convert one with "
                "drillrank.likelihood.ct2.convert(model, directory)."
            )
        with invalid_input(f"{self._name!r:.200} must contain tokenizer.json and tokenizer_config.json"):
            framework_tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
            tokenizer = TextTokenizer(framework_tokenizer)
            _check_vocabulary(folder, tokenizer)
        limits = _read_json(folder / LIMITS)
        threads = self._options["threads"] or 0
        if used_before_fork() and threads != 1:
            threads = 1
            warn_of_one_thread()
        encoder_decoder = "decoder_start_token" in _read_json(folder / "config.json")
        kind = ctranslate2.Translator if encoder_decoder else ctranslate2.Generator
        with invalid_input(f"CTranslate2 cannot load {self._name!r:.200}"):
            model = kind(str(folder), device="cpu", compute_type=self._options["compute_type"], intra_threads=threads)
        logger.info("Loaded %s by CTranslate2 in %s.", self._name, model.compute_type)
        longest = framework_tokenizer.model_max_length
        longest = longest if longest < 10_000_000 else None
        return CTranslate2Engine(
            model,
            tokenizer,
            window=self._options["max_length"] or limits.get("max_length", longest),
            start=[0, *tokenizer.prefix] if encoder_decoder else None,
            longest_target=limits.get("longest_target"),
            batch_tokens=self._options["batch_tokens"] or _BATCH_TOKENS,
            batch_targets=max(1, _LOGIT_BYTES // (4 * len(tokenizer.token_names))),
        )


@dataclass(eq=False)
class CTranslate2Engine(Engine):
    """A loaded `ctranslate2.Generator` or `ctranslate2.Translator`, which adds the first token of `start` itself."""

    def __post_init__(self) -> None:
        self._process = os.getpid()
        keep_in_children(self)

    @property
    def left_behind(self) -> bool:
        """True in another process: CTranslate2 computes on threads of its own."""
        return self._process != os.getpid()

    def read(self, readings: Sequence[TokenSequence], temperature: float | None) -> list[_Values]:
        """Return values as `Engine.read`.

        Raises:
            InvalidInput: An encoder-decoder scores several target tokens at another temperature than 1, a prompt or a
                target has more tokens than the model has positions, or CTranslate2 cannot score this architecture.
        """
        results: list[_Values] = [np.empty(0)] * len(readings)
        try:
            if self.start is None:
                self._decode(readings, temperature, results)
            else:
                self._encode(readings, temperature, results)
        except RuntimeError as error:
            if "position" not in str(error):
                raise
            what = "A prompt or a question is longer than the model can read: give the option max_length"
            raise InvalidInput(f"{what}: {error!s:.200}") from error
        except ValueError as error:
            if "mask" not in str(error):
                raise
            what = 'CTranslate2 cannot score sequences with this architecture (Gemma 3 is one): load it by "hf:"'
            raise InvalidInput(f"{what}; {error!s:.200}") from error
        return results

    def _decode(self, readings: Sequence[TokenSequence], temperature: float | None, results: list[_Values]) -> None:
        """Compute the logits of whole sequences, and read them where a token is predicted."""

        def run(batch: list[int]) -> None:
            logits = np.asarray(
                self.model.forward_batch([readings[i].ids[: readings[i].positions[-1] + 1] for i in batch])
            )
            for i, row in zip(batch, logits, strict=True):
                results[i] = _log_probs(row[readings[i].positions], readings[i].target_ids, temperature)
            self.advance(len(batch))

        lengths = [one.positions[-1] + 1 for one in readings]
        self.in_batches(run, lengths, budget=min(self.batch_tokens, self.batch_targets))

    def _encode(self, readings: Sequence[TokenSequence], temperature: float | None, results: list[_Values]) -> None:
        """Score targets of several tokens after the encoder's input, and single tokens by the first step's logits."""
        prefix, end = self.tokenizer.prefix, self.tokenizer.eos_id
        single = [i for i, one in enumerate(readings) if len({*one.positions}) == 1]
        several = [i for i, one in enumerate(readings) if len({*one.positions}) > 1]
        if several and temperature != 1:
            raise InvalidInput(
                f"CTranslate2 scores the targets of an encoder-decoder at temperature 1, got {temperature!r:.200}. "
                'Remove temperature, or load the model by "hf:".'
            )

        def run_several(batch: list[int]) -> None:
            some = [readings[several[index]] for index in batch]
            # The end-of-sequence token is scored after every target, also if it does not count.
            targets = [one.target_ids[:-1] if one.target_ids[-1] == end else one.target_ids for one in some]
            named = [self._named([*prefix, *target]) for target in targets]
            scored = self.model.score_batch([self._named(one.source) for one in some], named, max_input_length=0)
            for index, one, result in zip(batch, some, scored, strict=True):
                results[several[index]] = np.array(result.log_probs[len(prefix) : len(prefix) + len(one.target_ids)])
            self.advance(len(batch))

        def run_single(batch: list[int]) -> None:
            some = [readings[single[index]] for index in batch]
            written = self.model.translate_batch(
                [self._named(one.source) for one in some],
                target_prefix=[self._named(prefix)] * len(batch) if prefix else None,
                beam_size=1,
                min_decoding_length=0,  # or the end-of-sequence token is ruled out
                max_decoding_length=len(prefix) + 1,
                max_input_length=0,
                return_logits_vocab=True,
            )
            for index, one, result in zip(batch, some, written, strict=True):
                logits = np.asarray(result.logits[0][-1])[None].repeat(len(one.target_ids), axis=0)
                results[single[index]] = _log_probs(logits, one.target_ids, temperature)
            self.advance(len(batch))

        counts = [len(readings[i].target_ids) for i in several]
        lengths = [len(readings[i].source) + count for i, count in zip(several, counts, strict=True)]
        self.in_batches(run_several, lengths, counts)
        self.in_batches(run_single, [len(readings[i].source) for i in single])

    def _named(self, ids: Sequence[int]) -> list[str]:
        """Return tokens by their names in the vocabulary, which are unique."""
        return [self.tokenizer.token_names[id_] for id_ in ids]


def _log_probs(logits: npt.NDArray[np.float32], ids: Sequence[int], temperature: float | None) -> _Values:
    """Return the log-softmax of each row at its target, or its logit without a temperature; shape (targets,)."""
    rows = np.arange(len(ids))
    if temperature is None:
        return logits[rows, ids].astype(np.float64)
    wide = logits / np.float32(temperature)
    wide -= wide.max(axis=1, keepdims=True)
    chosen = wide[rows, ids].astype(np.float64)
    log_probs: _Values = chosen - np.log(np.exp(wide, out=wide).sum(axis=1, dtype=np.float64))
    return log_probs


def _check_vocabulary(folder: Path, tokenizer: TextTokenizer) -> None:
    """Refuse a tokenizer whose tokens are not the model's. CTranslate2 identifies tokens by their names.

    Raises:
        InvalidInput: The tokens are those of another model.
    """
    for file in (folder / name for name in _VOCABULARIES if (folder / name).is_file()):
        vocabulary = json.loads(file.read_text(encoding="utf-8"))
        if tokenizer.token_names[: tokenizer.text_tokens] != vocabulary[: tokenizer.text_tokens]:
            raise InvalidInput(
                f"The tokenizer in {str(folder)!r:.200} is that of another model than {file.name}. Convert the model "
                "again."
            )


def _read_json(file: Path) -> dict[str, Any]:
    """Read a JSON file. Return an empty dictionary if it does not exist.

    Raises:
        InvalidInput: The file cannot be read.
    """
    with invalid_input(f"{file} cannot be read"):
        return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def convert(
    model: str, directory: str, *, quantization: str = "int8", revision: str | None = None, overwrite: bool = False
) -> str:
    """Convert a model, and save its tokenizer with it.

    CTranslate2's own command does not work with transformers 5, which reports tied embeddings for every T5. The logits
    of a Flan-T5, whose embeddings are not tied, would be divided by the square root of its width.

    Args:
        model: Model id or directory.
        directory: Directory to write to.
        quantization: Type of the weights: `"int8"`, `"int8_float32"`, `"int16"` or `"float32"`.
        revision: Branch, tag or commit of the model.
        overwrite: True to replace an existing directory.

    Returns:
        The specification of the converted model, `"ct2:<directory>"`.

    Raises:
        MissingExtra: ctranslate2, torch or transformers is not installed.
        InvalidInput: CTranslate2 does not support this kind of model, or the directory cannot be written.

    >>> convert("google/flan-t5-base", "flan-t5-base-int8", quantization="int4")
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: quantization must be one of int8, int8_float32, int16, float32, got 'int4'.
    """
    if quantization not in _QUANTIZATIONS:
        raise InvalidInput(f"quantization must be one of {', '.join(_QUANTIZATIONS)}, got {quantization!r:.200}.")
    converters = require("ctranslate2.converters", "ct2")
    require("torch", "hf")
    transformers = require("transformers", "hf")

    class Converter(converters.TransformersConverter):  # type: ignore[misc, name-defined]
        def load_model(self, *arguments: Any, **options: Any) -> Any:
            loaded = super().load_model(*arguments, **options)
            config = loaded.config
            if hasattr(config, "scale_decoder_outputs"):
                config.tie_word_embeddings = config.scale_decoder_outputs
            if config.model_type == "bart" and not hasattr(config, "normalize_before"):
                config.normalize_before = False  # a field of old checkpoints only
            self.tokens = config.vocab_size
            return loaded

        def load_tokenizer(self, *arguments: Any, **options: Any) -> Any:
            loaded = super().load_tokenizer(*arguments, **options)
            loaded.add_tokens([f"<no-token-{id_}>" for id_ in range(len(loaded), self.tokens)])  # rows without a name
            return loaded

    if Path(directory).exists() and not overwrite:
        raise InvalidInput(f"{directory!r:.200} exists already. Set overwrite=True, or use another directory.")
    message = f"{model!r:.200} cannot be converted to {directory!r:.200}"
    with invalid_input(message), replace_folder(Path(directory)) as folder:
        config = transformers.AutoConfig.from_pretrained(model, revision=revision)
        tokenizer = transformers.AutoTokenizer.from_pretrained(model, revision=revision)
        Converter(model, revision=revision).convert(str(folder), quantization=quantization, force=True)
        tokenizer.save_pretrained(folder)
        config_json = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        without_nulls = {
            name: "" if name.endswith("_token") and value is None else value for name, value in config_json.items()
        }
        (folder / "config.json").write_text(
            json.dumps(without_nulls, indent=2), encoding="utf-8"
        )  # CTranslate2 fails if a token is null
        limits = {"max_length": longest_input(config, tokenizer), "longest_target": longest_target(config)}
        (folder / LIMITS).write_text(json.dumps(limits), encoding="utf-8")
    return f"ct2:{directory}"
