"""English names of languages by their ISO 639 codes, as LibreTranslate shows them."""

_TABLE = """
af Afrikaans, am Amharic, ar Arabic, as Assamese, az Azerbaijani, be Belarusian, bg Bulgarian, bn Bengali, br Breton,
bs Bosnian, ca Catalan, cs Czech, cy Welsh, da Danish, de German, el Greek, en English, eo Esperanto, es Spanish,
et Estonian, eu Basque, fa Persian, fi Finnish, fo Faroese, fr French, ga Irish, gd Scottish Gaelic, gl Galician,
gu Gujarati, ha Hausa, he Hebrew, hi Hindi, hr Croatian, hu Hungarian, hy Armenian, id Indonesian, ig Igbo,
is Icelandic, it Italian, ja Japanese, jv Javanese, ka Georgian, kk Kazakh, km Khmer, kn Kannada, ko Korean,
ku Kurdish, ky Kyrgyz, la Latin, lb Luxembourgish, lo Lao, lt Lithuanian, lv Latvian, mg Malagasy, mk Macedonian,
ml Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese, nb Norwegian Bokmål, ne Nepali, nl Dutch,
nn Norwegian Nynorsk, no Norwegian, oc Occitan, or Odia, pa Punjabi, pl Polish, ps Pashto, pt Portuguese,
ro Romanian, ru Russian, rw Kinyarwanda, sd Sindhi, se Northern Sami, si Sinhala, sk Slovak, sl Slovenian,
so Somali, sq Albanian, sr Serbian, sv Swedish, sw Swahili, ta Tamil, te Telugu, tg Tajik, th Thai, tk Turkmen,
tl Tagalog, tr Turkish, tt Tatar, ug Uyghur, uk Ukrainian, ur Urdu, uz Uzbek, vi Vietnamese, xh Xhosa, yi Yiddish,
yo Yoruba, zh Chinese, zu Zulu
"""
NAMES = {code: name for code, _, name in (entry.strip().partition(" ") for entry in _TABLE.split(","))}


def language_name(code: str) -> str:
    """The code itself where nobody knows better."""
    return NAMES.get(code, code)
