"""A profile is read back as it was written, has one identity, and refuses what it does not know."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mypy import api

import trivet
from trivet.errors import InputError
from trivet.fusion import FUSIONS, NORMALIZERS
from trivet.profile import (
    _CHECKS,
    _SHORT_FORMS,
    MATCHES,
    MAX_K,
    PROFILES,
    Overrides,
    Profile,
    Step,
    named,
    with_reader,
    without_copies,
)
from trivet.profile import BUILT_IN_LEGS as LEGS
from trivet.rerank import RERANKERS

weights = st.dictionaries(st.sampled_from(LEGS), st.floats(0, 5)).filter(lambda found: any(found.values()))
depth = st.one_of(
    st.integers(1, MAX_K),
    st.integers(1, 999).map(lambda times: f"{times}k"),
    st.integers(1, 9_999).map(lambda more: f"k+{more}"),
)
unit = st.floats(0.0, 1.0)
steps = st.one_of(
    st.builds(Step, st.just("dedup"), st.fixed_dictionaries({}, optional={"limit": st.integers(-5, 500)})),
    st.builds(Step, st.just("importance"), st.fixed_dictionaries({}, optional={"floor": unit})),
    st.builds(Step, st.just("exact"), st.fixed_dictionaries({}, optional={"bonus": st.floats(0.0, 0.5)})),
    st.builds(
        Step,
        st.just("composite"),
        st.fixed_dictionaries(
            {"relevance": st.floats(0.1, 1.0)},
            optional={
                "recency": unit,
                "half_life": st.floats(0.01, 36_500.0),
                "form": st.sampled_from(["additive", "multiplicative"]),
            },
        ),
    ),
)
profiles = st.builds(
    Profile,
    name=st.text(st.sampled_from("azAZ09._-éß東"), min_size=1, max_size=64),
    k=st.integers(1, MAX_K),
    weights=weights,
    depths=st.dictionaries(st.sampled_from(LEGS), depth),
    gates=st.dictionaries(st.sampled_from(LEGS), st.floats(-1e9, 1e9)),
    timeouts=st.dictionaries(st.sampled_from(LEGS), st.floats(1.0, 600_000.0)),
    match=st.sampled_from(MATCHES),
    fusion=st.sampled_from(list(FUSIONS)),
    normalize=st.sampled_from(list(NORMALIZERS)),
    rrf_k=st.floats(0.0, 10_000.0),
    pool=depth,
    rerankers=st.lists(steps, max_size=4).map(tuple),
    min_relevance=unit,
)


class TestRoundTrips:
    @given(profiles)
    def test_json(self, profile: Profile) -> None:
        again = Profile.from_json(profile.to_json())
        assert again == profile
        assert again.identity == profile.identity

    @given(profiles)
    def test_toml(self, profile: Profile) -> None:
        again = Profile.from_toml(profile.to_toml())
        assert again == profile
        assert again.identity == profile.identity

    @given(profiles)
    def test_dict_is_plain_data(self, profile: Profile) -> None:
        plain = profile.to_dict()
        assert json.loads(json.dumps(plain)) == plain
        assert Profile.from_dict(plain) == profile

    @pytest.mark.parametrize("name", PROFILES)
    def test_the_ones_that_ship(self, name: str) -> None:
        shipped = named(name)
        assert Profile.from_toml(shipped.to_toml()) == Profile.from_json(shipped.to_json()) == shipped
        assert shipped.name == name

    def test_a_file_says_only_what_differs(self) -> None:
        profile = Profile.from_toml('k = 5\n[weights]\ndense = 0.9\n[[rerankers]]\nname = "importance"\nfloor = 0.5\n')
        assert profile == Profile(
            name="custom",
            k=5,
            weights={"lexical": 0.5, "dense": 0.9},
            rerankers=(Step("importance", {"floor": 0.5}),),
        )

    HUGE, DEEP = "9" * 5_000, "[" * 5_000

    @pytest.mark.parametrize("text", ["", "[", "[]", "3", "nonsense", '{"k": }', f'{{"k": {HUGE}}}', f'{{"k": {DEEP}'])
    def test_what_is_not_json(self, text: str) -> None:
        with pytest.raises(InputError, match="profile: "):
            Profile.from_json(text)

    @pytest.mark.parametrize("text", ["k = = 3", f"k = {HUGE}", f"k = {DEEP}"])
    def test_what_is_not_toml(self, text: str) -> None:
        with pytest.raises(InputError, match=r"profile: (not TOML|cannot be read)"):
            Profile.from_toml(text)

    def test_a_name_that_is_no_text(self) -> None:
        with pytest.raises(InputError, match="settings: None is not the name of a setting"):
            Profile().with_changes({None: 1})  # type: ignore[dict-item]

    @pytest.mark.parametrize("text", ['{"rrf_k": NaN}', '{"rrf_k": Infinity}', '{"weights": {"dense": NaN}}'])
    def test_json_that_holds_no_number(self, text: str) -> None:
        with pytest.raises(InputError):
            Profile.from_json(text)


class TestIdentity:
    @given(profiles, st.text(st.sampled_from("abc"), min_size=1, max_size=5))
    def test_the_name_is_not_part_of_the_digest(self, profile: Profile, name: str) -> None:
        renamed = profile.with_changes({"name": name})
        assert renamed.identity == f"{name}#{profile.identity.split('#')[1]}"

    @pytest.mark.parametrize(
        "change",
        [
            {"k": 11},
            {"dense_weight": 0.51},
            {"lexical_depth": 99},
            {"lexical_depth": "9k"},
            {"dense_gate": 0.0},
            {"dense_timeout": 9_999},
            {"match": "any"},
            {"fusion": "rrf"},
            {"normalize": "dbsf"},
            {"rrf_k": 61},
            {"pool": 51},
            {"rerankers": []},
            {"rerankers": [{"name": "dedup", "limit": 3}]},
            {"min_relevance": 0.01},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_anything_else_is(self, change: dict[str, Any]) -> None:
        default = PROFILES["default"]
        assert default.with_changes(change).identity.split("#")[1] != default.identity.split("#")[1]

    def test_the_order_in_which_legs_are_written_is_not(self) -> None:
        one = Profile(weights={"dense": 1, "lexical": 2}, depths={"dense": 5, "lexical": 6})
        other = Profile(weights={"lexical": 2.0, "dense": 1.0}, depths={"lexical": 6, "dense": 5})
        assert one.identity == other.identity
        assert str(one) == str(other)

    def test_what_ships_is_known_by_these_digests(self) -> None:
        """A change here changes every answer: it needs a reason, a results table and a line in the notes."""
        assert len({profile.identity.split("#")[1] for profile in PROFILES.values()}) == len(PROFILES)
        assert str(PROFILES["memories"]).startswith(PROFILES["memories"].identity)
        assert "rrf k=60 lexical=1@50 dense=1@50 → importance k=10" in str(PROFILES["memories"])
        assert "convex/zscore lexical=0.5@100 dense=0.5@100 graph=0.4@50 by query" in str(PROFILES["default"])
        assert str(PROFILES["default"]).endswith("→ learned → avoid → temporal k=10")

    def test_a_leg_that_is_off_is_not_printed(self) -> None:
        assert "trigram" not in str(PROFILES["default"])
        assert "lexical" not in str(PROFILES["episodes"])


class TestRanges:
    @pytest.mark.parametrize(
        ("field", "low", "high", "below", "above"),
        [
            ("lexical_weight", 0, 5, -0.001, 5.001),
            ("dense_weight", 0, 5, -1, 6),
            ("trigram_weight", 0, 5.0, -5e-324, 5.0000001),
            ("alpha", 0, 1, -0.1, 1.1),
            ("k", 1, MAX_K, 0, MAX_K + 1),
            ("rrf_k", 0, 10_000, -0.5, 10_001),
            ("lexical_depth", 1, MAX_K, 0, MAX_K + 1),
            ("lexical_depth", "1k", "999k", "0k", "1000k"),
            ("pool", 1, MAX_K, 0, MAX_K + 1),
            ("pool", "1k", "999k", "0k", "01k"),
            ("pool", "k", "k+9999", "k+0", "k+10000"),
            ("dense_gate", -1e9, 1e9, -1.1e9, 1.1e9),
            ("dense_timeout", 1, 600_000, 0.9, 600_001),
            ("min_relevance", 0, 1, -0.01, 1.01),
            ("context", 0, 1, -0.01, 1.01),
        ],
    )
    def test_edges(self, field: str, low: Any, high: Any, below: Any, above: Any) -> None:
        start = Profile(weights={"lexical": 1, "trigram": 1, "dense": 1})
        for inside in (low, high):
            start.with_changes({field: inside})
        for outside in (below, above):
            with pytest.raises(InputError):
                start.with_changes({field: outside})

    @pytest.mark.parametrize(
        "field", ["rrf_k", "dense_weight", "dense_gate", "dense_timeout", "min_relevance", "context", "alpha", "k"]
    )
    @pytest.mark.parametrize("value", [None, "1", True, math.nan, math.inf, -math.inf, [1], 10**400, 1 + 0j])
    def test_what_is_no_number(self, field: str, value: Any) -> None:
        if field == "dense_gate" and value is None:
            assert Profile(gates={"dense": 0.5}).with_changes({field: value}).gates == {}, "None takes a gate away"
            return
        with pytest.raises(InputError):
            Profile().with_changes({field: value})

    @pytest.mark.parametrize("value", [1.0, "10", True, None, 0.5])
    def test_k_is_a_whole_number(self, value: Any) -> None:
        with pytest.raises(InputError, match=f"k: {value!r} is not a whole number"):
            Profile(k=value)

    @pytest.mark.parametrize(
        "value", ["2k\n", " 2k", "2 k", "2K", "-2k", "2.5k", "k+", "+9", "k9", "", "²k", "٢k", 0, 1.5, True, None]
    )
    def test_what_is_no_depth(self, value: Any) -> None:
        for field in ("lexical_depth", "pool"):
            with pytest.raises(InputError):
                Profile().with_changes({field: value})

    @pytest.mark.parametrize("field", ["match", "fusion", "normalize"])
    @pytest.mark.parametrize("value", ["nope", "", None, 3, ["rrf"]])
    def test_what_is_no_choice(self, field: str, value: Any) -> None:
        with pytest.raises(InputError, match=f"{field}: .* is unknown; known: "):
            Profile(**{field: value})

    @pytest.mark.parametrize("name", ["", "a b", "x" * 65, "a/b", "a\n", None, 5])
    def test_what_is_no_name(self, name: Any) -> None:
        with pytest.raises(InputError, match="name: "):
            Profile(name=name)

    @pytest.mark.parametrize("weights", [{}, {"lexical": 0}, dict.fromkeys(LEGS, 0.0), {"dense": 0.0, "lexical": 0}])
    def test_all_weights_zero(self, weights: dict[str, float]) -> None:
        with pytest.raises(InputError, match="every leg has weight 0, so nothing would be found"):
            Profile(weights=weights)

    def test_all_weights_zero_by_a_change(self) -> None:
        with pytest.raises(InputError, match="every leg has weight 0"):
            Profile().with_changes({"lexical_weight": 0, "dense_weight": 0})
        assert Profile().with_changes({"alpha": 0}).weights["lexical"] == 1.0

    @pytest.mark.parametrize("field", ["weights", "depths", "gates", "timeouts"])
    def test_an_unknown_leg(self, field: str) -> None:
        with pytest.raises(InputError, match=rf"{field}\.graf: unknown leg; known: lexical, trigram, dense"):
            Profile().with_changes({field: {"graf": 1}})
        for wrong in (3, None, ["dense"], "dense"):
            with pytest.raises(InputError, match=f"{field}: .* is not a mapping"):
                Profile().with_changes({field: wrong})
            with pytest.raises(InputError, match=f"{field}: .* is not a mapping"):
                Profile(**{field: wrong})


class TestUnknownFields:
    @pytest.mark.parametrize(
        ("field", "meant"),
        [
            ("wieghts", "weights"),
            ("rrfk", "rrf_k"),
            ("dense_wieght", "dense_weight"),
            ("lexical_depths", "lexical_depth"),
            ("alhpa", "alpha"),
            ("min_relevanse", "min_relevance"),
            ("reranker", "rerankers"),
        ],
    )
    def test_refused_by_name_with_a_hint(self, field: str, meant: str) -> None:
        with pytest.raises(InputError, match=f"^{field}: unknown setting; did you mean '{meant}'"):
            Profile.from_dict({field: 1})

    def test_refused_with_what_is_known(self) -> None:
        with pytest.raises(InputError, match=r"qqq: unknown setting.*Known: name, k, weights.*alpha.*dense_timeout"):
            Profile.from_dict({"qqq": 1})

    @pytest.mark.parametrize("name", ["defualt", "", "Memories"])
    def test_an_unknown_profile(self, name: str) -> None:
        with pytest.raises(InputError, match="known: default, episodes, memories, chunks, composite, snippets"):
            named(name)


class TestRerankers:
    @pytest.mark.parametrize("value", ["dedup", None, 3, {"name": "dedup"}])
    def test_a_list_is_wanted(self, value: Any) -> None:
        with pytest.raises(InputError, match=r"rerankers: .* is not a list of rerankers; known: "):
            Profile(rerankers=value)

    @pytest.mark.parametrize("item", [3, None, ["dedup"], b"dedup"])
    def test_of_rerankers(self, item: Any) -> None:
        with pytest.raises(InputError, match="is not a reranker; known: "):
            Profile(rerankers=(item,))

    def test_in_every_form(self) -> None:
        as_step = Profile(rerankers=(Step("importance", {"floor": 0.5}), Step("dedup")))
        as_mapping = Profile(rerankers=[{"name": "importance", "floor": 0.5}, "dedup"])  # type: ignore[arg-type]
        assert as_step == as_mapping

    @pytest.mark.parametrize(
        ("step", "told"),
        [
            ("importanse", "reranker: 'importanse' is unknown; known: "),
            ({"floor": 0.5}, "reranker: '' is unknown"),
            ({"name": "importance", "flor": 0.5}, "has no option 'flor'; known: floor"),
            ({"name": "importance", "floor": 1.1}, "floor is 1.1; allowed: a number from 0 to 1"),
            ({"name": "importance", "floor": "high"}, "floor is 'high'"),
            ({"name": "importance", "floor": True}, "floor is True"),
            ({"name": "composite", "form": "divided"}, "allowed: one of additive, multiplicative"),
            ({"name": "composite", "relevance": 0, "recency": 0, "importance": 0}, "are all 0"),
            ({"name": "composite", "half_life": 0}, "half_life is 0"),
            ({"name": "dedup", "limit": 2.5}, "limit is 2.5; allowed: a whole number"),
            ({"name": "exact", "bonus": math.nan}, "bonus is nan"),
        ],
    )
    def test_options_are_checked_when_the_profile_is_made(self, step: Any, told: str) -> None:
        with pytest.raises(InputError, match=told):
            Profile(rerankers=(step,))

    @pytest.mark.parametrize("name", RERANKERS)
    def test_every_reranker_can_be_named(self, name: str) -> None:
        assert Profile.from_toml(Profile(rerankers=(name,)).to_toml()).rerankers == (Step(name),)  # type: ignore[arg-type]

    def test_a_change_replaces_the_list(self) -> None:
        assert PROFILES["composite"].with_changes({"rerankers": []}).rerankers == ()


class TestChangesAndDepth:
    def test_mappings_are_merged(self) -> None:
        profile = Profile().with_changes({"weights": {"dense": 2}, "depths": {"dense": 7}, "gates": {"dense": 0.1}})
        assert profile.weights == {"lexical": 0.5, "trigram": 0.0, "dense": 2.0, "graph": 0.0}
        assert profile.depths == {"lexical": 100, "trigram": 50, "dense": 7, "graph": 50}
        assert profile.with_changes({"gates": {"lexical": 1}}).gates == {"lexical": 1.0, "dense": 0.1}

    def test_alpha_is_two_weights_and_leaves_the_third(self) -> None:
        profile = Profile(weights={"trigram": 1.0}).with_changes({"alpha": 0.3})
        assert profile.weights == pytest.approx({"lexical": 0.7, "trigram": 1.0, "dense": 0.3, "graph": 0.0})

    def test_sugar_and_mapping_together(self) -> None:
        profile = Profile().with_changes({"weights": {"lexical": 1, "dense": 1}, "dense_weight": 3})
        assert (profile.weights["lexical"], profile.weights["dense"]) == (1.0, 3.0)

    def test_the_original_stays_as_it_was(self) -> None:
        before = PROFILES["default"].to_json()
        PROFILES["default"].with_changes({"dense_weight": 4, "dense_depth": 3, "dense_gate": 1, "dense_timeout": 5})
        assert PROFILES["default"].to_json() == before

    def test_depth(self) -> None:
        profile = Profile(depths={"lexical": "2k", "dense": 30})
        assert (profile.depth("lexical", 10), profile.depth("lexical", 7)) == (20, 14)
        assert (profile.depth("dense", 10), profile.depth("dense", 50)) == (30, 50)  # never less than is wanted
        assert profile.depth("trigram", 10) == 50

    def test_pool(self) -> None:
        assert Profile(pool="3k").pool_size(4) == 12
        assert Profile(pool="k+10").pool_size(4) == 14
        assert Profile(pool="2k+5").pool_size(4) == 13
        assert Profile(pool=5).pool_size(4) == 5
        assert Profile(pool=5).pool_size(8) == 8

    def test_what_is_left_out_is_the_default(self) -> None:
        """So that a profile is the same value whether it is written in Python, TOML or JSON."""
        assert Profile(depths={"lexical": 7}).depths == {"lexical": 7, "trigram": 50, "dense": 100, "graph": 50}
        others = dict.fromkeys(("lexical", "trigram", "graph"), 10_000.0)
        assert Profile(timeouts={"dense": 7}).timeouts == {**others, "dense": 7.0}
        assert Profile(weights={"dense": 1}).weights == {**dict.fromkeys(others, 0.0), "dense": 1.0}


def test_following_links_is_on_and_changes_the_identity_only_when_it_is_off() -> None:
    """Identities that were written down before the setting existed stay what they were."""
    on, off = Profile(), Profile(follow_links=False)
    assert on.follow_links
    assert on.identity != off.identity
    assert Profile.from_json(off.to_json()) == off == Profile.from_toml(off.to_toml())
    old = {key: value for key, value in on.to_dict().items() if key != "follow_links"}
    assert Profile.from_dict(old) == on
    with pytest.raises(InputError, match="follow_links: 1 is not true or false"):
        Profile(follow_links=1)  # type: ignore[arg-type]


@given(
    changes=st.fixed_dictionaries(
        {},
        optional={
            "alpha": st.floats(0, 1),
            "lexical_weight": st.floats(0.1, 5),
            "dense_weight": st.floats(0.1, 5),
            "graph_weight": st.floats(0, 5),
            "weights": st.fixed_dictionaries({"dense": st.floats(0.1, 5)}),
        },
    )
)
@pytest.mark.parametrize("name", list(PROFILES))
def test_a_changed_weight_switches_nothing_else(name: str, changes: dict[str, Any]) -> None:
    before, after = PROFILES[name], PROFILES[name].with_changes(changes)
    assert {**after.to_dict(), "weights": None} == {**before.to_dict(), "weights": None}


def test_alpha_at_its_ends_is_one_leg_alone() -> None:
    for alpha, alone in ((0, "lexical"), (1, "dense")):
        weights = PROFILES["default"].with_changes({"alpha": alpha}).weights
        assert [leg for leg, weight in weights.items() if weight] == [alone]
    assert PROFILES["default"].with_changes({"alpha": 0.3}).weights["graph"] == 0.4
    assert PROFILES["default"].with_changes({"alpha": 0, "graph_weight": 0.2}).weights["graph"] == 0.2


class TestCareful:
    def test_it_is_the_default_with_the_reader(self) -> None:
        careful, default = PROFILES["careful"], PROFILES["default"]
        assert [step for step in careful.rerankers if step.name != "reader"] == list(default.rerankers)
        assert careful.weights == default.weights
        assert careful.name == "careful"

    def test_a_changed_default_keeps_its_changes(self) -> None:
        changed = PROFILES["default"].with_changes({"graph_weight": 0.1, "rerankers": ["dedup"]})
        found = with_reader(changed)
        assert [step.name for step in found.rerankers] == ["reader", "dedup"]
        assert found.weights["graph"] == 0.1

    @pytest.mark.parametrize("name", [name for name in PROFILES if name != "default"])
    def test_every_other_profile_stays_as_it_is(self, name: str) -> None:
        assert with_reader(PROFILES[name]) is PROFILES[name]


def test_a_context_has_no_copies() -> None:
    assert [step.name for step in without_copies(PROFILES["default"]).rerankers][-1] == "dedup"
    assert without_copies(PROFILES["composite"]) is PROFILES["composite"]


def test_the_typed_overrides_are_the_settings_of_a_profile() -> None:
    hints = get_type_hints(Overrides)
    assert set(hints) == {*_CHECKS, *_SHORT_FORMS, "queries"} - {"k"}
    of_profile = get_type_hints(Profile)
    same = [name for name in _CHECKS if name not in ("k", "gates", "rerankers")]
    assert {name: hints[name] for name in same} == {name: of_profile[name] for name in same}
    for leg in LEGS:
        for what in ("weight", "depth", "timeout"):
            assert hints[f"{leg}_{what}"] in get_args(hints[f"{what}s"]), (leg, what)


@pytest.mark.slow
def test_a_type_checker_finds_a_misspelt_override(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MYPYPATH", str(Path(trivet.__file__).parent.parent))
    options = ["--config-file=", "--follow-imports=silent", "--ignore-missing-imports", f"--cache-dir={tmp_path}", "-c"]
    code = "import trivet\nmemory = trivet.open('m.db')\nmemory.search('x', {}=0.3)\n"
    right, wrong = (api.run([*options, code.format(name)]) for name in ("alpha", "alhpa"))
    assert (right[2], wrong[2]) == (0, 1), right[0] + wrong[0]
    assert 'Unexpected keyword argument "alhpa" for "search" of "Engine"' in wrong[0]
