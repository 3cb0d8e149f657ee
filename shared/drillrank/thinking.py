"""What a model says once it has thought: reasoning models send their thoughts along, between marks."""

from __future__ import annotations

import re

_TAG = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|analysis|scratchpad|reflection)"
_MARK = re.compile(
    rf"(?P<open><\s*{_TAG}\s*>|\[{_TAG}\]|◁think▷|<\|channel\|>\s*analysis\s*<\|message\|>|<\|begin_of_thought\|>)"
    rf"|(?P<close><\s*/\s*{_TAG}\s*>|\[/{_TAG}\]|◁/think▷|<\|channel\|>\s*final\s*<\|message\|>|<\|end_of_thought\|>)",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"<\|[a-z_]{1,30}\|>(?:assistant)?")


def without_thoughts(answer: str) -> str | None:
    """What an answer says beside its thoughts; None if these never end and nothing else is said.

    Thoughts whose opening mark the server has cut off go too.

    >>> without_thoughts("<think>Is it 2? No, 3.</think> 3"), without_thoughts("Is it 2? No, 3.</think> 3")
    (' 3', ' 3')
    >>> without_thoughts("<think>Is it 2? Hm") is None
    True
    """
    said: list[str] = []
    at = depth = 0
    for mark in _MARK.finditer(answer):
        if mark["open"]:
            if not depth:
                said.append(answer[at : mark.start()])
            depth = 1
        else:
            if not depth:
                said.clear()
            depth = 0
        at = mark.end()
    if not depth:
        said.append(answer[at:])
    spoken = _CONTROL.sub(" ", "".join(said))
    return None if depth and not spoken.strip() else spoken
