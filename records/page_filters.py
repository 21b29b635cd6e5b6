"""The filters of the Memory page, as its address has them."""

from dataclasses import asdict, dataclass
from urllib.parse import urlencode

from django.db.models import Q
from django.http import QueryDict

from .models import Kind, Scope, Status
from .queries import Filters as QueryFilters
from .scope import OWNER
from .scope import Scope as Visible

# The first one holds unless another is asked for.
ORDERS = (("created", "newest"), ("oldest", "oldest"), ("tokens", "largest"), ("title", "title"))


@dataclass(frozen=True)
class _OnePool(Visible):
    """The owner's view of one scope."""

    pool: str = ""

    def q(self) -> Q:
        return Q(scope=self.pool)


@dataclass(frozen=True)
class Filters:
    """ "" = not filtered by it."""

    q: str = ""
    kind: str = ""
    status: str = ""
    scope: str = ""
    tier: str = ""
    workspace: str = ""
    agent: str = ""
    session: str = ""
    tag: str = ""
    order: str = ""

    @classmethod
    def of(cls, query: QueryDict) -> "Filters":
        given = {name: query.get(name, "").replace("\0", "").strip() for name in cls.__dataclass_fields__}
        allowed = {
            "kind": Kind.values,
            "status": Status.values,
            "scope": Scope.values,
            "tier": ["hot", "cold"],
            "order": [value for value, _ in ORDERS[1:]],
        }
        for name, values in allowed.items():
            if given[name] not in values:
                given[name] = ""
        return cls(**given)

    @property
    def is_any(self) -> bool:
        return bool(self.q) or self.is_filtered

    @property
    def is_filtered(self) -> bool:
        """By something besides text."""
        return self.is_narrowed or any((self.kind, self.session, self.tag))

    @property
    def is_narrowed(self) -> bool:
        """By one of the choices that a small screen folds away."""
        return any((self.status, self.scope, self.tier, self.workspace, self.agent))

    def query(self, **more: str) -> str:
        return urlencode({name: value for name, value in (asdict(self) | more).items() if value})

    @property
    def without_session(self) -> str:
        return self.query(session="")

    @property
    def without_tag(self) -> str:
        return self.query(tag="")

    @property
    def text_alone(self) -> str:
        return urlencode({"q": self.q})

    @property
    def visible(self) -> Visible:
        """Whose records are meant."""
        return _OnePool(None, is_owner=True, pool=self.scope) if self.scope else OWNER

    @property
    def of_records(self) -> QueryFilters:
        """What is left besides scope, text and order."""
        return {
            "kinds": [self.kind] if self.kind else (),
            "statuses": [self.status] if self.status else (),
            "workspace_key": self.workspace or None,
            "session_id": self.session or None,
            "cold": None if not self.tier else self.tier == "cold",
            "tag": self.tag or None,
            "agent": self.agent or None,
        }
