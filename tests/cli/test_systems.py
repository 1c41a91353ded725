"""`loginfer systems`, run as users run it."""

import json

import pytest

from loginfer.systems.registry import systems


def test_the_systems_are_listed_by_name(loginfer):
    code, out, _ = loginfer("systems", "list")
    assert code == 0
    for name in ("simpbl", "oracle", "transe", "rotate", "complex", "distmult", "boxe", "r-gcn"):
        assert f" {name} " in out


def test_the_list_for_programs_has_all_that_is_known(loginfer):
    listed = json.loads(loginfer("systems", "list", "--json")[1])
    assert [entry["name"] for entry in listed] == [entry.name for entry in systems()]
    assert all(entry["summary"] for entry in listed)


def test_a_system_is_shown_with_settings_defaults_bounds_and_what_it_can_capture(loginfer):
    code, out, _ = loginfer("systems", "show", "TransE")
    assert code == 0
    for expected in (
        "TransE (embedding)",
        "no: symmetry",
        "yes: inversion",
        "--set",
        "epochs",
        "a whole number from 1",
    ):
        assert expected in out
    shown = json.loads(loginfer("systems", "show", "transe", "--json")[1])
    settings = {each["name"]: each for each in shown["settings"]}
    assert settings["epochs"]["least"] == 1
    assert settings["epochs"]["required"] is False
    assert settings["mode"]["choices"] == ["explicit", "random", "both"]
    assert all(each["meaning"] for each in settings.values())


@pytest.mark.parametrize("name", ["simpbl", "oracle", "distmult", "boxe", "r-gcn", "rgcn"])
def test_every_system_can_be_shown(loginfer, name):
    assert loginfer("systems", "show", name)[0] == 0


def test_ones_own_system_can_be_shown_too(loginfer, tmp_path, monkeypatch):
    (tmp_path / "shown_module.py").write_text(
        "class Mine:\n    def __init__(self, depth: int, name='x', fast: bool = True):\n        pass\n"
        "    def fit(self, benchmark):\n        return self\n"
    )
    monkeypatch.chdir(tmp_path)
    code, out, _ = loginfer("systems", "show", "shown_module:Mine")
    assert code == 0
    assert "must be given" in out
    assert "true or false" in out
    shown = json.loads(loginfer("systems", "show", "shown_module:Mine", "--json")[1])
    assert [each["required"] for each in shown["settings"]] == [True, False, False]


def test_a_seed_alone_is_no_setting_to_show(loginfer, tmp_path, monkeypatch):
    text = "class Random:\n    def __init__(self, seed=0): ...\n    def fit(self, benchmark): ...\n"
    (tmp_path / "only_seeded.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    code, out, _ = loginfer("systems", "show", "only_seeded:Random")
    assert code == 0
    assert "It has no settings." in out
    assert "--seed chooses" in out


def test_an_unknown_system_is_answered_with_the_nearest(loginfer):
    code, _, messages = loginfer("systems", "show", "rotat")
    assert code == 2
    assert "did you mean `rotate`" in messages
