"""Which module may import which. Read from the source, so that imports inside functions count as well."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("records", "sessions_app", "memex_site")

FORBIDDEN = {
    "records": ("sessions_app", "memex_site"),
    "sessions_app": ("memex_site",),
}

# Modules that parse or decide: a new one that belongs here is added, none may leave.
PURE = [
    "records/clock.py",
    "records/recordfile.py",
    "records/abstracts.py",
    "records/capacity/choice.py",
    "records/similarity.py",
    "records/written.py",
    "records/secrets/policy.py",
    "records/secrets/scanner.py",
    "records/secrets/detector.py",
    "records/tokens.py",
    "records/bench/corpus.py",
    "records/evaluation/figures.py",
    "records/evaluation/suite.py",
    "records/search/extraction.py",
    "records/search/extractors.py",
    "records/search/grep_pattern.py",
    "records/search/grep_rg.py",
    "records/search/grep_scan.py",
    "memex_site/hook_client.py",
    "memex_site/connect/claude_code.py",
    "memex_site/connect/codex.py",
    "memex_site/connect/dsh.py",
    "memex_site/connect/jsonedit.py",
    "memex_site/connect/jsonscan.py",
    "memex_site/connect/plan.py",
    "memex_site/connect/tomledit.py",
    "sessions_app/machine_text.py",
    "sessions_app/lost.py",
    "sessions_app/card.py",
    "sessions_app/eviction.py",
    "sessions_app/markdown.py",
    "sessions_app/extract.py",
]
PURE_FOLDERS = ["sessions_app/logs"]
SETTINGS_READERS = ["memex_site/env.py", "memex_site/home.py", "memex_site/options.py"]

# The side that people and agents meet; what lies below must not know it.
OUTER = {"views", "api", "admin", "consumers", "urls", "contexts", "forms", "commands", "management"}

TOP_LEVEL = {
    "manage.py",
    "memex_site",
    "records",
    "sessions_app",
    "templates",
    "static",
    "tests",
    "docs",
    "requirements.txt",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "pyproject.toml",
    ".gitignore",
    ".ci",
}


def sources(folder: str) -> list[Path]:
    return sorted(path for path in (ROOT / folder).rglob("*.py") if "migrations" not in path.parts)


ALL_SOURCES = [path for package in PACKAGES for path in sources(package)]
PURE_SOURCES = [ROOT / name for name in PURE if (ROOT / name).exists()] + [
    path for folder in PURE_FOLDERS for path in sources(folder)
]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def imports(path: Path) -> frozenset[str]:
    """Absolute names of the modules that `path` imports, each `from a import b` as both a and a.b."""
    package = list(path.relative_to(ROOT).parent.parts)
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return frozenset(found)


def importing(path: Path, *roots: str) -> list[str]:
    return sorted(name for name in imports(path) if name.split(".")[0] in roots)


def test_relative_imports_are_resolved(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.test_architecture.ROOT", tmp_path)
    module = tmp_path / "app" / "inner" / "module.py"
    module.parent.mkdir(parents=True)
    module.write_text("from . import a\nfrom ..b import c\ndef f():\n    import d.e\n")
    assert imports(module) == {"app.inner", "app.inner.a", "app.b", "app.b.c", "d.e"}


@pytest.mark.parametrize("package", FORBIDDEN)
def test_packages_depend_one_way(package):
    wrong = {name_of(path): importing(path, *FORBIDDEN[package]) for path in sources(package)}
    assert {name: found for name, found in wrong.items() if found} == {}


def module_file(name: str) -> Path | None:
    file = ROOT / (name.replace(".", "/") + ".py")
    return file if file.exists() else None


def reachable(path: Path, seen: set[Path]) -> set[Path]:
    """`path` and every module of ours that it imports, directly or not; a package's own file counts apart."""
    if path not in seen:
        seen.add(path)
        for name in importing(path, *PACKAGES):
            if file := module_file(name):
                reachable(file, seen)
    return seen


@pytest.mark.parametrize("path", PURE_SOURCES, ids=name_of)
def test_pure_modules_do_without_django(path):
    needing = {name_of(module): importing(module, "django", "channels") for module in reachable(path, set())}
    assert {name: found for name, found in needing.items() if found} == {}


@pytest.mark.parametrize("name", SETTINGS_READERS)
def test_what_settings_import_knows_django_by_its_exceptions_only(name):
    allowed = {"django.core.exceptions", "django.core.exceptions.ImproperlyConfigured"}
    assert set(importing(ROOT / name, "django")) <= allowed


@pytest.mark.parametrize("path", ALL_SOURCES, ids=name_of)
def test_lower_layers_do_not_know_the_outer_ones(path):
    parts = set(path.relative_to(ROOT).with_suffix("").parts)
    if parts & OUTER:
        return
    outer = [name for name in importing(path, *PACKAGES) if set(name.split(".")) & OUTER]
    assert outer == []


def test_no_tool_of_mcp_is_run_by_its_sdk():
    """The SDK's decorating server runs a tool that is no coroutine in a thread that keeps the process from
    ending. Ours hands coroutines to the other one, and works in threads of its own."""
    using = {name_of(path): importing(path, "mcp") for path in sources("memex_site")}
    wrong = {"mcp", "mcp.server.mcpserver", "mcp.server.fastmcp"}
    assert {name: found for name, found in using.items() if wrong & set(found)} == {}
    module = ast.parse((ROOT / "memex_site/mcp/server.py").read_text(encoding="utf-8"))
    coroutines = {node.name for node in ast.walk(module) if isinstance(node, ast.AsyncFunctionDef)}
    [server] = [
        node for node in ast.walk(module) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Server"
    ]
    handlers = {
        each.arg: ast.unparse(each.value) for each in server.keywords if str(each.arg).startswith("on_")
    }
    assert "on_call_tool" in handlers
    assert set(handlers.values()) <= coroutines


def test_the_top_level_is_what_it_should_be():
    ignored = {line.strip("/ ") for line in (ROOT / ".gitignore").read_text().splitlines()}
    present = {path.name for path in ROOT.iterdir()} - ignored
    # A person's own hidden files (an editor's, git's) are none of ours.
    assert {name for name in present if not name.startswith(".")} | (present & TOP_LEVEL) == TOP_LEVEL
    assert [path.name for path in (ROOT / ".ci").iterdir()] == ["run"]


@pytest.mark.parametrize("path", ALL_SOURCES, ids=name_of)
def test_files_stay_small_enough_to_read(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_one_module_knows_the_detector():
    users = [name_of(path) for path in ALL_SOURCES if importing(path, "betterleaks")]
    assert users == ["records/secrets/scanner.py"]
