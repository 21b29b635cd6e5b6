"""The one rule of who may see which records. Every read takes a Scope and applies it in the query."""

from dataclasses import dataclass, field

from django.db.models import Q

from .models import Scope as Pool


@dataclass(frozen=True)
class Scope:
    """`workspace_keys` None: every workspace. Private records of a session are seen by `session_ids` only,
    and those in `granted` (record id, its session) besides: what a fork inherited is in its parent's pool."""

    workspace_keys: frozenset[str] | None
    pools: frozenset[str] = frozenset({Pool.SESSION, Pool.WORKSPACE})
    session_ids: frozenset[str] = field(default_factory=frozenset)
    is_owner: bool = False
    granted: frozenset[tuple[str, str]] = field(default_factory=frozenset)

    def q(self) -> Q:
        """A filter for records."""
        visible = self.totals_q()
        if self.granted and not self.is_owner:
            visible |= Q(pk__in=self._granted_ids)
        return visible

    def totals_q(self) -> Q:
        """A filter for their running totals, which count by pool: single records of others don't show."""
        if self.is_owner:
            return Q()
        visible = Q(pk__in=[])
        if Pool.WORKSPACE in self.pools:
            visible |= Q(scope=Pool.WORKSPACE) & self._in_workspaces()
        # A record that lost its session has an empty id, and nobody's session is called that.
        if Pool.SESSION in self.pools and (named := self.session_ids - {""}):
            visible |= Q(scope=Pool.SESSION, session_id__in=sorted(named))
        return visible

    def pools_q(self) -> list[Q]:
        """The same as disjoint parts, a pool each where the pools are known."""
        if self.is_owner:
            return [self.q()]
        pools: list[Q] = []
        if Pool.WORKSPACE in self.pools:
            keys = self.workspace_keys
            pools += (
                [Q(scope=Pool.WORKSPACE)]
                if keys is None
                else [Q(workspace_key=key, scope=Pool.WORKSPACE) for key in sorted(keys)]
            )
        if Pool.SESSION in self.pools:
            sessions = sorted(self.session_ids - {""})
            pools += [Q(scope=Pool.SESSION, session_id=session) for session in sessions]
        if self.granted:
            inherited = Q(pk__in=self._granted_ids)
            pools.append(inherited & ~self.totals_q() if pools else inherited)
        return pools

    @property
    def private_sessions(self) -> frozenset[str]:
        """Whose private records are seen, all of them or some."""
        own = self.session_ids if Pool.SESSION in self.pools else frozenset()
        return (own | {session for _, session in self.granted}) - {""}

    @property
    def _granted_ids(self) -> list[str]:
        return sorted(record_id for record_id, _ in self.granted)

    def _in_workspaces(self) -> Q:
        return Q() if self.workspace_keys is None else Q(workspace_key__in=sorted(self.workspace_keys))


OWNER = Scope(workspace_keys=None, is_owner=True)
