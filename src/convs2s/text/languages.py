"""Names of languages, and warnings about languages that the preparations suit less well.

This module does not load the tokenizer, which takes long.
"""

import re
import unicodedata

from convs2s.config.corpus import PREPARATIONS

# Chinese, Cantonese, Japanese, Thai, Lao, Khmer and Burmese have no blanks between words.
_WITHOUT_BLANKS = re.compile("zh|yue|ja|th|lo|km|my")
# The languages for which sacremoses has a list of abbreviations. They are copied here, because
# importing sacremoses takes half a second.
_WITH_ABBREVIATIONS = re.compile(
    "as|bn|ca|cs|de|el|en|es|et|fi|fr|ga|gu|hi|hu|is|it|kn|lt|lv|ml|mni|mr|nl|or|pa|pl|pt|ro|ru|sk|"
    "sl|sv|ta|tdt|te|yue|zh"
)
# Languages of India whose signs under and between letters are letters for sacremoses only.
_WITH_JOINING_SIGNS = re.compile("as|bn|gu|hi|kn|ml|mni|mr|or|pa|ta|te")

# Code -> the English name, and after a slash the language's own name.
_NAMES = {
    "ar": "Arabic/العربية",
    "as": "Assamese/অসমীয়া",
    "bg": "Bulgarian/Български",
    "bn": "Bengali/বাংলা",
    "ca": "Catalan/Català",
    "cs": "Czech/Čeština",
    "da": "Danish/Dansk",
    "de": "German/Deutsch",
    "el": "Greek/Ελληνικά",
    "en": "English",
    "es": "Spanish/Español",
    "et": "Estonian/Eesti",
    "eu": "Basque/Euskara",
    "fa": "Persian/فارسی",
    "fi": "Finnish/Suomi",
    "fr": "French/Français",
    "ga": "Irish/Gaeilge",
    "gl": "Galician/Galego",
    "gu": "Gujarati/ગુજરાતી",
    "he": "Hebrew/עברית",
    "hi": "Hindi/हिन्दी",
    "hr": "Croatian/Hrvatski",
    "hu": "Hungarian/Magyar",
    "id": "Indonesian/Bahasa Indonesia",
    "is": "Icelandic/Íslenska",
    "it": "Italian/Italiano",
    "ja": "Japanese/日本語",
    "ka": "Georgian/ქართული",
    "kk": "Kazakh/Қазақша",
    "kn": "Kannada/ಕನ್ನಡ",
    "ko": "Korean/한국어",
    "lt": "Lithuanian/Lietuvių",
    "lv": "Latvian/Latviešu",
    "mk": "Macedonian/Македонски",
    "ml": "Malayalam/മലയാളം",
    "mr": "Marathi/मराठी",
    "nb": "Norwegian Bokmål/Norsk bokmål",
    "nl": "Dutch/Nederlands",
    "no": "Norwegian/Norsk",
    "or": "Odia/ଓଡ଼ିଆ",
    "pa": "Punjabi/ਪੰਜਾਬੀ",
    "pl": "Polish/Polski",
    "pt": "Portuguese/Português",
    "ro": "Romanian/Română",
    "ru": "Russian/Русский",
    "sk": "Slovak/Slovenčina",
    "sl": "Slovenian/Slovenščina",
    "sq": "Albanian/Shqip",
    "sr": "Serbian/Српски",
    "sv": "Swedish/Svenska",
    "ta": "Tamil/தமிழ்",
    "te": "Telugu/తెలుగు",
    "th": "Thai/ไทย",
    "tr": "Turkish/Türkçe",
    "uk": "Ukrainian/Українська",
    "ur": "Urdu/اردو",
    "vi": "Vietnamese/Tiếng Việt",
    "yue": "Cantonese/粵語",
    "zh": "Chinese/中文",
}


def language_name(code: str) -> str:
    """Return the English name of a language; the code itself if the name is not known."""
    known = _NAMES.get(code.partition("_")[0])
    return known.partition("/")[0] if known else code


def is_name_of(text: str, code: str) -> bool:
    """Return whether a text is the name of a language, in English or in the language itself.

    Case, accents and blanks around the text do not count.
    """
    known = _NAMES.get(code.partition("_")[0], "")
    return bool(text) and _letters(text) in map(_letters, known.split("/"))


def _letters(text: str) -> str:
    """Return a text without case, accents and the blanks around it."""
    characters = unicodedata.normalize("NFD", text.strip().casefold())
    return "".join(one for one in characters if unicodedata.category(one) != "Mn")


def preparation_warning(language: str, preparation: str) -> str | None:
    """Return a warning if a preparation does not suit a language well, or else None.

    Only the part of ``language`` before an underscore counts. There is no warning about ``none``
    and the preparations of extensions.
    """
    if preparation not in PREPARATIONS or preparation == "none":
        return None
    code = language.partition("_")[0]
    if _WITHOUT_BLANKS.fullmatch(code):
        return (
            f"text in '{language}' has no blanks between words, and no preparation here splits "
            "it: split it yourself and state `preparation: {train: none, test: none}` "
            "(docs/own_language_pair.md)"
        )
    if _WITH_JOINING_SIGNS.fullmatch(code):
        return (
            f"'{language}': words are not cut at the signs that join letters, where Moses' "
            "tokenizer cuts them (docs/preparation.md)"
        )
    if _WITH_ABBREVIATIONS.fullmatch(code):
        return None
    text = (
        f"'{language}' has no list of abbreviations: the list of English is used "
        "(docs/preparation.md)"
    )
    if code == "ko":
        text += "; spaces between words stay, which Moses of 2017 removes"
    if len(code) > 2:
        text += (
            "; if the language has a code of two letters, such as ro for Romanian, use "
            "that code"
        )
    return text
