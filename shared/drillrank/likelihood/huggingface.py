"""Hugging Face language models, loaded at the first use from a model id or a directory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from drillrank.errors import InvalidInput, check_mappings, invalid_input, require
from drillrank.files import check_model_directory
from drillrank.likelihood.base import PrefixEstimate, Request
from drillrank.likelihood.local import LocalModel, PrefixCacheOptions, TokenSequence, make_sequences
from drillrank.likelihood.prefix_files import parse_bytes
from drillrank.likelihood.process import PerProcess, require_torch, settle_threads
from drillrank.likelihood.tokenizer import TextTokenizer
from drillrank.progress import OnProgress, progress_bar
from drillrank.settings import check_one_of

if TYPE_CHECKING:
    import torch

    from drillrank.likelihood.torch_engine import TorchEngine

logger = logging.getLogger(__name__)

_loading_lock = PerProcess(threading.Lock)
_BATCHES = 4  # after which another caller may have its turn while prefixes are computed
_DTYPES = ("auto", "float32", "bfloat16", "float16")
_RESERVED = ("config", "dtype", "torch_dtype", "revision", "trust_remote_code", "output_loading_info")


class HuggingFaceModel(LocalModel["TorchEngine"]):
    """Encoder-decoder or decoder-only language model of transformers.

    Args:
        name: Model id or directory.
        device: `"cuda"`, `"mps"`, `"cpu"` ...; None for the first of these that this machine has.
        dtype: Dtype of the weights: `"float32"`, `"bfloat16"`, `"float16"`, or `"auto"`, which is bfloat16 if the
            device computes fast in it, else float32. The output layer and probabilities are always float32 or wider.
        batch_tokens: Number of tokens of one batch after padding; None for a number that suits the device.
        max_length: Longest prompt in tokens, special tokens included; None for the model's own limit. Documents are
            truncated to it, instructions never.
        model_kwargs: Options of `from_pretrained`.
        revision: Branch, tag or commit of the model.
        trust_remote_code: Whether code that comes with the model may run. Leave it False.
        chat: Whether each prompt is the user's turn of a conversation and the target the assistant's, by the
            tokenizer's chat template, for models that were tuned to chat. Rankers of relevance set it themselves.
        show_progress: Whether a bar on standard error counts the sequences.
        prefix_cache: Size of a cache in memory for what the model computes of a prompt up to the question, such as
            `"1 GB"`. Further questions about the same passages then cost little. Of a path, only the first passage is
            cached. Prompts that are longer than a sliding window of attention are not cached. None for no cache.
        prefix_cache_dir: Folder in which the cache outlives the process, and which processes may share. Only its owner
            can read it, because it contains what the passages say.
        prefix_cache_disk: Size of the files in the folder.
        prefix_cache_dtype: `"auto"` keeps the model's dtype. `"int8"` takes half of bfloat16's bytes, and changes
            scores: see docs/neural-models.md.

    Scores are natural log-probabilities per token of the model's own vocabulary. They do not depend on other callers.
    Within one call, passages are computed in batches, whose shapes change the last digits: about 1e-6 a token in
    float32, 1e-2 in bfloat16.

    Raises:
        MissingExtra: torch or transformers is not installed.
        InvalidInput: An option cannot be used.
    """

    kind = "hf"

    def __init__(
        self,
        name: str,
        *,
        device: str | None = None,
        dtype: str = "auto",
        batch_tokens: int | None = None,
        max_length: int | None = None,
        model_kwargs: dict[str, Any] | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
        chat: bool = False,
        show_progress: bool = False,
        prefix_cache: str | int | None = None,
        prefix_cache_dir: str | None = None,
        prefix_cache_disk: str | int = "10 GB",
        prefix_cache_dtype: Literal["auto", "int8"] = "auto",
    ) -> None:
        if dtype not in _DTYPES:
            raise InvalidInput(f"dtype must be one of {', '.join(_DTYPES)}, got {dtype!r:.200}.")
        check_mappings(model_kwargs=model_kwargs)
        model_kwargs = dict(model_kwargs or {})
        if taken := [option for option in _RESERVED if option in model_kwargs]:
            raise InvalidInput(
                f"model_kwargs contains {', '.join(taken)}. Use the model's own options, such as dtype=."
            )
        if prefix_cache is None and prefix_cache_dir is not None:
            raise InvalidInput('prefix_cache_dir needs a size in memory. Add prefix_cache="1 GB".')
        if prefix_cache is not None:
            parse_bytes("prefix_cache", prefix_cache)
        parse_bytes("prefix_cache_disk", prefix_cache_disk)
        check_one_of(Literal["auto", "int8"], prefix_cache_dtype=prefix_cache_dtype)
        require_torch("hf")
        require("transformers", "hf")
        super().__init__(name, locals())

    def _load(self) -> TorchEngine:
        import torch
        import transformers

        from drillrank.likelihood.torch_engine import TorchEngine

        settle_threads()
        options = self._options
        source = {"revision": options["revision"], "trust_remote_code": options["trust_remote_code"]}
        check_model_directory(self._name)
        with invalid_input(f"{self._name!r:.200} cannot be loaded as a model"):
            config = transformers.AutoConfig.from_pretrained(self._name, **source)
            host = transformers.AutoTokenizer.from_pretrained(self._name, **source)
            tokenizer = TextTokenizer(host)
        device = torch.device(options["device"] or best_device())
        dtype = getattr(torch, options["dtype"]) if options["dtype"] != "auto" else best_dtype(device)
        kind = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
        arguments = {"use_safetensors": True, **source, **options["model_kwargs"]}
        model = pretrained(kind, self._name, config=config, dtype=dtype, **arguments).to(device)
        n_embeddings = model.get_input_embeddings().weight.shape[0]
        if tokenizer.text_tokens > n_embeddings:
            raise InvalidInput(
                f"The tokenizer of {self._name!r:.200} has {tokenizer.text_tokens} tokens and the model "
                f"{n_embeddings}. They belong to different models: copy the tokenizer of this model."
            )
        _check_predicts(model, self._name)
        logger.info("Loaded %s on %s in %s.", self._name, device, dtype)
        window = options["max_length"] or longest_input(config, host)
        return TorchEngine(
            model,
            tokenizer,
            window=window,
            batch_tokens=options["batch_tokens"],
            prefix_cache=self._prefix_cache_options(),
        )

    def estimate_prefixes(self, requests: Iterable[Request]) -> PrefixEstimate:
        """Implement `LanguageModel.estimate_prefixes`."""
        return self._worker.run(self._estimate_prefixes, list(requests))

    def keep_prefixes(self, requests: Iterable[Request], on_progress: OnProgress | None = None) -> PrefixEstimate:
        """Implement `LanguageModel.keep_prefixes`. Between batches, other callers get their turns."""
        started = perf_counter()
        sequences, estimate = self._worker.run(self._measure_prefixes, list(requests))
        if not estimate.fits:
            raise InvalidInput(
                f"The prefixes of {estimate.n_prompts} prompts have {estimate.n_bytes:,} bytes, and the prefix cache "
                f"has {estimate.max_bytes:,}. Raise prefix_cache, or prefix_cache_disk with a prefix_cache_dir, or "
                "choose fewer passages."
            )
        n_done = 0
        batches = self._worker.run(self._divide_by_tokens, sequences)
        with progress_bar(self._options["show_progress"], "Computing prefixes") as (expect, advance):
            expect(len(sequences))
            for batch in batches:
                self._worker.run(self._keep_batch, batch)
                advance(len(batch))
                n_done += len(batch)
                if on_progress is not None:
                    on_progress(n_done, len(sequences))
        return replace(estimate, seconds=perf_counter() - started)

    def _measure_prefixes(self, requests: Sequence[Request]) -> tuple[list[TokenSequence], PrefixEstimate]:
        """Return the prompts that the cache can keep, and their size. The estimate has no time yet.

        Raises:
            LacksCapability: The model has no prefix cache.
        """
        engine = self._loaded()
        if engine.prefixes is None:
            raise self._lacks_prefix_cache()
        prompts = [replace(request, target="") for request in self._with_chat(requests)]
        sequences = list(filter(engine.prefixes.has_prefix, make_sequences(engine, prompts) if prompts else []))
        n_tokens, _ = engine.prefixes.count_tokens(sequences)
        n_bytes, max_bytes = n_tokens * engine.prefixes.token_bytes, engine.prefixes.max_bytes
        fits = n_bytes <= max_bytes and all(map(engine.prefixes.can_keep, sequences))
        return sequences, PrefixEstimate(len(sequences), n_tokens, n_bytes, max_bytes, fits, 0.0)

    def _estimate_prefixes(self, requests: Sequence[Request]) -> PrefixEstimate:
        sequences, estimate = self._measure_prefixes(requests)
        prefixes = self._loaded().prefixes
        batches = self._divide_by_tokens(sequences)
        if prefixes is None or not batches or not estimate.fits:
            return estimate
        _, n_missing = prefixes.count_tokens(sequences)
        started = perf_counter()
        self._keep_batch(next((batch for batch in batches if prefixes.count_tokens(batch)[1]), []))
        seconds = perf_counter() - started
        _, n_still_missing = prefixes.count_tokens(sequences)
        seconds_per_token = seconds / max(n_missing - n_still_missing, 1)
        return replace(estimate, seconds=n_still_missing * seconds_per_token)

    def _divide_by_tokens(self, sequences: Sequence[TokenSequence]) -> list[list[TokenSequence]]:
        """Divide sequences into lists of similar length, of a few batches each."""
        order = sorted(sequences, key=lambda one: len(one.source or one.ids))
        ends = np.cumsum([len(one.source or one.ids) for one in order]) // (_BATCHES * self._loaded().batch_tokens)
        return [[one for one, _ in group] for _, group in groupby(zip(order, ends, strict=True), key=itemgetter(1))]

    def _keep_batch(self, sequences: Sequence[TokenSequence]) -> None:
        self._loaded().keep_prefixes(sequences)

    def _prefix_cache_options(self) -> PrefixCacheOptions | None:
        options = self._options
        if options["prefix_cache"] is None:
            return None
        return PrefixCacheOptions(
            memory_bytes=parse_bytes("prefix_cache", options["prefix_cache"]),
            is_int8=options["prefix_cache_dtype"] == "int8",
            folder=options["prefix_cache_dir"],
            disk_bytes=parse_bytes("prefix_cache_disk", options["prefix_cache_disk"]),
        )


def pretrained(kind: Any, name: str, **options: Any) -> Any:
    """Load a model of transformers in evaluation mode, with every weight from the checkpoint.

    Args:
        kind: A class with `from_pretrained`.
        name: Model id or directory.
        options: Options of `from_pretrained`.

    Raises:
        InvalidInput: The weights cannot be read, or some are missing, which transformers would fill at random.
    """
    advice = (
        'Only whole safetensors files are read. model_kwargs={"use_safetensors": False} reads pickled weights, which '
        "can run code, so trust their source."
    )
    # Loading sets defaults of the whole process, so that two loads at once would mix up their weights.
    with _loading_lock(), invalid_input(f"The weights of {name!r:.200} cannot be loaded", advice):
        model, report = kind.from_pretrained(name, output_loading_info=True, **options)
    parameters = dict(model.named_parameters())
    missing = sorted(parameters.keys() & report["missing_keys"])
    if missing:
        raise InvalidInput(
            f"{name!r:.200} lacks {len(missing)} weights of a {type(model).__name__}, such as {missing[0]}. The "
            "checkpoint is incomplete, or of another kind of model. Download it again, or choose another one."
        )
    return model.eval()


def _check_predicts(model: Any, name: str) -> None:
    """Refuse a model that does not predict each token of a target from the tokens before it.

    Raises:
        InvalidInput: The model is an encoder-decoder without a first token of targets, or a decoder that sees the
            tokens to predict, like a model for masked tokens.
    """
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING

    config = model.config
    if config.is_encoder_decoder:
        if not isinstance(getattr(config, "decoder_start_token_id", None), int):
            raise InvalidInput(f"config.json of {name!r:.200} has no decoder_start_token_id. Add it.")
        return
    masked = type(config) in MODEL_FOR_MASKED_LM_MAPPING or config.model_type in ("bert-generation", "cpmant", "xlnet")
    causal = any(getattr(config, setting, False) for setting in ("is_decoder", "causal"))
    both_ways = getattr(config.get_text_config(), "use_bidirectional_attention", None) in (True, "all")
    if both_ways or (masked and not causal):
        raise InvalidInput(
            f"{name!r:.200} is not a causal language model. A {type(model).__name__} sees the tokens that it should "
            "predict, like all models for masked tokens, such as BERT. Choose a decoder or an encoder-decoder."
        )


def best_device() -> str:
    """Return the first device that this machine has, of `"cuda"`, `"mps"` and `"cpu"`."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def best_dtype(device: torch.device) -> torch.dtype:
    """Return bfloat16 if the device computes fast in it, else float32."""
    import torch

    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    if device.type == "cpu" and torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return torch.bfloat16
    return torch.float32


def longest_input(config: Any, tokenizer: Any) -> int | None:
    """Return the number of tokens of the model's longest input, special tokens included. None for no limit."""
    limits = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    limits.append(tokenizer.model_max_length if config.is_encoder_decoder else None)
    usable = [limit for limit in limits if isinstance(limit, int) and 0 < limit < 10_000_000]
    return min(usable, default=None)
