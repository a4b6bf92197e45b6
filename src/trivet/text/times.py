"""Times in a query: the period of time that it is about.

Spans that look like a time are found by patterns of a few languages, and ``dateparser`` reads them relative to the time
of the query, in the language of the collection or English. The patterns come first because the library, if it searches
a whole sentence, takes "we", "me" and "100" as dates. A time relative to an event ("before the move") is ignored,
because the time of the event is not known.

"In the past month" is up to now; "last month" and "in May" are whole periods; "a week ago" is some days around it.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any

from trivet.text.document_dates import aware
from trivet.types import Window

_EN_COUNT = r"\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_EN_NUMBER = rf"(?:{_EN_COUNT}|(?:a\s+)?couple(?:\s+of)?|(?:a\s+)?few)"
_EN_UNIT = r"(?:day|week|fortnight|month|year)s?"
_EN_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|march|mar|april|apr|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_EN_LEAD = r"(?:(?:in|during|since|of|from|until|by|for|between|early|mid|late)[\s-]+)+(?:the\s+month\s+of\s+)?"
_EN_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_ISO = r"(?:1[89]|20)\d\d-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?"
_COMPACT = r"20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_YEAR = r"(?:19|20)\d\d"

_DE_MONTH = r"(?:januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember)"
_FR_MONTH = r"(?:janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre)"
_ES_MONTH = r"(?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre)"

#: Language -> patterns of its spans, the longest form first.
_SPANS = {
    "en": (
        rf"(?:the\s+)?(?:past|last)\s+{_EN_NUMBER}\s+{_EN_UNIT}",
        r"the\s+(?:past|last)\s+(?:week|month|year)|past\s+(?:week|month|year)",
        rf"{_EN_NUMBER}\s+{_EN_UNIT}\s+(?:ago|earlier|back)",
        rf"{_EN_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+{_YEAR})?\b",
        rf"\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_EN_MONTH}(?:,?\s+{_YEAR})?\b",
        rf"{_EN_MONTH},?\s+(?:of\s+)?{_YEAR}",
        rf"(?:last|previous|this\s+past|past)\s+(?:week|month|year|weekend|{_EN_DAY}|{_EN_MONTH})",
        r"(?:this|earlier\s+this)\s+(?:week|month|year|morning)",
        r"the\s+day\s+before\s+yesterday|yesterday|today|tonight|last\s+night",
        rf"{_EN_LEAD}(?:{_EN_MONTH}(?:\s+\d{{1,2}}(?:st|nd|rd|th)?\b)?(?:,?\s+(?:of\s+)?{_YEAR})?|{_YEAR})"
        r"(?!\s+(?:people|words|items|the|i|we)\b)",
        rf"on\s+(?:last\s+)?{_EN_DAY}(?!s)",
    ),
    "de": (
        r"vor\s+(?:\d{1,3}|eine[mrn]|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn)\s+(?:tag|woche|monat|jahr)(?:en|e|n)?",
        rf"(?:am\s+)?\d{{1,2}}\.\s*(?:{_DE_MONTH}|\d{{1,2}}\.)\s*(?:{_YEAR})?",
        rf"{_DE_MONTH}\s+{_YEAR}",
        r"(?:letzte[nrms]?|vorige[nrms]?|vergangene[nrms]?)\s+(?:woche|monat|jahr|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)",
        rf"im\s+(?:letzten\s+|vergangenen\s+)?{_DE_MONTH}(?:\s+{_YEAR})?",
        r"vorgestern|gestern|heute",
    ),
    "fr": (
        r"il\s+y\s+a\s+(?:\d{1,3}|une?|deux|trois|quatre|cinq|six|sept|huit|neuf|dix)\s+(?:jour|semaine|mois|an|année)s?",
        rf"(?:le\s+)?\d{{1,2}}(?:er)?\s+{_FR_MONTH}(?:\s+{_YEAR})?",
        rf"{_FR_MONTH}\s+{_YEAR}",
        r"(?:la\s+semaine|l['’]année)\s+(?:dernière|passée)|(?:le\s+mois|l['’]an)\s+(?:dernier|passé)",
        rf"en\s+{_FR_MONTH}(?:\s+{_YEAR})?",
        r"avant-hier|hier|aujourd['’]hui",
    ),
    "es": (
        r"hace\s+(?:\d{1,3}|una?|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez)\s+(?:día|semana|mes|año)(?:s|es)?",
        rf"(?:el\s+)?\d{{1,2}}\s+de\s+{_ES_MONTH}(?:\s+de\s+{_YEAR})?",
        rf"{_ES_MONTH}\s+(?:de\s+)?{_YEAR}",
        r"(?:la\s+semana\s+pasada|el\s+(?:mes|año)\s+pasado)",
        rf"en\s+{_ES_MONTH}(?:\s+(?:de\s+)?{_YEAR})?",
        r"anteayer|ayer|hoy",
    ),
    "zh": (
        r"[\d一二两三四五六七八九十]{1,3}(?:天|个?星期|周|个月|年)(?:之?前|以前)",
        r"(?:\d{4}年)?\d{1,2}月(?:\d{1,2}[日号])?|\d{4}年",
        r"上个?(?:周|星期|月)|去年|前天|昨天|今天",
    ),
    "ja": (
        r"[\d一二三四五六七八九十]{1,3}(?:日|週間|か月|ヶ月|年)前",
        r"(?:\d{4}年)?\d{1,2}月(?:\d{1,2}日)?|\d{4}年",
        r"先週|先月|去年|昨年|一昨日|昨日|今日",
    ),
    "ko": (
        r"\d{1,3}(?:일|주|개월|달|년)\s*전",
        r"(?:\d{4}년\s*)?\d{1,2}월(?:\s*\d{1,2}일)?|\d{4}년",
        r"지난\s?주|지난\s?달|작년|그저께|어제|오늘",
    ),
}
#: After a span that is relative to an event: "three weeks before the trip", "the Monday before …".
_ANCHORED = re.compile(
    r"^\s*(?:before|after|prior\s+to|following|later|vor|nach|avant|après|antes|después)\b", re.IGNORECASE
)
#: Before a span that the query asks for: "How many days ago did I …?"
_ASKED = re.compile(r"how\s+(?:many|long)\s*$|wie\s+viele\s*$|combien\s+de\s*$|cuánt[oa]s\s*$", re.IGNORECASE)
_UP_TO_NOW = re.compile(
    r"^(?:in\s+)?(?:the\s+)?(?:past|last)\s+(?=(?:\d|an?\b|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|couple|few))",
    re.I,
)
_STRETCH = re.compile(r"^(?:the\s+)?(?:past|last)\s+(week|month|year)$", re.IGNORECASE)
_AGO = re.compile(r"\b(?:ago|earlier|back)$|前$|전$|^vor\s|^il\s+y\s+a\s|^hace\s", re.IGNORECASE)
_DAYS = {"day": 1, "week": 7, "month": 31, "year": 366}
_WORDS = {
    "a couple of": "2",
    "couple of": "2",
    "a couple": "2",
    "couple": "2",
    "a few": "3",
    "few": "3",
    "fortnight": "2 weeks",
}
_SPANISH = {
    "una": "1",
    "un": "1",
    "dos": "2",
    "tres": "3",
    "cuatro": "4",
    "cinco": "5",
    "seis": "6",
    "siete": "7",
    "ocho": "8",
}
_CHINESE = str.maketrans("一二两三四五六七八九", "1223456789")


def find_window(text: str, at: datetime, language: str = "en") -> Window | None:
    """Return the period that the query names; of several, from the first to the last."""
    found = [window for span in _spans(text, language) if (window := _window(span, at, language)) is not None]
    if not found:
        return None
    begin, end = min(window.begin for window in found), max(window.end for window in found)
    words = " … ".join(dict.fromkeys(window.words for window in found))
    return Window(begin, end, words, len(found) == 1 and found[0].named)


@lru_cache
def _pattern(language: str) -> re.Pattern[str]:
    spans = (_ISO, _COMPACT, *_SPANS.get(language, ()), *(_SPANS["en"] if language != "en" else ()))
    edge = r"(?<![\w-])" if language not in ("zh", "ja", "ko") else r"(?<!\d)"
    return re.compile(rf"{edge}(?:{'|'.join(spans)})(?![A-Za-zÀ-ÿ0-9])", re.IGNORECASE)


def _spans(text: str, language: str) -> list[str]:
    return [
        match[0]
        for match in _pattern(language).finditer(text)
        if not _ANCHORED.match(text[match.end() :]) and not _ASKED.search(text[: match.start()])
    ]


def _window(span: str, at: datetime, language: str) -> Window | None:
    """Return the period of one span; None for one that is none, or that begins or ends beyond the years 1 to 9999."""
    try:
        return _read(span, at, language)
    except OverflowError:
        return None


def _read(span: str, at: datetime, language: str) -> Window | None:
    now = aware(at)
    plain = _plain(span, language)
    if (ago := _ago(plain)) is not None:
        back = _parsed(ago, now, language)
        return Window(back[0], now + timedelta(days=1), span) if back else None
    parsed = _parsed(plain, now, language)
    if parsed is None:
        return None
    moment, period = parsed
    if _AGO.search(plain) and period in ("week", "month", "year"):  # around that day, not the calendar week
        half = timedelta(days=_DAYS[period] / 2)
        return Window(moment - half, moment + half, span)
    begin, end = _period(moment, period)
    dated = period in ("day", "time") and any(char.isdigit() for char in plain) and not _AGO.search(plain)
    return Window(begin, end, span, dated)


def _ago(plain: str) -> str | None:
    """Return where a period that lasts until now begins, such as "3 weeks ago"; None for any other period."""
    stretch, up_to_now = _STRETCH.match(plain), _UP_TO_NOW.match(plain)
    if stretch and (up_to_now or "past" in plain.lower()):
        return f"1 {stretch[1]} ago"
    return f"{plain[up_to_now.end() :]} ago" if up_to_now else None


def _plain(span: str, language: str) -> str:
    """Return the span in a form that the library reads: without leading words, with numbers for number words."""
    text = " ".join(span.split())
    for word, number in _WORDS.items():
        text = re.sub(rf"\b{word}\b", number, text, flags=re.IGNORECASE)
    text = re.sub(rf"^(?:{_EN_LEAD}|(?:on|am|im|en)\s+|(?:le|el)\s+(?=\d))", "", text, flags=re.IGNORECASE)
    text = re.sub(
        rf"^(?:last|previous|this\s+past|past|letzten|vergangenen)\s+(?={_EN_MONTH}$|{_DE_MONTH}$)",
        "",
        text,
        flags=re.I,
    )
    text = re.sub(r"^(?:previous|this\s+past|past)\s+(?=\w+day$)", "last ", text, flags=re.I)
    text = re.sub(r"^(?:earlier\s+)?this\s+(?=week|month|year)", "this ", text, flags=re.I)
    text = re.sub(r"\b(?:earlier|back)$", "ago", text, flags=re.I)
    text = re.sub(r"^(?:last|past|previous)\s+weekend$", "last saturday", text, flags=re.I)
    text = re.sub(
        r"^last\s+night$|^tonight$|^this\s+morning$",
        lambda m: "yesterday" if "last" in m[0].lower() else "today",
        text,
        flags=re.I,
    )
    if language == "es":
        text = re.sub(
            r"\b(?:una?|dos|tres|cuatro|cinco|seis|siete|ocho)\b", lambda m: _SPANISH[m[0].lower()], text, flags=re.I
        )
    if language == "zh":
        text = re.sub(r"^([一二两三四五六七八九])(?=天|个|星|周|年)", lambda m: m[0].translate(_CHINESE), text)
    return text


def _parsed(text: str, now: datetime, language: str) -> tuple[datetime, str] | None:
    if re.fullmatch(_COMPACT, text):
        text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    languages = [language, "en"] if language != "en" and language in _SPANS else ["en"]
    own = now.astimezone(UTC)
    for code in languages:
        found = _read_at(code, own.date(), text)
        if found is not None:
            moment, period = found
            if moment.time() == _NEVER_SAID:  # relative: the time of day is that of the query
                moment = datetime.combine(moment.date(), own.time())
            return aware(moment), period
    return None


#: A time of day that no text names: a parsed time that has it was read relative to the time of the query.
_NEVER_SAID = time(12, 34, 56, 789)


_ORDINAL = r"(?:st|nd|rd|th)?"
_ENGLISH_DATE = re.compile(
    rf"(?P<iso>\d{{4}})(?:-(?P<number>\d\d)(?:-(?P<day>\d\d))?)?"
    rf"|(?:(?P<first>\d{{1,2}}){_ORDINAL}\s(?:of\s)?)?(?P<month>{_EN_MONTH})(?:\s(?P<second>\d{{1,2}}){_ORDINAL})?"
    rf"(?:,?\s(?:of\s)?(?P<year>{_YEAR}))?",
    re.IGNORECASE,
)
_RELATIVE = re.compile(
    rf"(?P<count>{_EN_COUNT})\s(?P<ago>day|week|month|year)s?\sago|last\s(?P<last>week|month|year)", re.IGNORECASE
)
_COUNTS = {word: count for count, word in enumerate(_EN_COUNT.split("|")[2:], start=1)} | {"a": 1, "an": 1}
_RECENT = {"today": 0, "yesterday": 1}  # days ago
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _dated(text: str, today: date) -> tuple[datetime, str] | None:
    """Return the day, week, month or year that an English text names, and which of these it is.

    The library returns the same, but takes 0.1 s of processor time to load and to build its patterns. Of other texts,
    such as weekdays and times of day, it is asked.
    """
    if (days := _RECENT.get(text.lower())) is not None:
        return datetime.combine(today - timedelta(days=days), _NEVER_SAID), "day"
    if (relative := _RELATIVE.fullmatch(text)) is not None:
        return _before(today, relative)
    match = _ENGLISH_DATE.fullmatch(text)
    if match is None or (match["first"] and match["second"]):
        return None
    month = match["number"] or (match["month"] and _MONTHS.index(match["month"][:3].lower()) + 1)
    day = match["day"] or match["first"] or match["second"]
    year = match["iso"] or match["year"]
    if year is None:  # the last one, which may be this month or today
        year = today.year - ((int(month), int(day or 0)) > (today.month, today.day if day else 0))
    try:
        moment = datetime(int(year), int(month or 1), int(day or 1))
    except ValueError:  # no such day
        return None
    return moment, "day" if day else "month" if month else "year"


def _before(today: date, relative: re.Match[str]) -> tuple[datetime, str] | None:
    """Return the moment so many days, weeks, months or years before today; the last of a month where it is shorter."""
    unit, count = (relative["ago"] or relative["last"]).lower(), (relative["count"] or "1").lower()
    number = int(count) if count.isdigit() else _COUNTS[count]
    if unit in ("day", "week"):
        day = today - timedelta(days=number * _DAYS[unit])
    else:
        year, month = divmod(12 * today.year + today.month - 1 - number * (12 if unit == "year" else 1), 12)
        if year < 1:
            return None
        day = date(year, month + 1, min(today.day, monthrange(year, month + 1)[1]))
    return datetime.combine(day, _NEVER_SAID), unit


@lru_cache(maxsize=1024)
def _read_at(language: str, day: date, text: str) -> tuple[datetime, str] | None:
    """Return the moment and the period that a text names on this day.

    The library builds its patterns anew for every base time, which takes 60 ms: so it gets one a day.
    """
    if language == "en" and (dated := _dated(text, day)):
        return dated
    data = _library()(language, datetime.combine(day, _NEVER_SAID), text)
    return None if data.date_obj is None else (data.date_obj, str(data.period))


@lru_cache
def _library() -> Callable[[str, datetime, str], Any]:
    """Load the library on first use, because it takes 0.1 s."""
    from dateparser.date import DateDataParser

    def read(language: str, now: datetime, text: str) -> Any:
        base = {"RELATIVE_BASE": now, "PREFER_DATES_FROM": "past"}
        return DateDataParser(languages=[language], settings={**base, "RETURN_AS_TIMEZONE_AWARE": False}).get_date_data(
            text
        )

    return read


def _period(moment: datetime, period: str) -> tuple[datetime, datetime]:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case "year":
            return day.replace(month=1, day=1), day.replace(year=day.year + 1, month=1, day=1)
        case "month":
            begin = day.replace(day=1)
            return begin, begin.replace(year=begin.year + begin.month // 12, month=begin.month % 12 + 1)
        case "week":
            begin = day - timedelta(days=day.weekday())
            return begin, begin + timedelta(days=7)
    return day, day + timedelta(days=1)
