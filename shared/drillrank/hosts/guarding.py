"""What a component may see of what is stored: its own filter, and what the source that it asks is restricted by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from drillrank.errors import InvalidInput
from drillrank.hosts.filters import tell_hidden
from drillrank.hosts.keys import in_views


class Described(Protocol):
    """A host's node or document."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What a filter reads."""
        ...

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Any:
        """The same with other metadata."""
        ...


Record = TypeVar("Record", bound=Described)


class Guarding(Generic[Record]):
    """Base of the hosts' guards: they read filters, this one applies them.

    Args:
        own: Whether a record passes the component's own filter; None lets everything pass.
    """

    _records: ClassVar[str]
    """What the host calls records."""

    _remedy: ClassVar[str]
    """The argument for a filter that can be read."""

    def __init__(self, own: Callable[[Record], bool] | None) -> None:
        self._own = own
        self._inherited: list[Callable[[Record], bool] | None] = []
        self._unreadable = ""

    def _inherit(self, read: Callable[[], Callable[[Record], bool] | None], shown: str) -> None:
        """Take over what a source restricts its searches by: what `read` returns, or `shown` if that cannot be read."""
        try:
            self._inherited.append(read())
        except InvalidInput:
            self._unreadable = self._unreadable or shown

    def _sees(self, record: Record) -> bool:
        return self._own is None or self._own(record)

    def _tell(self, found: Sequence[object], seen: Sequence[object], told_by: str) -> None:
        """Warn in a component's name if none of some records is seen; without a name, nobody does."""
        if found and not seen and told_by:
            tell_hidden(told_by, self.restriction)

    def kept(self, records: Iterable[Record], told_by: str = "") -> list[Record]:
        """Those of a source's records that pass the component's own filter; if none of some does, it is told.

        Args:
            records: What the source brought.
            told_by: The component that warns; without a name none does.
        """
        found = list(records)
        seen = [record for record in found if self._sees(record)]
        self._tell(found, seen, told_by)
        return seen

    def allowed(self, records: Iterable[Record]) -> list[Record]:
        """Those that may be looked up beside the source: the source's filter governs them, too.

        Raises:
            InvalidInput: the source has a filter that cannot be checked here.
        """
        if self._own is None and self._unreadable:
            raise InvalidInput(
                f"The retriever searches with {self._unreadable}, which drillrank cannot check on {self._records} that "
                f"it fetches beside it: pass {self._remedy} to True or False."
            )
        return self.visible(records)

    def visible(self, records: Iterable[Record]) -> list[Record]:
        """Those that pass all filters that can be read; others may hide some of them."""
        return [record for record in self.kept(records) if self._passes(record)]

    def _passes(self, record: Record) -> bool:
        """Whether what the source searches for may be a view of the record's section."""
        forms = [record.model_copy(update={"metadata": form}) for form in in_views(record.metadata)]
        return all(holds is None or any(map(holds, forms)) for holds in self._inherited)

    @property
    def restriction(self) -> str:
        """What decides on what may be seen, for a message; empty if all may be."""
        return "the filter" if self.restricts else ""

    @property
    def restricts(self) -> bool:
        """Whether there is anything that may not be seen."""
        return self._own is not None or bool(self._unreadable) or any(holds is not None for holds in self._inherited)
