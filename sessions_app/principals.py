"""Who asks: the owner, or an agent by its token. Pure."""

from dataclasses import dataclass, field

# What a token may be given; the owner may do all of it and more.
READ, WRITE, CAPACITY, LEVELS = "read", "write", "capacity", "levels"
RIGHTS = (READ, WRITE, CAPACITY, LEVELS)


@dataclass(frozen=True)
class Principal:
    """`token_id` None: the owner. `agent`: whose sessions, as its logs and hooks bring them, the token may
    act for; "" = only those that it opened itself. `workspaces` None: not limited to some."""

    name: str
    token_id: int | None = None
    agent: str = ""
    rights: frozenset[str] = field(default_factory=frozenset)
    workspaces: frozenset[str] | None = None

    @property
    def is_owner(self) -> bool:
        return self.token_id is None

    @property
    def actor(self) -> str:
        """As the ledger names it."""
        return "owner" if self.is_owner else f"token:{self.name}"

    def may(self, right: str) -> bool:
        return self.is_owner or right in self.rights

    def may_enter(self, workspace_key: str) -> bool:
        return self.workspaces is None or workspace_key in self.workspaces


OWNER_PRINCIPAL = Principal("owner")
