import pytest
from django.core.exceptions import ImproperlyConfigured

from memex_site import env
from memex_site.options import OptionTable


@pytest.fixture
def table():
    return OptionTable()


def set_env(monkeypatch, name, value):
    monkeypatch.setenv(f"MEMEX_{name}", value)


def test_without_environment_the_default_holds(table, monkeypatch):
    monkeypatch.delenv("MEMEX_HOME", raising=False)
    assert table.switch("example", True, "…") is True
    assert table.number("other", 5, "…", low=1) == 5
    assert table.optional_number("third", "…", low=1) is None
    assert table.choice("fourth", "a", "…", choices=("a", "b")) == "a"
    assert table.folder("home", "~/there", "…").is_absolute()


def test_the_environment_wins(table, monkeypatch):
    for name, value in {"A": "off", "B": "7", "C": "3", "D": "b", "E": "~/x"}.items():
        set_env(monkeypatch, name, value)
    assert table.switch("a", True, "…") is False
    assert table.number("b", 5, "…", low=1) == 7
    assert table.optional_number("c", "…", low=1) == 3
    assert table.choice("d", "a", "…", choices=("a", "b")) == "b"
    assert table.folder("e", "/y", "…").name == "x"
    assert "~" not in str(table.folder("e", "/y", "…"))


@pytest.mark.parametrize("value", ["true", "1", "", "ON", "yes"])
def test_a_switch_is_on_or_off(table, monkeypatch, value):
    set_env(monkeypatch, "A", value)
    with pytest.raises(ImproperlyConfigured, match="MEMEX_A must be 'on' or 'off'"):
        table.switch("a", True, "…")


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", ""])
def test_a_number_outside_its_range_is_refused_by_name(table, monkeypatch, value):
    set_env(monkeypatch, "A", value)
    with pytest.raises(ImproperlyConfigured, match="MEMEX_A"):
        table.number("a", 5, "…", low=1)
    with pytest.raises(ImproperlyConfigured, match="MEMEX_A"):
        table.optional_number("a", "…", low=1)


def test_an_optional_number_may_be_none_by_name(table, monkeypatch):
    set_env(monkeypatch, "A", "none")
    assert table.optional_number("a", "…", low=1) is None


def test_another_choice_is_refused_with_the_choices(table, monkeypatch):
    set_env(monkeypatch, "A", "l4")
    with pytest.raises(ImproperlyConfigured, match="none, l2, not 'l4'"):
        table.choice("a", "none", "…", choices=("none", "l2"))


def test_an_empty_folder_is_refused(table, monkeypatch):
    set_env(monkeypatch, "A", "")
    with pytest.raises(ImproperlyConfigured, match="MEMEX_A is empty"):
        table.folder("a", "/y", "…")


def test_a_misspelt_variable_is_named_with_the_nearest_one(monkeypatch):
    set_env(monkeypatch, "TRASH_DAY", "3")
    with pytest.raises(ImproperlyConfigured, match=r"MEMEX_TRASH_DAY is not .* MEMEX_TRASH_DAYS\?"):
        env.refuse_unknown(["MEMEX_HOME", "MEMEX_TRASH_DAYS"])


def test_what_is_declared_is_known(table, monkeypatch):
    for variable in [name for name in env.os.environ if name.startswith(env.PREFIX)]:
        monkeypatch.delenv(variable)
    set_env(monkeypatch, "A", "on")
    table.switch("a", True, "…")
    table.refuse_unknown()


def test_an_agent_home_comes_from_the_agents_own_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    assert env.agent_home("CODEX_HOME", "~/.codex") == tmp_path
    monkeypatch.setenv("CODEX_HOME", "")
    assert env.agent_home("CODEX_HOME", "~/.codex").name == ".codex"


@pytest.mark.parametrize("value", ["9", "21"])
def test_a_number_may_have_an_upper_bound(table, monkeypatch, value):
    set_env(monkeypatch, "A", value)
    with pytest.raises(ImproperlyConfigured, match=f"MEMEX_A is {value}"):
        table.number("a", 15, "…", low=10, high=20)
    set_env(monkeypatch, "A", "20")
    assert table.number("a", 15, "…", low=10, high=20) == 20
    assert table.options[-1].allowed == "10–20"


@pytest.mark.parametrize("value", ["0.05", "0.96", "nan", "inf", "half", ""])
def test_a_fraction_outside_its_range_is_refused_by_name(table, monkeypatch, value):
    set_env(monkeypatch, "A", value)
    with pytest.raises(ImproperlyConfigured, match="MEMEX_A"):
        table.fraction("a", 0.5, "…", low=0.1, high=0.95)


def test_a_fraction_has_its_default_and_the_environment_wins(table, monkeypatch):
    assert table.fraction("a", 0.5, "…", low=0.1, high=0.95) == 0.5
    set_env(monkeypatch, "A", "0.95")
    assert table.fraction("a", 0.5, "…", low=0.1, high=0.95) == 0.95


@pytest.mark.parametrize(("value", "fits"), [("0.59", True), ("0.6", False), ("0.7", False)])
def test_a_fraction_may_have_to_be_less_than_another(table, monkeypatch, value, fits):
    set_env(monkeypatch, "A", value)

    def read() -> float:
        return table.fraction_below("a", 0.3, "…", low=0.0, other="b", limit=0.6)

    if fits:
        assert read() == float(value)
        return
    with pytest.raises(ImproperlyConfigured, match=r"MEMEX_A is .* less than MEMEX_B, which is 0\.6"):
        read()
