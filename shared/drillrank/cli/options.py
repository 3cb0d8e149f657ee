"""Options of the commands that find evidence, and the component that they describe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from drillrank.cli.terminal import print_problem
from drillrank.drilldown.d3 import D3
from drillrank.drilldown.paragraph_scores import load_evidence_model
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import check_positive, warn
from drillrank.files import make_private_folder
from drillrank.likelihood import LanguageModel
from drillrank.likelihood.chat import load_llm
from drillrank.likelihood.encoders import Encoder, default_encoder
from drillrank.likelihood.load import split_sum
from drillrank.likelihood.prefix_files import parse_bytes
from drillrank.passages import check_top_n
from drillrank.settings import as_settings

DEFAULT_TOP_N = 5
"""Number of passages for a question if the user gives none."""
_PREFIX_MEMORY, _PREFIX_DISK = 10**9, "2 GB"
_NO_ENCODER = "none"  # value of --embed
_RETRIES = 2  # requests to the LLM's server after a failure; the user waits meanwhile


@dataclass(frozen=True, kw_only=True)
class FinderOptions:
    """Options of the commands that find evidence.

    Attributes:
        model: Specification of the language model; None for "unigram".
        language: Language of the unigram model's stemmer; None for "english".
        settings: Name of a file with settings of D3; None for the defaults.
        trust_settings: True if the settings may name folders, addresses, code and keys.
        as_of: Year, month or day: later files are not read.
        llm: Address of a served chat model; None chooses by likelihood.
        embed: Specification of the encoder, or "none"; None for the default encoder.
        unit: Unit of evidence, "paragraph" or "passage"; None for the default of `D3Settings`.
        preset: "paper" for the method as published; None for the defaults.
        hops: 2 to follow links to other files, 1 not to; None follows them where the best passage leaves words open.
        prefix_cache: Bytes on disk for what a Hugging Face model computed of passages; None for "2 GB".
    """

    model: str | None = None
    language: str | None = None
    settings: str | None = None
    trust_settings: bool = False
    as_of: str | None = None
    llm: str | None = None
    embed: str | None = None
    unit: str | None = None
    preset: str | None = None
    hops: int | None = None
    prefix_cache: str | None = None

    def build(self, cache: Path | None = None) -> D3:
        """Return D3 with these options. Print which encoder it has, if the user named none.

        Args:
            cache: Folder of the cache, in which Hugging Face models keep what they compute of passages; None for no
                cache.

        Raises:
            DrillrankError: One of the options cannot be used.
        """
        lm = self._load_model(cache)
        arguments: dict[str, Any] = {"model": lm or "unigram"}
        if self.settings is not None:
            from drillrank.evaluation.settings_file import load_settings

            arguments = load_settings(self.settings, "D3", model=lm, trust=self.trust_settings)
        options = {"as_of": self.as_of, "unit": self.unit, "preset": self.preset, "hops": self.hops}
        overrides: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        if overrides:
            settings = as_settings(D3Settings, arguments["settings"]) if "settings" in arguments else None
            arguments["settings"] = replace(settings, **overrides) if settings else D3Settings(**overrides)
        if self.embed is not None:
            arguments["embed"] = None if self.embed == _NO_ENCODER else self.embed
        elif "embed" not in arguments and self.preset is None:  # the paper has no encoder
            arguments["embed"] = _choose_encoder()
        return D3(load_llm(self.llm, retries=_RETRIES), **arguments)

    def _load_model(self, cache: Path | None) -> str | LanguageModel | None:
        """Return the model of the options, or None."""
        options: dict[str, Any] = {} if self.language is None else {"language": self.language}
        if cache is not None and any(name.startswith("hf:") for _, name in split_sum(self.model or "unigram")):
            n_bytes = parse_bytes("--prefix-cache", self.prefix_cache or _PREFIX_DISK)
            options |= {"prefix_cache": min(n_bytes, _PREFIX_MEMORY), "prefix_cache_disk": n_bytes}
            try:
                make_private_folder(cache)
                options["prefix_cache_dir"] = str(cache / "prefixes")
            except OSError as cause:
                warn(f"Nothing is cached in {cache}: {cause}.")
        return load_evidence_model(self.model or "unigram", **options) if options else self.model


@dataclass(frozen=True, slots=True)
class EvidenceSize:
    """Size of the evidence for a question.

    Attributes:
        top_n: Maximum number of passages; None for a default.
        max_tokens: Maximum number of tokens in all passages; None for no limit.

    Raises:
        InvalidInput: One of them is below 1.
    """

    top_n: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        check_top_n(self.top_n)
        if self.max_tokens is not None:
            check_positive(max_tokens=self.max_tokens)

    def choose_top_n(self, settings: D3Settings) -> int | None:
        """Return the maximum number of passages; None if the tokens, or the LLM of the paper's method, decide."""
        if self.top_n is None and self.max_tokens is None and settings.preset != "paper":
            return DEFAULT_TOP_N
        return self.top_n


def _choose_encoder() -> Encoder | None:
    """Return the default encoder, and print its name."""
    encoder = default_encoder()
    if encoder is not None:
        print_problem("dim", f"Encoder: {encoder.spec} (choose another with --embed, none with --embed none).")
    return encoder
