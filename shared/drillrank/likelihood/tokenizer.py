"""Prompts as token ids: text tokenised as data, control tokens where the wording is trusted, documents cut to budgets.

A Hugging Face tokenizer maps a literal `</s>` inside a document to the end-of-sequence token, and fast tokenizers
share their truncation and padding settings between threads. `TextTokenizer` is a private copy whose control tokens have
names that no text can hold; it never truncates or pads, and special tokens are added by hand. Those of trusted wording
are given these names before the whole is tokenised at once.

A beginning of a text can have more tokens than the text's own first ones, or fewer: a cut makes words fall apart, and
one character can have several tokens. So every beginning is tokenised before it counts as short enough.
"""

from __future__ import annotations

import inspect
import json
import re
import secrets
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, LacksCapability, require
from drillrank.likelihood.base import LanguageModel, NextTokenRequest, Request
from drillrank.prompts import Prompt, TruncatableText, TrustedText, prompt_text
from drillrank.text import without_surrogates

_SECRET = 17  # characters of a control token's name here
_BYTE = re.compile("<0x[0-9A-F]{2}>")
_GUESSES = 4  # then each step of the search for a length halves the rest
_QUESTION, _ANSWER = "drillrank-asks-this", "drillrank-answers-this"

AnyRequest = Request | NextTokenRequest
Marks = tuple[tuple[int, int], ...]
"""Where the control tokens of a text stand: offsets of the first character and behind the last."""


@dataclass(frozen=True, slots=True)
class Tokenised:
    """Token ids of a text, and where in it each token ends.

    Attributes:
        ids: Token ids, shape (tokens,).
        ends: Offset behind each token's last character, shape (tokens,).
    """

    ids: list[int]
    ends: npt.NDArray[np.int64]


class TextTokenizer:
    """A tokenizer for text alone, made from a Hugging Face tokenizer.

    Attributes:
        prefix: Ids that the tokenizer puts in front of a text, such as a beginning-of-sequence token.
        suffix: Ids that it puts behind a text, such as an end-of-sequence token.
        eos_id: The end-of-sequence token, or None.
        text_tokens: One more than the highest id of a token that text may become.
        token_names: The name of each id.

    Raises:
        InvalidInput: the tokenizer has no fast backend, or surrounds a text in a way that is not understood.
    """

    def __init__(self, tokenizer: Any) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise InvalidInput(f"{type(tokenizer).__name__} has no fast tokenizer, which exact offsets need.")
        serialised, self._secret_names = _without_control_tokens(backend.to_str())
        self._backend = require("tokenizers", "hf").Tokenizer.from_str(serialised)
        longest_first = sorted(self._secret_names, key=lambda name: -len(name))  # as the tokenizer itself matches them
        self._control = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        find = self._control.finditer
        self._marks_in = lru_cache(256)(lambda text: [match.span() for match in find(text)])  # wording is shared
        self._host = tokenizer
        self.text_tokens = max(self._backend.get_vocab(with_added_tokens=False).values(), default=-1) + 1
        self.token_names: list[str] = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        self.eos_id: int | None = tokenizer.eos_token_id
        unknown = getattr(self._backend.model, "unk_token", None)
        self._unknown = {tokenizer.unk_token_id, None if unknown is None else self._backend.token_to_id(unknown)}
        bare = self("a").ids
        surrounded: list[int] = tokenizer("a")["input_ids"]
        starts = [i for i in range(len(surrounded) - len(bare) + 1) if surrounded[i : i + len(bare)] == bare]
        if not starts:
            raise InvalidInput(f"The special tokens of {type(tokenizer).__name__} around a text are not understood.")
        self.prefix, self.suffix = surrounded[: starts[0]], surrounded[starts[0] + len(bare) :]

    def __call__(self, text: str, marks: Marks = ()) -> Tokenised:
        """Tokenise one text."""
        return self.batch([text], [marks])[0]

    def batch(self, texts: Sequence[str], marks: Sequence[Marks] | None = None) -> list[Tokenised]:
        """Tokenise texts; each as it would be alone. A lone surrogate is read as U+FFFD.

        Args:
            texts: Any texts.
            marks: Which control tokens in each are meant as such; None for texts that are all data.
        """
        marks = marks or [()] * len(texts)
        named = [
            self._with_secret_names(without_surrogates(text), some) for text, some in zip(texts, marks, strict=True)
        ]
        tokenised = []
        for encoding, some in zip(self._backend.encode_batch(named, add_special_tokens=False), marks, strict=True):
            ends = np.array([end for _, end in encoding.offsets], dtype=np.int64)
            tokenised.append(Tokenised(encoding.ids, _original(ends, some) if some else ends))
        return tokenised

    def marks(self, prompt: Prompt) -> Marks:
        """Return the spans of control tokens in the trusted wording of a prompt's text."""
        spans: list[tuple[int, int]] = []
        offset = 0
        for part in prompt:
            if isinstance(part, TrustedText):
                spans += [(offset + start, offset + end) for start, end in self._marks_in(part)]
            offset += len(_text(part))
        return tuple(spans)

    def started(self, ids: list[int]) -> list[int]:
        """A tokenised prompt behind the tokens of `prefix`, unless its wording begins with them, as in a chat."""
        return ids if ids[: len(self.prefix)] == self.prefix else [*self.prefix, *ids]

    def answer_id(self, answer: str | int) -> int:
        """The id of the one token that an answer is: its text, its name in the vocabulary, or its id.

        Raises:
            InvalidInput: The answer is not a token of this model.
            LacksCapability: The answer is several tokens.
        """
        if isinstance(answer, int):
            if not 0 <= answer < len(self.token_names):
                raise InvalidInput(f"The model has no token {answer}: its {len(self.token_names)} begin with 0.")
            return answer
        ids = self(answer).ids
        if len(ids) == 1 and ids[0] not in self._unknown:
            return ids[0]
        if answer in self.token_names:
            return self.token_names.index(answer)
        names = ", ".join(repr(self.token_names[id_]) for id_ in ids)
        error = LacksCapability if len(ids) > 1 and self._unknown.isdisjoint(ids) else InvalidInput
        raise error(
            f"The answer {answer!r:.200} is {names:.200} to this model, and one token is needed: give a word that is "
            "one, its name in the vocabulary, or its id; with a blank in front if it follows one."
        )

    def answer_text(self, answer: str | int) -> str:
        """The text of the one token that an answer is.

        Raises:
            InvalidInput: as `answer_id`.
        """
        text: str = self._host.decode([self.answer_id(answer)])
        return text

    def defused(self, text: str) -> str:
        """A text for a server that takes control tokens in it for such: each is broken by a zero-width space."""
        return self._control.sub(lambda match: f"{match[0][0]}\u200b{match[0][1:]}", text)

    def in_chat(self, request: AnyRequest) -> AnyRequest:
        """The request with its prompt as the user's turn; what follows it begins the assistant's.

        Raises:
            InvalidInput: the tokenizer has no chat template, or one that changes what is said.
        """
        before, between, trims = self._chat
        parts = list(request.prompt)
        for indices, strip in ((range(len(parts)), str.lstrip), (range(len(parts) - 1, -1, -1), str.rstrip)):
            for i in indices if trims else ():
                text, part = strip(_text(parts[i])), parts[i]
                parts[i] = (
                    TruncatableText(text, part.max_tokens) if isinstance(part, TruncatableText) else type(part)(text)
                )
                if text:
                    break
        return replace(request, prompt=(TrustedText(before), *parts, TrustedText(between)), chat=True)

    @cached_property
    def _chat(self) -> tuple[str, str, bool]:
        """Text of the chat template before a question and between it and its answer, and if it trims questions.

        It is rendered with an answer in it, so that a model that thinks first reads that it has done so.
        """
        name = getattr(self._host, "name_or_path", "") or type(self._host).__name__
        if not getattr(self._host, "chat_template", None):
            raise InvalidInput(
                f"{name!r:.200} has no chat template: leave chat out, or take a model that was tuned to chat."
            )
        turns = [{"role": "user", "content": f" {_QUESTION} "}, {"role": "assistant", "content": _ANSWER}]
        try:
            text = self._host.apply_chat_template(turns, tokenize=False)
        except Exception as error:  # of the template's own code
            raise InvalidInput(f"The chat template of {name!r:.200} cannot be used: {error!s:.200}") from error
        before, question, rest = text.partition(_QUESTION)
        between, answer, _ = rest.partition(_ANSWER)
        if not question or not answer:
            raise InvalidInput(
                f"The chat template of {name!r:.200} does not say question and answer as they are: {text!r:.200}."
            )
        trims = not (before.endswith(" ") and between.startswith(" "))
        return (before, between, True) if trims else (before[:-1], between[1:], False)

    def _with_secret_names(self, text: str, marks: Marks) -> str:
        pieces, offset = [], 0
        for start, end in marks:
            pieces += [text[offset:start], self._secret_names[text[start:end]]]
            offset = end
        return "".join([*pieces, text[offset:]])


def _text(part: str | TruncatableText) -> str:
    return part.text if isinstance(part, TruncatableText) else part


def _original(offsets: npt.NDArray[np.int64], marks: Marks) -> npt.NDArray[np.int64]:
    """Offsets in a text with secret names, as offsets in the text without."""
    ends = np.array([end for _, end in marks])
    longer = np.cumsum([_SECRET - (end - start) for start, end in marks])
    before = np.searchsorted(ends + longer, offsets, side="right")  # names that end at an offset or in front of it
    shifted: npt.NDArray[np.int64] = offsets - np.concatenate([[0], longer])[before]
    return shifted


def _controls(token: dict[str, Any]) -> bool:
    """Return True if an added token is markup, such as `<s>` or `<think>`, unlike words, blanks and punctuation."""
    letters = [letter.isalnum() for letter in token["content"].strip().strip("▁")]
    return token["special"] or (any(letters) and not all(letters))


def _without_control_tokens(serialised: str) -> tuple[str, dict[str, str]]:
    """The same tokenizer with unguessable names for its control tokens, and nothing added, cut or padded; the names."""
    parts = json.loads(serialised)
    model = parts["model"]
    vocabulary = model["vocab"]
    pieces = {*vocabulary} if isinstance(vocabulary, dict) else {piece for piece, _ in vocabulary}
    # What stands for a byte controls nothing, though some tokenizers list it so: any text may need it.
    parts["added_tokens"] = [
        token
        for token in parts["added_tokens"]
        if not (_BYTE.fullmatch(token["content"]) and token["content"] in pieces)
    ]
    renamed = {
        token["content"]: f"\0{secrets.token_hex((_SECRET - 1) // 2)}"
        for token in parts["added_tokens"]
        if _controls(token)
    }
    for token in parts["added_tokens"]:
        if token["content"] in renamed:
            token |= {"content": renamed[token["content"]], "normalized": token["normalized"] and token["special"]}
    if isinstance(vocabulary, dict):
        model["vocab"] = {renamed.get(piece, piece): id_ for piece, id_ in vocabulary.items()}
    else:
        model["vocab"] = [[renamed.get(piece, piece), score] for piece, score in vocabulary]
    if model.get("unk_token") in renamed:
        model["unk_token"] = renamed[model["unk_token"]]
    parts |= {"post_processor": None, "truncation": None, "padding": None}
    return json.dumps(parts), renamed


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt with truncated documents.

    Attributes:
        text: Text of the prompt, without the target.
        tokens: Tokens of prompt and target as one string.
        in_prompt: Number of tokens of the prompt. A token with the end of the prompt and the beginning of the target
            belongs to the target.
        document_spans: Index of the first token of each document, and the one behind its last.
        over: Number of tokens by which the worst of all limits is exceeded. 0 or less if all limits are met.
        cut_tokens: Number of document tokens that were truncated.
    """

    text: str
    tokens: Tokenised
    in_prompt: int
    document_spans: list[tuple[int, int]]
    over: int
    cut_tokens: int = 0

    @property
    def lengths(self) -> list[int]:
        """Number of tokens of each document."""
        return [end - start for start, end in self.document_spans]


class PromptWithTarget(NamedTuple):
    """Tokens that a decoder-only model reads.

    Attributes:
        ids: Token ids of the prompt and the target.
        target_start: Index of the first token of the target.
        n_cut_tokens: Number of document tokens that were truncated.
        document_spans: Index of the first token of each document, and the one behind its last.
    """

    ids: list[int]
    target_start: int
    n_cut_tokens: int
    document_spans: list[tuple[int, int]]


def fit_to_budgets(
    requests: Sequence[AnyRequest], tokenizer: TextTokenizer, window: int | None, *, with_targets: bool
) -> list[Fitted]:
    """Shorten each prompt's documents until its budget and the model's window are met.

    What is kept of a document is a beginning of it that fits and uses its budget up, or does not fit with one token
    more; nothing, if not even its first character fits.

    Args:
        requests: Their prompts; `max_tokens` counts the prompt without its target.
        tokenizer: Counts the tokens.
        window: Tokens that prompt and target may have together, special tokens left out; None for no limit.
        with_targets: Whether the target follows the prompt in the same string; it is never shortened.

    Raises:
        InvalidInput: a budget leaves nothing of a document, or the target or the fixed wording alone is too long; or a
            conversation is wanted of a model without a chat template.
    """
    requests = [tokenizer.in_chat(request) if request.chat else request for request in requests]
    strings = [_string(request.prompt, request, tokenizer, with_targets) for request in requests]
    distinct = list(dict.fromkeys(strings))
    tokens = tokenizer.batch([text for text, _ in distinct], [marks for _, marks in distinct])
    tokenised = dict(zip(distinct, tokens, strict=True))
    return [
        _PromptFitter(request, tokenised[string], tokenizer, window, with_targets).fit()
        for request, string in zip(requests, strings, strict=True)
    ]


def as_one_string(
    requests: Sequence[AnyRequest],
    tokenizer: TextTokenizer,
    window: int | None,
    end_ids: Sequence[int] = (),
) -> Iterator[PromptWithTarget]:
    """Yield each prompt and its target as a decoder-only model reads them.

    Args:
        requests: Prompts, with targets or without.
        tokenizer: Of the model.
        window: Tokens of the longest string, special ones included; None for no limit.
        end_ids: Ids behind the target.

    Raises:
        InvalidInput: a target has nothing in front of it; or as `fit_to_budgets`.
    """
    max_tokens = None if window is None else window - len(tokenizer.prefix) - len(end_ids)
    for item in fit_to_budgets(requests, tokenizer, max_tokens, with_targets=bool(requests[0].target)):
        before = tokenizer.started(item.tokens.ids)
        offset = len(before) - len(item.tokens.ids)
        target_start = offset + item.in_prompt
        if not target_start:
            raise InvalidInput("A decoder-only model needs some text, or a first token, in front of the target.")
        spans = [(offset + start, offset + end) for start, end in item.document_spans]
        yield PromptWithTarget([*before, *end_ids], target_start, item.cut_tokens, spans)


def _string(prompt: Prompt, request: AnyRequest, tokenizer: TextTokenizer, with_target: bool) -> tuple[str, Marks]:
    """Join prompt and target, and return the text with its control tokens.

    A blank separates them unless one of them contains it or the chat template has its own separator.
    """
    text = prompt_text(prompt)
    if with_target:
        joined = request.chat or not text or text[-1].isspace() or request.target[0].isspace()
        text = f"{text}{request.target}" if joined else f"{text} {request.target}"
    return text, tokenizer.marks(prompt)


class _PromptFitter:
    """Truncates the documents of one prompt to its budgets. Sizes are numbers of tokens of the whole, uncut string."""

    def __init__(
        self,
        request: AnyRequest,
        tokens: Tokenised,
        tokenizer: TextTokenizer,
        window: int | None,
        with_target: bool,
    ) -> None:
        self._request, self._tokens, self._tokenizer = request, tokens, tokenizer
        self._window, self._with_target = window, with_target
        self._limits = [part.max_tokens for part in request.prompt if isinstance(part, TruncatableText)]
        self._spans = _token_spans(request.prompt, tokens)
        self._lengths = [end - start for start, end in self._spans]
        self._fitted_by_sizes: dict[tuple[int, ...], Fitted] = {}

    def fit(self) -> Fitted:
        """Return the prompt within its budgets.

        Raises:
            InvalidInput: The budgets cannot be met.
        """
        lengths = self._lengths
        uncut = self._keep(lengths)
        if uncut.over <= 0:
            return uncut
        if not any(lengths):
            raise _too_long(self._request, uncut, self._window)
        sizes = allot(lengths, self._limits, None)
        for index, limit in enumerate(self._limits):
            if limit is not None and lengths[index] > limit:

                def over_limit(size: int, index: int = index, limit: int = limit) -> int:
                    return self._keep([*sizes[:index], size, *sizes[index + 1 :]]).lengths[index] - limit

                sizes[index] = longest(over_limit, 0, lengths[index] - 1, limit)
        if (over := self._keep(sizes).over) > 0:
            sizes = self._share(sizes, over)
        n_cut = sum(lengths) - sum(map(self._complete, range(len(sizes)), sizes))
        return replace(self._keep(sizes), cut_tokens=n_cut)

    def _share(self, sizes: list[int], over: int) -> list[int]:
        """Return smaller sizes that meet the budgets of the whole prompt. Each document with text keeps some."""

        def allot_total(total: int) -> list[int]:
            return allot(sizes, [None] * len(sizes), total)

        least = sum(size > 0 for size in sizes)
        total = longest(lambda total: self._keep(allot_total(total)).over, least - 1, sum(sizes) - 1, sum(sizes) - over)
        if total < least:
            raise _too_long(self._request, self._keep([0] * len(sizes)), self._window)
        return allot_total(total)

    def _complete(self, index: int, size: int) -> int:
        """Return `size`, or less, so that no character keeps some of its tokens and loses others."""
        if size == self._lengths[index]:
            return size
        start, ends = self._spans[index][0], self._tokens.ends
        return int(np.searchsorted(ends, ends[start + size])) - start

    def _keep(self, sizes: Sequence[int]) -> Fitted:
        """Return the prompt with the first tokens of each document."""
        key = tuple(sizes)
        if key not in self._fitted_by_sizes:
            self._fitted_by_sizes[key] = self._truncate(sizes)
        return self._fitted_by_sizes[key]

    def _truncate(self, sizes: Sequence[int]) -> Fitted:
        prompt, tokens = self._request.prompt, self._tokens
        if list(sizes) != self._lengths:
            prompt = self._truncate_documents(sizes)
            tokens = self._tokenizer(*_string(prompt, self._request, self._tokenizer, self._with_target))
        text = prompt_text(prompt)
        n_prompt_tokens = int(np.searchsorted(tokens.ends, len(text), side="right"))
        spans = _token_spans(prompt, tokens)
        pairs = [
            *((end - start, limit) for (start, end), limit in zip(spans, self._limits, strict=True)),
            (n_prompt_tokens, self._request.max_tokens),
            (len(tokens.ids), self._window),
        ]
        over = max((length - limit for length, limit in pairs if limit is not None), default=0)
        return Fitted(text, tokens, n_prompt_tokens, spans, over)

    def _truncate_documents(self, sizes: Sequence[int]) -> Prompt:
        parts: list[str | TruncatableText] = []
        offset, index, ends = 0, 0, self._tokens.ends
        for part in self._request.prompt:
            if isinstance(part, TruncatableText):
                size, before = self._complete(index, sizes[index]), self._spans[index][0] - 1
                is_whole = size == self._lengths[index]
                end = len(part.text) if is_whole else int(ends[before + size]) - offset if size else 0
                parts.append(TruncatableText(part.text[:end]))
                index += 1
            else:
                parts.append(part)
            offset += len(_text(part))
        return tuple(parts)


def _too_long(request: AnyRequest, bare: Fitted, window: int | None) -> InvalidInput:
    """Whose fault it is that nothing of the documents fits, given the prompt without them."""
    target = len(bare.tokens.ids) - bare.in_prompt
    if window is not None and target >= window:
        return InvalidInput(
            f"The question, or another scored text, has {target} tokens, and the model reads {window} at once, the "
            f"prompt included. It begins with {request.target[:40]!r}. Shorten it, or choose a model with a longer "
            "window."
        )
    limits = {"of the prompt": request.max_tokens, "that the model reads at once": window}
    permitted = " and ".join(f"{limit} {of}" for of, limit in limits.items() if limit is not None)
    wording = max((part for part in request.prompt if isinstance(part, str)), key=len, default="")
    return InvalidInput(
        f"Nothing would be left of the documents: the rest of the prompt has {bare.in_prompt} tokens, the text behind "
        f"it {target}, and {permitted} are allowed. The longest part of the wording begins with {wording[:40]!r}. "
        "Shorten the instruction, the demonstrations or the question, or allow more tokens."
    )


def _token_spans(prompt: Prompt, tokens: Tokenised) -> list[tuple[int, int]]:
    """Return the index of the first token of each document, and the one behind its last."""
    spans, start = [], 0
    for part in prompt:
        end = start + len(_text(part))
        if isinstance(part, TruncatableText):
            # A token that begins with the blank in front of a document belongs to the document if it ends inside.
            first, last = np.searchsorted(tokens.ends, (start, end), side="right")
            spans.append((int(first), int(last)))
        start = end
    return spans


def allot(lengths: Sequence[int], limits: Sequence[int | None], total: int | None) -> list[int]:
    """Tokens that each document may keep: its own limit first, then the longest ones give way.

    Args:
        lengths: Tokens of each document.
        limits: Limit of each document, or None.
        total: Limit of all documents together, or None.

    Returns:
        One number per document, at most its length; the documents that remain longest are equally long.

    Raises:
        InvalidInput: a document that has text would keep nothing of it.

    >>> allot([300, 50, 90], [230, 230, 230], 200)
    [75, 50, 75]
    >>> allot([300, 50, 90], [230, 230, 230], None)
    [230, 50, 90]
    """
    sizes = [
        length if limit is None else max(0, min(length, limit)) for length, limit in zip(lengths, limits, strict=True)
    ]
    if total is not None:
        n_free, n_pending = max(total, 0), len(sizes)
        for position in sorted(range(len(sizes)), key=sizes.__getitem__):  # longer ones get the rest of short ones
            sizes[position] = min(sizes[position], n_free // n_pending)
            n_free -= sizes[position]
            n_pending -= 1
    for position, (length, keep) in enumerate(zip(lengths, sizes, strict=True)):
        if length and not keep:
            raise InvalidInput(
                f"Nothing would be left of document {position + 1} of {len(lengths)} ({length} tokens). Allow more "
                "tokens for the prompt or the document, or shorten the instruction or the demonstrations."
            )
    return sizes


def longest(over: Callable[[int], int], fits: int, most: int, guess: int) -> int:
    """A size that fits, and that uses its limit up or does not fit with one more.

    Lengths of texts cut to a size mostly grow with it, but need not. Whatever they do, the search ends after
    `_GUESSES` + log2(most - fits) + 1 tries.

    Args:
        over: By how many tokens a size exceeds its limit; below 0 where there is room.
        fits: A size that fits, not tried.
        most: The largest size that is wanted.
        guess: The size to try first; the others follow from what it is over.

    >>> longest(lambda size: size - 7, 0, 100, guess=50)
    7
    >>> longest(lambda size: 4 * -(-size // 4) - 6, 0, 100, guess=6)  # four tokens for a character, so eight are over
    4
    """
    too_long, tries = most + 1, 0
    while too_long - fits > 1:
        size = min(max(guess, fits + 1), too_long - 1) if tries < _GUESSES else (fits + too_long) // 2
        tries += 1
        excess = over(size)
        if excess > 0:
            too_long = size
        else:
            fits = size
        if excess == 0:
            break
        guess = size - excess
    return fits


class TokenModel(LanguageModel):
    """A model that reads tokens; the keyword-only arguments of its class are its options, `chat` among them.

    Args:
        name: Model id, directory or address.
        arguments: The constructor's `locals()`.
    """

    tells_next_tokens = True

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        parameters = inspect.signature(type(self).__init__).parameters.values()
        self._name = name
        self._options = {one.name: arguments[one.name] for one in parameters if one.kind is one.KEYWORD_ONLY}

    @property
    def options(self) -> dict[str, Any]:
        """The options, as given."""
        return dict(self._options)

    @property
    @abstractmethod
    def tokenizer(self) -> TextTokenizer:
        """The model's tokenizer; loads it if need be.

        Raises:
            InvalidInput: it cannot be loaded.
        """

    def first_tokens(self, text: str, count: int) -> str:
        """The longest beginning of a text that has at most `count` tokens, special ones not counted.

        Longest as budgets have it: it has `count` tokens, or more than that with one token more of the text.
        """
        request = Request((TruncatableText(text, count),), "")
        [fitted] = fit_to_budgets([request], self.tokenizer, None, with_targets=False)
        return fitted.text

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, special tokens not counted."""
        return len(self.tokenizer(text).ids)

    def _with_chat(self, requests: Sequence[Request]) -> Sequence[Request]:
        """Requests that leave it to the model's option whether they are a conversation, with that option."""
        if not self._options["chat"]:
            return requests
        return [replace(request, chat=True) if request.chat is None else request for request in requests]

    def _end(self, include_eos: bool) -> list[int]:
        """Ids behind a target."""
        if include_eos and self.tokenizer.eos_id is None:
            raise InvalidInput("This model has no end-of-sequence token: pass include_eos=False.")
        return [self.tokenizer.eos_id] if include_eos and self.tokenizer.eos_id is not None else []

    def __reduce__(self) -> tuple[Any, ...]:
        """Without weights and connections: they are loaded and made again."""
        return partial(type(self), self._name, **self._options), ()
