"""Converting a Hugging Face model for CTranslate2, so that it scores as it does on torch.

CTranslate2's own command is not enough beside transformers 5, which says of every T5 that its embeddings are tied: the
logits of a Flan-T5, whose are not, would be divided by the root of its width.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from drillrank.errors import InvalidInput, require
from drillrank.files import whole_folder
from drillrank.likelihood.ctranslate2_model import LIMITS
from drillrank.likelihood.loading import longest_input, longest_target, told

_QUANTIZATIONS = ("int8", "int8_float32", "int16", "float32")


def convert(
    model: str, directory: str, *, quantization: str = "int8", revision: str | None = None, overwrite: bool = False
) -> str:
    """Convert a model, and put its tokenizer beside it.

    Args:
        model: Model id or directory.
        directory: Where to write.
        quantization: Of the weights: `"int8"`, `"int8_float32"`, `"int16"` or `"float32"`.
        revision: Branch, tag or commit of the model.
        overwrite: Whether a directory that is there may be replaced.

    Returns:
        The specification of the converted model, `"ct2:<directory>"`.

    Raises:
        MissingExtra: ctranslate2, torch or transformers is not installed.
        InvalidInput: CTranslate2 does not know this kind of model, or the directory cannot be written.

    >>> convert("google/flan-t5-base", "flan-t5-base-int8", quantization="int4")
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: quantization is one of int8, int8_float32, int16, float32; not 'int4'.
    """
    if quantization not in _QUANTIZATIONS:
        raise InvalidInput(f"quantization is one of {', '.join(_QUANTIZATIONS)}; not {quantization!r}.")
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
                config.normalize_before = False  # which only old checkpoints still say
            self.tokens = config.vocab_size
            return loaded

        def load_tokenizer(self, *arguments: Any, **options: Any) -> Any:
            loaded = super().load_tokenizer(*arguments, **options)
            loaded.add_tokens([f"<no-token-{id_}>" for id_ in range(len(loaded), self.tokens)])  # rows without a name
            return loaded

    if Path(directory).exists() and not overwrite:
        raise InvalidInput(f"{directory!r} is there already: give overwrite=True to replace it, or another directory.")
    with told(f"{model!r} cannot be converted to {directory!r}"), whole_folder(Path(directory)) as place:
        config = transformers.AutoConfig.from_pretrained(model, revision=revision)
        tokenizer = transformers.AutoTokenizer.from_pretrained(model, revision=revision)
        Converter(model, revision=revision).convert(str(place), quantization=quantization, force=True)
        tokenizer.save_pretrained(place)
        own = json.loads((place / "config.json").read_text(encoding="utf-8"))
        named = {name: "" if name.endswith("_token") and value is None else value for name, value in own.items()}
        (place / "config.json").write_text(json.dumps(named, indent=2), encoding="utf-8")  # a missing token stops it
        limits = {"max_length": longest_input(config, tokenizer), "longest_target": longest_target(config)}
        (place / LIMITS).write_text(json.dumps(limits), encoding="utf-8")
    return f"ct2:{directory}"
