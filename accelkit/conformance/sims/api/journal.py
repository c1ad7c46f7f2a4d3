"""What was asked of a server. Not here: what it answered, but for the status."""

from attrs import define, field

_WRITES = {"create", "update", "patch", "delete", "deletecollection"}


@define(kw_only=True)
class Asked:
    """One request, noted when it came."""

    verb: str
    """As roles name it; for what is no resource the method in lower case."""
    path: str
    group: str = ""
    plural: str = ""
    sub: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""
    agent: str = ""
    """The user agent."""
    dry_run: bool = False
    query: str = ""
    status: int = 0
    """Of the answer; 0: none was sent yet."""

    @property
    def writes(self) -> bool:
        return self.verb in _WRITES and bool(self.plural) and not self.plural.startswith("self")


@define
class Journal:
    """Every request, the oldest first."""

    asked: list[Asked] = field(factory=list)

    def note(self, asked: Asked) -> None:
        self.asked.append(asked)

    def of(self, **fields: object) -> list[Asked]:
        """The requests whose fields have these values."""
        return [
            asked
            for asked in self.asked
            if all(getattr(asked, name) == value for name, value in fields.items())
        ]

    def writes(self, plural: str = "", *, agent: str = "", dry_run: bool = False) -> list[Asked]:
        """The requests that were meant to change something."""
        return [
            asked
            for asked in self.asked
            if asked.writes
            and asked.dry_run == dry_run
            and plural in {"", asked.plural}
            and asked.agent.startswith(agent)
        ]
