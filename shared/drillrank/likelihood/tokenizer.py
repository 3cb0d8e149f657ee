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
from functools import cache, cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, LacksCapability, require
from drillrank.likelihood.base import LanguageModel, NextTokenRequest, Request
from drillrank.prompts import Prompt, TruncatableText, TrustedText, prompt_text
from drillrank.text import without_surrogates

_SECRET = 17  # characters of a control token's name here
_BYTE = re.compile("<0x[0-9A-F]{2}>")
_GUESSES = 4  # then the search for a length halves what is left
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
        self._marks_in = lru_cache(256)(lambda text: [found.span() for found in find(text)])  # wording is shared
        self._host = tokenizer
        self.text_tokens = max(self._backend.get_vocab(with_added_tokens=False).values(), default=-1) + 1
        self.token_names: list[str] = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        self.eos_id: int | None = tokenizer.eos_token_id
        unknown = getattr(self._backend.model, "unk_token", None)
        self._unknown = {tokenizer.unk_token_id, None if unknown is None else self._backend.token_to_id(unknown)}
        bare = self("a").ids
        whole: list[int] = tokenizer("a")["input_ids"]
        places = [at for at in range(len(whole) - len(bare) + 1) if whole[at : at + len(bare)] == bare]
        if not places:
            raise InvalidInput(f"The special tokens of {type(tokenizer).__name__} around a text are not understood.")
        self.prefix, self.suffix = whole[: places[0]], whole[places[0] + len(bare) :]

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
        """Where in the prompt's text its trusted wording holds control tokens."""
        found: list[tuple[int, int]] = []
        at = 0
        for part in prompt:
            if isinstance(part, TrustedText):
                found += [(at + start, at + end) for start, end in self._marks_in(part)]
            at += len(_text(part))
        return tuple(found)

    def started(self, ids: list[int]) -> list[int]:
        """A tokenised prompt behind the tokens of `prefix`, unless its wording begins with them, as in a chat."""
        return ids if ids[: len(self.prefix)] == self.prefix else [*self.prefix, *ids]

    def answer_id(self, answer: str | int) -> int:
        """The id of the one token that an answer is: its text, its name in the vocabulary, or its id.

        Raises:
            InvalidInput: it is no token of this model.
            LacksCapability: it is several tokens.
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
        return self._control.sub(lambda found: f"{found[0][0]}\u200b{found[0][1:]}", text)

    def in_chat(self, request: AnyRequest) -> AnyRequest:
        """The request with its prompt as the user's turn; what follows it begins the assistant's.

        Raises:
            InvalidInput: the tokenizer has no chat template, or one that changes what is said.
        """
        before, between, trims = self._chat
        parts = list(request.prompt)
        for places, strip in ((range(len(parts)), str.lstrip), (range(len(parts) - 1, -1, -1), str.rstrip)):
            for location in places if trims else ():
                text, part = strip(_text(parts[location])), parts[location]
                parts[location] = (
                    TruncatableText(text, part.max_tokens) if isinstance(part, TruncatableText) else type(part)(text)
                )
                if text:
                    break
        return replace(request, prompt=(TrustedText(before), *parts, TrustedText(between)), chat=True)

    @cached_property
    def _chat(self) -> tuple[str, str, bool]:
        """What the chat template writes before a question and between it and its answer; whether it trims questions.

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
        pieces, at = [], 0
        for start, end in marks:
            pieces += [text[at:start], self._secret_names[text[start:end]]]
            at = end
        return "".join([*pieces, text[at:]])


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
    """Whether an added token is markup, such as `<s>` or `<think>`; words, blanks and marks of any text are not."""
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
    """A prompt that keeps its budgets, or is on its way to them.

    Attributes:
        text: The prompt's text after shortening, without what follows it.
        tokens: The prompt and what follows it, tokenised as one string.
        in_prompt: How many of the tokens are the prompt's; a token that the target begins with is the target's.
        document_spans: Index of the first token of each document, and the one behind its last.
        over: By how many tokens the worst of all limits is exceeded; 0 or less if all are kept.
        cut_tokens: Tokens of documents that were left out.
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
        _fitted(request, tokenised[string], tokenizer, window, with_targets)
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
    left = None if window is None else window - len(tokenizer.prefix) - len(end_ids)
    for item in fit_to_budgets(requests, tokenizer, left, with_targets=bool(requests[0].target)):
        before = tokenizer.started(item.tokens.ids)
        offset = len(before) - len(item.tokens.ids)
        target_start = offset + item.in_prompt
        if not target_start:
            raise InvalidInput("A decoder-only model needs some text, or a first token, in front of the target.")
        spans = [(offset + start, offset + end) for start, end in item.document_spans]
        yield PromptWithTarget([*before, *end_ids], target_start, item.cut_tokens, spans)


def _string(prompt: Prompt, request: AnyRequest, tokenizer: TextTokenizer, with_target: bool) -> tuple[str, Marks]:
    """Prompt and target, a blank between them unless either brings one or a chat template says; its control tokens."""
    text = prompt_text(prompt)
    if with_target:
        joined = request.chat or not text or text[-1].isspace() or request.target[0].isspace()
        text = f"{text}{request.target}" if joined else f"{text} {request.target}"
    return text, tokenizer.marks(prompt)


def _fitted(
    request: AnyRequest,
    tokens: Tokenised,
    tokenizer: TextTokenizer,
    window: int | None,
    with_target: bool,
) -> Fitted:
    """One prompt within its budgets; what a document keeps is counted in tokens of the whole, uncut string."""
    limits = [part.max_tokens for part in request.prompt if isinstance(part, TruncatableText)]
    spans, ends = _token_spans(request.prompt, tokens), tokens.ends
    lengths = [last - first for first, last in spans]

    def complete(number: int, keep: int) -> int:
        """So many tokens of a document, or fewer, so that no character keeps some of its tokens and loses others."""
        first = spans[number][0]  # where the character of the first token that is left out begins
        return keep if keep == lengths[number] else int(np.searchsorted(ends, ends[first + keep])) - first

    @cache
    def keeping(*keep: int) -> Fitted:
        """The prompt with so many tokens of each document."""
        prompt, read = request.prompt, tokens
        if list(keep) != lengths:
            parts: list[str | TruncatableText] = []
            at, numbers = 0, iter(range(len(spans)))
            for part in request.prompt:
                if isinstance(part, TruncatableText):
                    number = next(numbers)
                    count, last = complete(number, keep[number]), spans[number][0] - 1
                    end = len(part.text) if count == lengths[number] else int(ends[last + count]) - at if count else 0
                    parts.append(TruncatableText(part.text[:end]))
                else:
                    parts.append(part)
                at += len(_text(part))
            prompt = tuple(parts)
            read = tokenizer(*_string(prompt, request, tokenizer, with_target))
        text = prompt_text(prompt)
        in_prompt = int(np.searchsorted(read.ends, len(text), side="right"))
        found = _token_spans(prompt, read)
        sizes = [last - first for first, last in found]
        pairs = [*zip(sizes, limits, strict=True), (in_prompt, request.max_tokens), (len(read.ids), window)]
        over = max((length - limit for length, limit in pairs if limit is not None), default=0)
        return Fitted(text, read, in_prompt, found, over)

    whole = keeping(*lengths)
    if whole.over <= 0:
        return whole
    if not any(lengths):
        raise _too_long(request, whole, window)
    keep = allot(lengths, limits, None)
    for number, limit in enumerate(limits):
        if limit is not None and lengths[number] > limit:

            def over_limit(size: int, number: int = number, limit: int = limit) -> int:
                return keeping(*keep[:number], size, *keep[number + 1 :]).lengths[number] - limit

            keep[number] = longest(over_limit, 0, lengths[number] - 1, limit)
    if (over := keeping(*keep).over) > 0:  # then all of them share what there is; each that has something keeps some

        def shared(total: int) -> list[int]:
            return allot(keep, [None] * len(keep), total)

        least = sum(size > 0 for size in keep)
        total = longest(lambda total: keeping(*shared(total)).over, least - 1, sum(keep) - 1, sum(keep) - over)
        if total < least:
            raise _too_long(request, keeping(*[0] * len(spans)), window)
        keep = shared(total)
    left_out = sum(lengths) - sum(map(complete, range(len(keep)), keep))
    return replace(keeping(*keep), cut_tokens=left_out)


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
    """First token and the one behind the last of each document."""
    spans, at = [], 0
    for part in prompt:
        end = at + len(_text(part))
        if isinstance(part, TruncatableText):
            # A token may begin with the blank in front of a document: it belongs to it if it ends inside.
            first, last = np.searchsorted(tokens.ends, (at, end), side="right")
            spans.append((int(first), int(last)))
        at = end
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
        left, pending = max(total, 0), len(sizes)
        for position in sorted(range(len(sizes)), key=sizes.__getitem__):  # what short ones leave goes to longer ones
            sizes[position] = min(sizes[position], left // pending)
            left -= sizes[position]
            pending -= 1
    for position, (length, keep) in enumerate(zip(lengths, sizes, strict=True)):
        if length and not keep:
            raise InvalidInput(
                f"Nothing would be left of document {position + 1} of {len(lengths)} ({length} tokens): allow more "
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
        given: The constructor's `locals()`.
    """

    tells_next_tokens = True

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        parameters = inspect.signature(type(self).__init__).parameters.values()
        self._name = name
        self._options = {one.name: given[one.name] for one in parameters if one.kind is one.KEYWORD_ONLY}

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
