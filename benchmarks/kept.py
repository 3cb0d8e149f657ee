"""What real language models said, kept in the repository, so that a table of theirs is printed in seconds anywhere.

`KeptModel` and `KeptWriter` stand for a model of `tools/real_models.sh`, or for any directory with one. What is not yet
in their files is asked of the model itself, on a GPU where there is one, and kept; what is in them needs neither the
model nor torch.
"""

from __future__ import annotations

import gzip
import json
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache, cached_property, partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.likelihood import LanguageModel, Likelihood, NextTokenRequest, NextTokens, Request
from drillrank.likelihood.huggingface import HuggingFaceModel
from drillrank.likelihood.local import in_halves
from drillrank.prompts import Prompt, TruncatableText

KEPT = Path(os.environ.get("DRILLRANK_KEPT", Path(__file__).resolve().parent / "kept"))
MODELS = ("smollm2", "gemma3-270m")
INSTRUCTED = ("qwen-1.5b", "qwen-0.5b")  # in bfloat16, without a penalty
ASK_TOGETHER, WRITE_TOGETHER = 256, 8  # questions asked at once, and prompts answered at once
WRITERS = 2  # threads that write; each computes with OMP_NUM_THREADS
SCORE_TOGETHER = 512  # requests


def named(model: str) -> list[str]:
    """The directories of `--model A,B`."""
    return [name for name in model.split(",") if name]


def folder_of(name: str) -> Path:
    """Where a model's files lie, below `DRILLRANK_MODELS` or `~/.cache/drillrank-models`; or the directory itself.

    Raises:
        InvalidInput: they are not there.
    """
    for place in (
        Path(os.environ.get("DRILLRANK_MODELS", "~/.cache/drillrank-models")).expanduser() / name,
        Path(name),
    ):
        if (place / "config.json").exists():
            return place
    raise InvalidInput(f"Something is not kept in {KEPT.name}/, and {name} is not there to be asked.")


def key_of(*parts: Any) -> int:
    """64 bits of a hash of strings, numbers and lists of them."""
    return int.from_bytes(blake2b(json.dumps(parts).encode(), digest_size=8).digest(), "big")


_LOADING = threading.Lock()  # transformers cannot load two models at the same time


class _Kept:
    """What is kept of one model, and the model itself, which is loaded when something is not."""

    def __init__(self, name: str, dtype: str) -> None:
        self.file = KEPT / f"{Path(name).name}{'' if dtype == 'float32' else f'-{dtype}'}.npz"
        self.name, self.dtype, self.unsaved = name, dtype, False
        self.totals: dict[int, tuple[int, float]] = {}
        self.answers: dict[int, tuple[float, ...]] = {}
        self.firsts: dict[int, int] = {}
        if self.file.exists():
            with np.load(self.file) as found:
                rows = zip(found["keys"].tolist(), found["tokens"].tolist(), found["totals"].tolist(), strict=True)
                self.totals = {key: (tokens, total) for key, tokens, total in rows}
                answers = zip(found["answer_keys"].tolist(), found["answers"].tolist(), strict=True)
                self.answers = {key: tuple(values) for key, values in answers}
                self.firsts = dict(zip(found["first_keys"].tolist(), found["firsts"].tolist(), strict=True))

    @cached_property
    def model(self) -> HuggingFaceModel:
        return HuggingFaceModel(str(folder_of(self.name)), dtype=self.dtype)

    def save(self) -> None:
        self.unsaved = False
        self.file.parent.mkdir(exist_ok=True)
        totals, answers = sorted(self.totals.items()), sorted(self.answers.items())
        with _Replacing(self.file) as place, place.open("wb") as opened:
            np.savez_compressed(
                opened,
                keys=np.array([key for key, _ in totals], dtype=np.uint64),
                tokens=np.array([tokens for _, (tokens, _) in totals], dtype=np.uint16),
                totals=np.array([total for _, (_, total) in totals], dtype=np.float32),
                answer_keys=np.array([key for key, _ in answers], dtype=np.uint64),
                answers=np.array([values for _, values in answers], dtype=np.float32).reshape(
                    len(answers), len(answers[0][1]) if answers else 2
                ),
                first_keys=np.array([*self.firsts], dtype=np.uint64),
                firsts=np.array([*self.firsts.values()], dtype=np.uint32),
            )


@cache
def _kept(name: str, dtype: str) -> _Kept:
    return _Kept(name, dtype)


class KeptModel(LanguageModel):
    """Totals of log-likelihoods, and values of next tokens, that a model gave.

    Args:
        name: A directory below the models', which names the file, too; of any other directory the last part does.
        chat: As for `hf:`.
        dtype: Type of the weights; each type has a file of its own. None is bfloat16 for `INSTRUCTED`, else float32.
    """

    tells_next_tokens = True

    def __init__(self, name: str, *, chat: bool = False, dtype: str | None = None) -> None:
        self.name, self.chat = name, chat
        dtype = dtype or ("bfloat16" if Path(name).name in INSTRUCTED else "float32")
        self._kept = _kept(name, dtype)

    @property
    def spec(self) -> str:
        """`hf:` and the directory's name; `, chat` behind it in its own template."""
        return f"hf:{Path(self.name).name}{', chat' if self.chat else ''}"

    def log_likelihood_batch(
        self, requests: Sequence[Request], temperature: float, include_eos: bool
    ) -> list[Likelihood]:
        chats = [self.chat if request.chat is None else request.chat for request in requests]
        keys = [
            key_of(_plain(request.prompt), request.target, request.max_tokens, chat, temperature, include_eos)
            for request, chat in zip(requests, chats, strict=True)
        ]
        new = {
            key: Request(request.prompt, request.target, request.max_tokens, chat)
            for key, request, chat in zip(keys, requests, chats, strict=True)
            if key not in self._kept.totals
        }
        # Requests of one prompt share its states. A run that is stopped loses one part only.
        ordered = dict(sorted(new.items(), key=lambda item: str(item[1].prompt)))
        for some in _in_parts(ordered, SCORE_TOGETHER):
            found = self._kept.model.log_likelihood(some.values(), temperature=temperature, include_eos=include_eos)
            self._kept.totals |= {key: (len(one.tokens), one.total) for key, one in zip(some, found, strict=True)}
            self._kept.save()
        each = [np.full(count, total / max(count, 1)) for count, total in map(self._kept.totals.__getitem__, keys)]
        return [Likelihood([""] * len(one), one, float(one.sum())) for one in each]

    def save(self) -> None:
        """Keep where texts end, too, which is not done at once."""
        if self._kept.unsaved:
            self._kept.save()

    def next_tokens_batch(self, requests: Sequence[NextTokenRequest], logits: bool) -> list[NextTokens]:
        keys = [key_of(_plain(one.prompt), one.answers, one.max_tokens, one.chat, logits) for one in requests]
        new = {key: request for key, request in zip(keys, requests, strict=True) if key not in self._kept.answers}
        for some in _in_parts(new, 20_000):
            found = self._kept.model.next_tokens(some.values(), logits=logits)
            self._kept.answers |= {key: tuple(one.values.tolist()) for key, one in zip(some, found, strict=True)}
            self._kept.save()
        return [
            NextTokens(np.array(self._kept.answers[key]), 0, (False,) * len(self._kept.answers[key])) for key in keys
        ]

    def first_tokens(self, text: str, count: int) -> str:
        """As of any model; where the text ends that is left is kept."""
        if len(text.encode()) <= count:
            return text
        key = key_of(text, count)
        if key not in self._kept.firsts:
            self._kept.firsts[key] = len(self._kept.model.first_tokens(text, count))
            self._kept.unsaved = True
        return text[: self._kept.firsts[key]]


class KeptWriter:
    """A model as an LLM: what it wrote, greedily, with a penalty of 1.2 on what it repeats.

    What several threads ask at the same time is written as one batch; `together` asks many functions at once.

    Args:
        name: As of `KeptModel`.
        tokens: How many it writes at most.
        chat: Whether a prompt is the user's turn; None where the tokenizer has a template.
        stop: What it writes from here on does not count: a base model does not end by itself.
    """

    def __init__(self, name: str, tokens: int, *, chat: bool | None = None, stop: str | None = None) -> None:
        self.name, self.tokens, self.chat, self.stop = name, tokens, chat, stop
        self._file = KEPT / f"{Path(name).name}.texts.json.gz"
        self._texts = _texts_of(self._file)
        self._prompts: queue.Queue[tuple[int, str, Future[str]]] = queue.Queue()
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None

    def __call__(self, prompt: str) -> str:
        """The answer to a prompt."""
        key = key_of(prompt, self.tokens, self.chat)
        with suppress(KeyError):
            return self._texts[str(key)].partition(self.stop or "\0")[0]
        answer: Future[str] = Future()
        with self._lock:
            if self._worker is None:
                self._worker = threading.Thread(target=self._write, daemon=True)
                self._worker.start()
        self._prompts.put((key, prompt, answer))
        return answer.result().partition(self.stop or "\0")[0]

    def together(self, asks: Sequence[Any]) -> list[Any]:
        """The results of functions that ask this writer, in order."""
        with ThreadPoolExecutor(ASK_TOGETHER) as threads:
            return list(threads.map(lambda ask: ask(), asks))

    def _write(self) -> None:
        try:
            with _LOADING:
                _, generate = _generator(folder_of(self.name))
        except Exception as error:
            while True:
                self._prompts.get()[2].set_exception(error)
        while True:
            waiting = [self._prompts.get()]
            with suppress(queue.Empty):
                while True:
                    waiting.append(self._prompts.get(timeout=1))
            waiting.sort(key=lambda one: one[1])  # prompts that begin alike share what is read
            groups = [waiting[i : i + WRITE_TOGETHER] for i in range(0, len(waiting), WRITE_TOGETHER)]
            with ThreadPoolExecutor(WRITERS) as threads:
                list(threads.map(partial(self._write_group, generate), groups))

    def _write_group(self, generate: Any, some: Sequence[tuple[int, str, Future[str]]]) -> None:
        try:
            in_halves(partial(self._write_some, generate, some), [*range(len(some))])
        except Exception as error:
            for _, _, answer in some:
                if not answer.done():
                    answer.set_exception(error)

    def _write_some(self, generate: Any, some: Sequence[tuple[int, str, Future[str]]], places: Sequence[int]) -> None:
        texts = generate([some[place][1] for place in places], self.tokens, self.chat)
        with self._lock:
            self._texts |= {str(some[place][0]): text for place, text in zip(places, texts, strict=True)}
            _save_texts(self._file, self._texts)
        for place, text in zip(places, texts, strict=True):
            some[place][2].set_result(text)


@cache
def _texts_of(file: Path) -> dict[str, str]:
    """What is in a file, the same for all writers of one model."""
    found: dict[str, str] = json.loads(gzip.decompress(file.read_bytes())) if file.exists() else {}
    return found


def _save_texts(file: Path, texts: Mapping[str, str]) -> None:
    file.parent.mkdir(exist_ok=True)
    with _Replacing(file) as place:
        place.write_bytes(gzip.compress(json.dumps(dict(sorted(texts.items()))).encode(), 6, mtime=0))


class _Replacing:
    """A file that takes another one's place when it has been written."""

    def __init__(self, file: Path) -> None:
        self._file, self._new = file, file.with_suffix(".new")

    def __enter__(self) -> Path:
        return self._new

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._new.replace(self._file)


def _plain(prompt: Prompt) -> list[Any]:
    return [[part.text, part.max_tokens] if isinstance(part, TruncatableText) else str(part) for part in prompt]


def _in_parts(items: Mapping[int, Any], size: int) -> Iterator[dict[int, Any]]:
    rows = iter(items.items())
    while part := dict(islice(rows, size)):
        yield part


@cache
def _model(folder: Path) -> tuple[Any, Any]:
    """The tokenizer and the model."""
    import torch
    import transformers
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    # The query heads that share a key head are read as positions of one query, so that no key is copied.
    def attend(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, **_: Any) -> tuple[Any, None]:
        n, heads, length, size = query.shape
        if length == 1:
            query = query.reshape(n, key.shape[1], -1, size)
            mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, scale=scaling)
            return mixed.reshape(n, 1, heads, size), None
        is_causal = mask is None
        mixed = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, mask, is_causal=is_causal, scale=scaling, enable_gqa=True
        )
        return mixed.transpose(1, 2), None

    ALL_ATTENTION_FUNCTIONS.register("shared_heads", attend)
    ALL_MASK_ATTENTION_FUNCTIONS.register("shared_heads", sdpa_mask)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if folder.name in INSTRUCTED else torch.float32
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="shared_heads")
    model = model.to(device).eval()
    if device == "cpu" and dtype == torch.bfloat16:
        _pack(model)
    return tokenizer, model


@cache
def _generator(folder: Path) -> tuple[Any, Callable[[Sequence[str], int, bool | None], list[str]]]:
    """The tokenizer, and a function from prompts to what the model writes behind them."""
    import torch
    import transformers

    tokenizer, model = _model(folder)
    device, penalty = model.device, 1.0 if folder.name in INSTRUCTED else 1.2
    ends = model.generation_config.eos_token_id
    ends = {*(ends if isinstance(ends, list) else [ends])}

    def read(ids: Sequence[int], before: Sequence[int], cache: Any) -> tuple[Any, Any]:
        """The logits behind a prompt, and its cache; what it shares with the prompt before is not read again."""
        shared = next((i for i, (a, b) in enumerate(zip(ids, before)) if a != b), min(len(ids), len(before)))  # noqa: B905
        shared = min(shared, len(ids) - 1)
        if not shared or cache is None:
            cache, shared = transformers.DynamicCache(config=model.config), 0
        else:
            old = cache
            cache = transformers.DynamicCache(
                [(layer.keys[:, :, :shared], layer.values[:, :, :shared]) for layer in old.layers]
            )
        new = torch.tensor([ids[shared:]], device=device)
        return model(new, cache=cache, logits_to_keep=1).logits[0, -1], cache

    def generate(prompts: Sequence[str], tokens: int, chat: bool | None) -> list[str]:
        texts, in_chat = list(prompts), bool(tokenizer.chat_template) if chat is None else chat
        if in_chat:
            turns = [[{"role": "user", "content": prompt}] for prompt in prompts]
            texts = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        rows = tokenizer(texts, add_special_tokens=not in_chat)["input_ids"]
        with torch.inference_mode():
            logits, caches = [], []
            for i, ids in enumerate(rows):
                one, cache = read(ids, rows[i - 1] if i else [], caches[-1] if caches else None)
                logits.append(one)
                caches.append(cache)
            width = max(map(len, rows))
            layers = []
            for i in range(len(caches[0].layers)):
                of_layer = [cache.layers[i] for cache in caches]
                layers.append(
                    tuple(
                        torch.cat([torch.nn.functional.pad(part, (0, 0, width - part.shape[2], 0)) for part in parts])
                        for parts in ([one.keys for one in of_layer], [one.values for one in of_layer])
                    )
                )
            del caches
            cache = transformers.DynamicCache(layers)
            mask = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in rows], device=device)
            scores, written = torch.stack(logits).float(), [list[int]() for _ in rows]
            lengths = torch.tensor([len(ids) for ids in rows], device=device)
            for step in range(tokens):
                if penalty != 1:
                    for i, ids in enumerate(rows):
                        seen = torch.tensor([*{*ids, *written[i]}], device=device)
                        values = scores[i, seen]
                        scores[i, seen] = torch.where(values < 0, values * penalty, values / penalty)
                chosen = scores.argmax(-1)
                for one, token in zip(written, chosen.tolist(), strict=True):
                    if not one or one[-1] not in ends:
                        one.append(token)
                if all(one[-1] in ends for one in written) or step == tokens - 1:
                    break
                mask = torch.nn.functional.pad(mask, (0, 1), value=1)
                scores = (
                    model(chosen[:, None], cache=cache, attention_mask=mask, position_ids=(lengths + step)[:, None])
                    .logits[:, -1]
                    .float()
                )
        return list(tokenizer.batch_decode(written, skip_special_tokens=True))

    return tokenizer, generate


def _pack(model: Any) -> None:
    """Keep the weights of linear layers as oneDNN multiplies them, which is half as slow again otherwise."""
    import torch

    multiply, reorder = torch.ops.mkldnn._linear_pointwise, torch.ops.mkldnn._reorder_linear_weight
    for layer in model.model.layers:
        for module in layer.modules():
            if isinstance(module, torch.nn.Linear):
                with torch.inference_mode():
                    weight = reorder(module.weight.detach(), 128)
                module.forward = partial(_multiply, multiply, weight, module.bias)
                module.weight = None
    embedding = model.get_input_embeddings()
    embedding.weight.data = embedding.weight.data.clone()  # the file is then no longer needed in memory


def _multiply(multiply: Any, weight: Any, bias: Any, values: Any) -> Any:
    return multiply(values, weight, bias, "none", [], "")


class KeptReader:
    """A model that reads a question with a text: the log-odds of "yes" as its answer, and the question's likelihood.

    Args:
        name: As of `KeptModel`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._file = KEPT / f"{Path(name).name}.evidence.npz"
        self._lock = threading.Lock()
        self._rows: dict[int, list[float]] = {}
        if self._file.exists():
            with np.load(self._file) as kept:
                self._rows = dict(zip(kept["keys"].tolist(), kept["values"].tolist(), strict=True))

    def read(self, prompts: Sequence[tuple[str, str, str]]) -> np.ndarray:
        """Read prompts in the chat template.

        Args:
            prompts: For each, the text before the question, the question, and the text after it.

        Returns:
            The log-odds of "yes", the log-likelihood of the question, and the number of tokens, shape (prompts, 3).
        """
        keys = [key_of(*prompt) for prompt in prompts]
        new = {key: prompt for key, prompt in zip(keys, prompts, strict=True) if key not in self._rows}
        if new:
            with _LOADING:
                tokenizer, model = _model(folder_of(self.name))
            self._file.parent.mkdir(exist_ok=True)
            rows = {key: _read(tokenizer, model, *prompt) for key, prompt in new.items()}
            with self._lock, _Replacing(self._file) as place, place.open("wb") as opened:
                self._rows |= rows
                values = [*self._rows.values()]
                np.savez_compressed(
                    opened, keys=np.array([*self._rows], dtype=np.uint64), values=np.array(values, dtype=np.float32)
                )
        return np.array([self._rows[key] for key in keys])


def _read(tokenizer: Any, model: Any, before: str, question: str, after: str) -> list[float]:
    import torch

    turn = [{"role": "user", "content": before + question + after}]
    text = tokenizer.apply_chat_template(turn, add_generation_prompt=True, tokenize=False)
    start = text.rindex(question + after)
    tokens = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, offsets = tokens["input_ids"], tokens["offset_mapping"]
    asked = [i for i, (first, last) in enumerate(offsets) if last > start and first < start + len(question)]
    kept = torch.tensor([*(i - 1 for i in asked), len(ids) - 1])
    with torch.inference_mode():
        logits = model(torch.tensor([ids]), logits_to_keep=kept, use_cache=False).logits[0].float().log_softmax(-1)
    total = sum(float(logits[row, ids[i]]) for row, i in enumerate(asked))
    yes, no = (
        max(float(logits[-1, tokenizer.convert_tokens_to_ids(word)]) for word in words)
        for words in (("yes", "Yes"), ("no", "No"))
    )
    return [yes - no, total, len(ids)]
