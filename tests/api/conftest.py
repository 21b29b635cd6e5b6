"""Agents and the owner as they come to the API."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from memex_site.tokens import token_create


@dataclass
class Caller:
    """Calls as one agent, or as the owner with a browser's session."""

    client: Client
    token: str = ""

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def get(self, route: str, /, **query: Any) -> Any:
        return self.client.get(f"/api/{route}", query, headers=self.headers())

    def post(
        self, route: str, /, body: Any = None, headers: dict[str, str] | None = None, **fields: Any
    ) -> Any:
        data = body if isinstance(body, bytes | str) else json.dumps(fields if body is None else body)
        return self.client.post(
            f"/api/{route}",
            data,
            content_type="application/json",
            headers={**self.headers(), **(headers or {})},
        )

    def hook(self, agent: str, event: str, **payload: Any) -> Any:
        return self.client.post(
            f"/hooks/{agent}/{event}",
            json.dumps(payload),
            content_type="application/json",
            headers=self.headers(),
        )


@pytest.fixture
def agents(memex_home, settings, tmp_path) -> Path:
    """Where the agents keep their logs."""
    cache.clear()
    settings.AGENT_HOMES = {name: tmp_path / name for name in ("claude-code", "codex", "dsh")}
    settings.MEMEX_IDLE_ARCHIVE_HOURS = 0
    return tmp_path


@pytest.fixture
def caller(agents):
    def make(name: str = "botty", **wanted: Any) -> Caller:
        return Caller(Client(), token_create(name, **wanted).token)

    return make


@pytest.fixture
def owner(agents) -> Caller:
    client = Client()
    client.force_login(User.objects.create_superuser("owner"))
    return Caller(client)
