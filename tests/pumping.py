"""Texts on which a regular expression or a parser may take more than linear time, and the measurement of their work.

A shape is a text of any length: a prefix, a pump that is repeated, and a suffix. Shapes of a regular expression are
drawn from its parse tree. CPU time is compared between lengths, so other load on the machine hardly matters.
"""

from __future__ import annotations

import ast
import builtins
import gc
import importlib
import inspect
import pkgutil
import random
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import FrameType, ModuleType
from typing import Any, NamedTuple

try:
    from re import _compiler, _parser
except ImportError:  # Python 3.10
    import sre_compile as _compiler
    import sre_parse as _parser

Work = Callable[[str], object]

_CHARACTERS = " \n\r\ta1AxZ0_-.,:;'\"<>{}[]()#*=|\\/`$%&@!?+~^Ié東\u00ad\u00a0²٣\u0301•\0"
_LEAST_REPEAT = 16  # a part that is repeated less often is not pumped
_GENERIC = [" ", "\n", "\r\n", "\r", "\t", "a", "1", "a ", "1,", "1.", ". ", "-", "\u00a0", "\u0301", '"', "(", "a\n"]
_ENDS = ["", "\0", "\n", "x", "!\n"]
_LIMIT_S = 2.0
_RATIO = 2.0  # of the growth that linear work would show


class Shape(NamedTuple):
    """Text of any length.

    Attributes:
        prefix: Its begin.
        pump: The part that is repeated.
        suffix: Its end.
        closer: A part that is repeated as often as the pump, after it.
    """

    prefix: str
    pump: str
    suffix: str = ""
    closer: str = ""

    def text(self, size: int) -> str:
        """Return the text of about `size` characters."""
        count = max(size // (len(self.pump) + len(self.closer)), 1)
        return self.prefix + self.pump * count + self.closer * count + self.suffix


class UsedPattern(NamedTuple):
    """Regular expression of the product, with the calls that use it.

    Attributes:
        name: Module and line, or module and variable.
        pattern: The compiled pattern.
        methods: Names of the methods by which it is used, such as "search".
    """

    name: str
    pattern: re.Pattern[str]
    methods: frozenset[str]


class Growth(NamedTuple):
    """Work that grew faster than its input.

    Attributes:
        shape: The text.
        sizes: The last two sizes in characters.
        seconds: CPU seconds for each of them; infinite if the work was stopped.
    """

    shape: Shape
    sizes: tuple[int, int]
    seconds: tuple[float, float]

    def __str__(self) -> str:
        times = ", ".join(f"{s:.3f} s for {n}" for s, n in zip(self.seconds, self.sizes, strict=True))
        return f"{times} characters of {tuple(self.shape)!r:.300}"


class TooSlowError(BaseException):
    """The work used more CPU time than allowed. No handler of the product catches it."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Stop the block after CPU seconds. The matcher of regular expressions, too, looks for signals now and then."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def cpu_seconds(work: Work, text: str, runs: int = 1) -> float:
    """Return the least CPU time of some runs; infinity if one exceeds the limit."""
    least = float("inf")
    gc_was_enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(runs):
            begin = time.thread_time()
            with cpu_limit(_LIMIT_S):
                work(text)
            least = min(least, time.thread_time() - begin)
    except TooSlowError:
        return float("inf")
    finally:
        if gc_was_enabled:
            gc.enable()
    return least


def find_growth(work: Work, shape: Shape, sizes: Sequence[int], enough: float) -> Growth | None:
    """Return how work grew faster than twice as fast as its input, or None if it did not.

    Args:
        work: Takes the text.
        shape: Text to give to it.
        sizes: Rising sizes in characters.
        enough: CPU seconds that can be measured well. Smaller sizes are passed over.
    """
    size, seconds = sizes[0], cpu_seconds(work, shape.text(sizes[0]))
    if seconds == float("inf"):
        return Growth(shape, (0, size), (0.0, seconds))
    for next_size in sizes[1:]:
        next_seconds = cpu_seconds(work, shape.text(next_size))
        linear = next_size / size
        if next_seconds == float("inf"):
            return Growth(shape, (size, next_size), (seconds, next_seconds))
        if next_seconds >= enough and next_seconds > _RATIO * linear * seconds:
            # Measure again: another process may have disturbed it.
            seconds = cpu_seconds(work, shape.text(size), 3)
            next_seconds = min(next_seconds, cpu_seconds(work, shape.text(next_size)))
            if next_seconds >= enough and next_seconds > _RATIO * linear * seconds:
                return Growth(shape, (size, next_size), (seconds, next_seconds))
        if next_seconds >= enough and (next_seconds < 1.25 * linear * seconds or next_seconds > _LIMIT_S / 4):
            return None
        size, seconds = next_size, next_seconds
    return None


def pattern_work(used: UsedPattern) -> Work:
    """Return a function that uses a pattern as the product does."""
    pattern = used.pattern
    calls: list[Work] = []
    if "match" in used.methods:
        calls.append(pattern.match)
    if "fullmatch" in used.methods:
        calls.append(pattern.fullmatch)
    if "search" in used.methods:
        calls.append(pattern.search)
    if used.methods & {"sub", "subn", "split", "findall", "finditer"} or not calls:
        calls.append(pattern.findall)
    return lambda text: [call(text) for call in calls]


# --- Shapes of a regular expression


@dataclass
class _Sampler:
    """Draws strings that parts of a parsed regular expression match.

    Attributes:
        state: The state of the parser, which has the flags.
        rng: Source of the choices.
    """

    state: Any
    rng: random.Random

    def sample(self, nodes: Sequence[Any]) -> str:
        """Return a string that a sequence of nodes is likely to match."""
        return "".join(self._sample_node(*node) for node in nodes)

    def _sample_node(self, op: Any, value: Any) -> str:
        name = str(op)
        if name == "LITERAL":
            return chr(value)
        if name in ("IN", "ANY", "NOT_LITERAL", "CATEGORY", "RANGE"):
            return self.rng.choice(self._members(op, value) or [""])
        if name == "BRANCH":
            return self.sample(self.rng.choice(value[1]))
        if name == "SUBPATTERN":
            return self.sample(value[3])
        if name == "ATOMIC_GROUP":
            return self.sample(value)
        if name.endswith("_REPEAT"):
            least, most, body = value
            return "".join(self.sample(body) for _ in range(min(least + self.rng.randint(0, 1), most)))
        return ""  # assertions and places have no width, and repeated groups are rare

    def _members(self, op: Any, value: Any) -> list[str]:
        node = _parser.SubPattern(self.state, [(op, value)])
        return _matching_characters(_compiler.compile(node, self.state.flags & ~re.DEBUG), self.state.flags)

    def repeats(self, nodes: Sequence[Any], prefix: str = "") -> Iterator[tuple[str, Sequence[Any], str]]:
        """Yield each part that may be repeated often: what leads to it, its body, and what may follow it."""
        for index, (op, value) in enumerate(nodes):
            name = str(op)
            follow = self.sample(nodes[index + 1 :])
            inner: list[Sequence[Any]] = []
            if name.endswith("_REPEAT"):
                if value[1] >= _LEAST_REPEAT:
                    yield prefix, value[2], follow
                inner = [value[2]]
            elif name == "BRANCH":
                inner = list(value[1])
            elif name == "SUBPATTERN":
                inner = [value[3]]
            elif name == "ATOMIC_GROUP":
                inner = [value]
            elif name in ("ASSERT", "ASSERT_NOT"):
                inner = [value[1]]
            for body in inner:
                for before, repeated, after in self.repeats(body, prefix):
                    yield before, repeated, after + follow
            prefix += self._sample_node(op, value)


@cache
def _matching_characters(pattern: re.Pattern[str], flags: int) -> list[str]:
    return [character for character in _CHARACTERS if pattern.fullmatch(character)]


def pattern_shapes(pattern: re.Pattern[str], count: int, seed: int = 0) -> list[Shape]:
    """Return some shapes for a pattern, other ones for another seed."""
    rng = random.Random(f"{pattern.pattern!a}{seed}")
    parsed = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    sampler = _Sampler(parsed.state, rng)
    shapes = {Shape("", pump, rng.choice(_ENDS)): None for pump in _GENERIC}
    for _ in range(count):
        for prefix, body, follow in sampler.repeats(parsed.data):
            once, again = sampler.sample(body), sampler.sample(body)
            pumps = [once, once + again, prefix + once, prefix + once + follow, once + follow, follow + once, prefix]
            for pump in rng.sample(pumps, 3):
                ends = [*_ENDS, follow[:-1], follow + "\0"]
                if pump:
                    shapes[Shape(rng.choice([prefix, prefix, ""]), pump, rng.choice(ends))] = None
    return list(shapes)


# --- Regular expressions of a package


_METHODS = {"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}


class _Placeholders(dict[str, Any]):
    """Namespace in which every name that only a function knows is a short text."""

    def __missing__(self, name: str) -> str:
        if name in vars(builtins):
            raise KeyError(name)
        return "sea side"


def used_methods(tree: ast.AST) -> dict[str, frozenset[str]]:
    """Return the methods that are called or passed on, by the name of the variable that has the pattern."""
    methods: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _METHODS:
            owner = node.value.value if isinstance(node.value, ast.Subscript) else node.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            methods.setdefault(name, set()).add(node.attr)
    return {name: frozenset(names) for name, names in methods.items()}


def written_patterns(tree: ast.AST, module: ModuleType) -> tuple[list[UsedPattern], list[str]]:
    """Return the patterns written in a module's calls of `re`, and the calls whose pattern cannot be evaluated.

    Parts of a pattern that only a function knows, such as an escaped title, are replaced by a short text.
    """
    patterns: list[UsedPattern] = []
    unknown: list[str] = []
    names = _Placeholders(vars(module))
    later = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        called = node.func
        owner = called.value.id if isinstance(called.value, ast.Name) else ""
        if owner != "re" or called.attr not in _METHODS | {"compile"}:
            continue
        first_flag = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(called.attr, 2)
        flags = [keyword.value for keyword in node.keywords if keyword.arg == "flags"]
        written = [node.args[0], *node.args[first_flag : first_flag + 1], *flags]
        try:
            values = [eval(compile(ast.Expression(part), module.__name__, "eval"), {}, names) for part in written]
            pattern = re.compile(*values)
        except (NameError, TypeError, AttributeError):
            unknown.append(f"{module.__name__}: {ast.unparse(node.args[0])}")
            continue
        if isinstance(pattern.pattern, str):
            patterns.append(
                UsedPattern(
                    f"{module.__name__}:{node.lineno}",
                    pattern,
                    frozenset({called.attr, later.get(id(node))} & _METHODS),
                )
            )
    return patterns, unknown


def modules_of(*packages: str) -> list[ModuleType]:
    """Import all modules of some packages, other than `__main__`."""
    names = list(packages)
    for package in packages:
        path = importlib.import_module(package).__path__
        names += [module.name for module in pkgutil.walk_packages(path, f"{package}.")]
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]


def used_patterns(modules: Sequence[ModuleType]) -> tuple[list[UsedPattern], list[str]]:
    """Return all patterns of some modules, and the calls of `re` whose pattern cannot be evaluated."""
    by_key: dict[tuple[str, int], UsedPattern] = {}
    unknown: list[str] = []

    def add(name: str, pattern: re.Pattern[str], methods: frozenset[str]) -> None:
        key = (pattern.pattern, pattern.flags)
        before = by_key.get(key, UsedPattern(name, pattern, frozenset()))
        by_key[key] = before._replace(methods=before.methods | methods)

    trees = {module: ast.parse(inspect.getsource(module)) for module in modules if module.__file__}
    public: dict[str, frozenset[str]] = {}
    for tree in trees.values():
        for name, methods in used_methods(tree).items():
            public[name] = public.get(name, frozenset()) | methods
    for module, tree in trees.items():
        own = used_methods(tree)
        # A pattern that no call names is used under another name, such as `self._pattern`.
        others = [methods - {"split"} for name, methods in own.items() if name not in vars(module)]
        under_other_names = frozenset[str]().union(*others)
        for name, value in vars(module).items():
            if not isinstance(value, type) or value.__module__ == module.__name__:
                methods = (own if name.startswith("_") else public).get(name, frozenset())
                for pattern in patterns_in(value):
                    add(f"{module.__name__}.{name}", pattern, methods or under_other_names)
        patterns, more = written_patterns(tree, module)
        unknown += more
        for used in patterns:
            is_new = (used.pattern.pattern, used.pattern.flags) not in by_key
            add(used.name, used.pattern, used.methods or (under_other_names if is_new else used.methods))
    return list(by_key.values()), unknown


def patterns_in(values: object, depth: int = 3) -> Iterator[re.Pattern[str]]:
    """Yield the patterns in a value: itself, in a container or in the attributes of a class."""
    if isinstance(values, re.Pattern):
        if isinstance(values.pattern, str):
            yield values
    elif depth and isinstance(values, dict):
        for value in list(values.values()):
            yield from patterns_in(value, depth - 1)
    elif depth and isinstance(values, (list, tuple, set, frozenset)):
        for value in values:
            yield from patterns_in(value, depth - 1)
    elif depth and isinstance(values, type):
        yield from patterns_in(dict(vars(values)), depth - 1)
