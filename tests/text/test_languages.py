"""Running text of a language is recognised; mixtures, code and other languages are of none."""

from __future__ import annotations

import pytest

from trivet.text.languages import is_foreign, language_of

TEXTS = {
    "en": "The pump in the cellar was replaced because it was too loud. Please remember that there is nobody in the "
    "office on Monday and that the cat has to be fed. The key of the shed hangs next to the front door, where it was.",
    "de": "Die Pumpe im Keller wurde ausgetauscht, weil sie zu laut war. Bitte denk daran, dass am Montag niemand im "
    "Büro ist und dass die Katze gefüttert werden muss. Der Schlüssel der Laube hängt neben der Haustür, wo er war.",
    "fr": "La pompe de la cave a été remplacée parce qu'elle faisait trop de bruit. N'oublie pas qu'il n'y a personne "
    "au bureau le lundi et que le chat doit manger. La clé de la cabane est à côté de la porte, où elle était avant.",
    "es": "La bomba del sótano se cambió porque hacía mucho ruido. Recuerda que el lunes no hay nadie en la oficina y "
    "que el gato tiene que comer. La llave de la caseta está al lado de la puerta, donde estaba antes de las obras.",
    "it": "La pompa della cantina è stata sostituita perché faceva troppo rumore. Ricorda che il lunedì non c'è "
    "nessuno in ufficio e che il gatto deve mangiare. La chiave del capanno è accanto alla porta, dove era prima.",
    "pt": "A bomba da cave foi trocada porque fazia muito barulho. Lembra-te de que na segunda-feira não há ninguém "
    "no escritório e que o gato tem de comer. A chave da cabana está ao lado da porta, onde estava antes das obras.",
    "nl": "De pomp in de kelder is vervangen omdat die te veel lawaai maakte. Denk eraan dat er op maandag niemand op "
    "kantoor is en dat de kat moet eten. De sleutel van het schuurtje hangt naast de deur, waar hij eerder ook hing.",
    "zh": "地下室的水泵因为噪音太大已经换掉了。请记住星期一办公室没有人，"
    "猫也需要喂。小屋的钥匙挂在前门旁边，跟以前一样。",
    "ja": "地下室のポンプは音が大きすぎたので交換しました。"
    "月曜日は事務所に誰もいないこと、猫に餌が必要なことを忘れないでください。",
    "ko": "지하실 펌프는 소리가 너무 커서 교체했습니다. "
    "월요일에는 사무실에 아무도 없고 고양이에게 먹이를 줘야 합니다. 열쇠는 문 옆에 있습니다.",
}


@pytest.mark.parametrize("code", TEXTS)
def test_running_text(code: str) -> None:
    found = language_of([TEXTS[code]])
    assert found is not None
    assert found.code == code


SQL = "SELECT id, sum(total) FROM orders WHERE placed >= '2023-01-01' GROUP BY id HAVING sum(total) > 10;\n" * 5


def test_a_script_of_several_languages_is_named_without_a_code() -> None:
    found = language_of(["Насос в подвале заменили, потому что он был слишком громким."])
    assert found is not None
    assert (found.name, found.code) == ("Cyrillic", "")


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["Die Pumpe ist laut."],
        [TEXTS["en"], TEXTS["de"]],
        [TEXTS["en"][:60], TEXTS["zh"][:60], TEXTS["ko"][:60]],
        [SQL],
        [
            "Deklarationen ska vara inne i slutet av juli, och nyckeln till stugan hänger bredvid dörren till köket. "
            * 3
        ],
        ["ERROR worker-3 connection reset by peer (os error 104), retrying in 8 s " * 9],
    ],
    ids=["nothing", "short", "two languages", "three scripts", "code", "Swedish", "log"],
)
def test_what_is_not_clear_is_of_no_language(texts: list[str]) -> None:
    assert language_of(texts) is None


def test_only_the_beginning_of_a_text_is_read() -> None:
    found = language_of([TEXTS["de"] * 3 + TEXTS["en"] * 90])
    assert found is not None
    assert found.code == "de"


@pytest.mark.parametrize(
    ("question", "foreign"),
    [
        ("Wo ist der Schlüssel für die Tür?", True),
        ("où est la clé de la porte", True),
        ("¿Dónde está la llave de la puerta?", True),
        ("where is the key of the door", False),
        ("El Paso to Los Angeles", False),
        ("de la Cruz", False),
        ("die in a car", False),
        ("Schlüssel Tür", False),
        ("", False),
    ],
)
def test_a_question_in_another_language(question: str, foreign: bool) -> None:
    assert is_foreign(question, ("en",)) is foreign
    assert not is_foreign(question, ()), "a model that reads all of them"
    assert not is_foreign(question, ("en", "de", "fr", "es"))
