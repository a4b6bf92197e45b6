"""Secrets are removed, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.memory.redaction import redact, redact_values

# Put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "openai": ("sk-" + "abcDEF0123456789abcDEF0123456789", "api key"),
    "openai project": ("sk-proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4" + "_-xyZ", "api key"),
    "anthropic": ("sk-ant-api03-" + "Q1w2E3r4T5y6U7i8O9p0A1s2D3f4", "api key"),
    "github": ("ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "api key"),
    "github fine": ("github_pat_" + "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz", "api key"),
    "gitlab": ("glpat-" + "a1B2c3D4e5F6g7H8i9J0", "api key"),
    "aws": ("AKIA" + "IOSFODNN7ABCDE2Q", "api key"),
    "google": ("AIza" + "SyA1234567890abcdefghijklmnopqrstuv", "api key"),
    "slack": ("xoxb-" + "123456789012-123456789012-abcdefABCDEF", "api key"),
    "stripe": ("sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", "api key"),
    "hugging face": ("hf_" + "abcdefghijABCDEFGHIJabcdefghij1234", "api key"),
    "telegram": ("123456789:AA" + "Hdqtcvch1vGWJxfSeofSAs0K5PALDsawx", "api key"),
    "jwt": ("eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9", "token"),
}


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize(
    "place", ["{}", "key: {}", "use '{}' there.", "A={}\nB=2", "({}), then", "https://x.example/?k={}"]
)
def test_a_known_key_is_replaced_wherever_it_stands(name: str, place: str) -> None:
    secret, kind = SECRETS[name]
    text, kinds = redact(place.format(secret))
    assert secret not in text and secret[-12:] not in text
    assert text == place.format(f"[redacted: {kind}]")
    assert kinds == (kind,)


@pytest.mark.parametrize(
    ("text", "clean", "kinds"),
    [
        (
            "postgres://sam:hunter2!@db.example:5432/x",
            "postgres://sam:[redacted: password]@db.example:5432/x",
            ("password",),
        ),
        ("redis://:s3cret@localhost", "redis://:[redacted: password]@localhost", ("password",)),
        (
            "curl -H 'Authorization: Bearer abcdef0123456789abcdef'",
            "curl -H 'Authorization: Bearer [redacted: token]'",
            ("token",),
        ),
        ("Authorization: Basic c2FtOmh1bnRlcjI=", "Authorization: Basic [redacted: password]", ("password",)),
        ("password = hunter22", "password = [redacted: password]", ("password",)),
        ('{"api_key": "q1w2e3r4t5"}', '{"api_key": "[redacted: password]"}', ("password",)),
        ("the DB_PASSWORD is tr0ub4dor", "the DB_PASSWORD is [redacted: password]", ("password",)),
        (
            "aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
            "aws_secret_access_key=[redacted: password]",
            ("password",),
        ),
    ],
)
def test_a_password_goes_and_what_tells_where_it_was_stays(text: str, clean: str, kinds: tuple[str, ...]) -> None:
    assert redact(text) == (clean, kinds)


BODY = "MIIEpAIBAAKCAQEA1234abcd\n5678+/==\n"


@pytest.mark.parametrize("what", ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
def test_a_private_key_goes_as_a_whole(what: str) -> None:
    block = f"-----BEGIN {what}-----\n{BODY}-----END {what}-----"
    assert redact(f"before\n{block}\nafter {block}.") == (
        "before\n[redacted: private key]\nafter [redacted: private key].",
        ("private key", "private key"),
    )


def test_a_private_key_without_its_end_goes_too() -> None:
    text, kinds = redact(f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}")
    assert (text.strip(), kinds) == ("[redacted: private key]", ("private key",))


def test_the_kind_of_each_is_told() -> None:
    aws, jwt = SECRETS["aws"][0], SECRETS["jwt"][0]
    assert sorted(redact(f"{aws} {jwt} {aws}")[1]) == ["api key", "api key", "token"]


ORDINARY = [
    "sk-learn and scikit-learn, task-force-2026-members-of-the-board",
    "the sk-eleton-of-a-very-long-hyphenated-slug-in-a-url",
    "commit c68ad26b3f0a9d1e2c4b5a697887f6e5d4c3b2a1 fixes it",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "id 123e4567-e89b-12d3-a456-426614174000",
    "password = get_password(user)",
    "password: str = field(repr=False)",
    "def check_password(password: str, hashed: bytes) -> bool:",
    "api_key=os.environ['OPENAI_API_KEY']",
    "api_key = settings.openai_api_key",
    "the password is wrong and the secret is safe",
    "password: ********",
    "PASSWORD=${DB_PASSWORD}",
    "secret: <your-secret-here>",
    "postgres://sam:${PASSWORD}@db/x and postgres://user:your_password1@db",
    "http://localhost:8080/a@b and ssh://git@host:22/x and git@github.com:owner/name.git",
    "mail sam@example.com at 12:30@noon",
    "bearer of bad news, Bearer tokens are sent in a header, a bearer responsibility",
    "AKIA is a prefix; AIza too; ghp_ and xoxb- as well; eyJ begins every JWT",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "a key begins with -----BEGIN RSA PRIVATE KEY----- and ends with its like",
    "hf_hub_download, npm_config_registry, pk_test_mode, lin_api_v2, dapi_version",
    "xoxo-hugs-and-kisses, SG.1.2, 12345678:30",
    "camelCaseIdentifierWithManyWordsInIt, SCREAMING_SNAKE_CASE_2026, __dunder__",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAA",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1 sam@host",
    "Die Tür klemmt; パスワードは秘密です; пароль: секрет",
    "",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_code_and_hashes_are_left_alone(text: str) -> None:
    assert redact(text) == (text, ())


@given(st.lists(st.sampled_from(ORDINARY), max_size=4), st.sampled_from(["\n", " ", ". ", " | "]))
def test_ordinary_texts_together_are_left_alone(texts: list[str], joint: str) -> None:
    assert redact(joint.join(texts)) == (joint.join(texts), ())


@given(st.text(max_size=200))
def test_what_is_clean_stays_as_it_is(text: str) -> None:
    clean, _ = redact(text)
    assert redact(clean) == (clean, ())


@given(st.lists(st.sampled_from([*ORDINARY, *(secret for secret, _ in SECRETS.values())]), max_size=5))
def test_no_secret_survives_among_others(texts: list[str]) -> None:
    clean, kinds = redact("\n".join(texts))
    assert not any(secret in clean for secret, _ in SECRETS.values())
    assert set(kinds) == {kind for secret, kind in SECRETS.values() if secret in texts}


def test_a_long_text_takes_no_time() -> None:
    for text in (
        "sk-" * 50_000,
        "a" * 200_000,
        "-----BEGIN PRIVATE KEY-----" * 3_000,
        "password is " * 20_000,
        "x:" * 90_000,
    ):
        assert redact(text) == (text, ()), text[:30]


def test_values_in_metadata_are_looked_at_and_keys_are_not() -> None:
    secret = SECRETS["aws"][0]
    found, kinds = redact_values({"a": [secret, {"b": f"x {secret}"}], secret: 3, "n": None})
    assert found == {"a": ["[redacted: api key]", {"b": "x [redacted: api key]"}], secret: 3, "n": None}
    assert kinds == ("api key", "api key")
