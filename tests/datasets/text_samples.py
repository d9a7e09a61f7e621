"""Random strings of all the kinds that part tokenizers: scripts, emoji, marks, code, spaces, controls."""

import functools
import random
import sys
import unicodedata

from tokenizers import normalizers, pre_tokenizers

SENTENCES = (
    "The recurrent state isn't written back at every token; it's kept in a ring, and they'll flush it when it's full.",
    "We've measured 1024 tokens in 3.75 seconds, i.e. 273 tokens/s (±2 %).",
    "La façade naïve coûte 12 € — déjà vu, où çà ?",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Straße, STRASSE, straße.",
    "Быстрая коричневая лиса прыгает через ленивую собаку 15 раз.",
    "Η γρήγορη καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί. ΟΔΥΣΣΕΥΣ",
    "速い茶色の狐はのろまな犬を飛び越える。カタカナとひらがな、漢字。",
    "敏捷的棕色狐狸跳过了懒狗。数字１２３和標點「測試」。",
    "빠른 갈색 여우가 게으른 개를 뛰어넘습니다. 한국어 문장.",
    "الثعلب البني السريع يقفز فوق الكلب الكسول ١٢٣٤.",
    "השועל החום המהיר קופץ מעל הכלב העצלן.",
    "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है १२३।",
    "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจ ๑๒๓",
    "Con cáo nâu nhanh nhẹn nhảy qua con chó lười biếng. Tiếng Việt có nhiều dấu.",
    "İstanbul'da ılık bir gün; IĞDIR ve iğde.",
    "def state(x, dt):\n    return [exp(-a * t) for t in dt]  # O(n)\n",
    "for (int i = 0; i < n; ++i) {\r\n\tsum += x[i] * 0x1F;\r\n}\r\n",
    "{\"key\": [1, 2.5e-3, null], \"path\": \"C:\\\\temp\\\\a.txt\"}",
    "<html><body class='a'>&nbsp;x &lt; y</body></html>",
    "https://example.org/a?b=c&d=%20#frag user@example.org #tag @name",
)

EMOJI = ("🙂", "👍🏽", "👩‍💻", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "1️⃣", "❤️", "☕", "🧑🏿‍🚀")
CONTRACTIONS = ("'s", "'S", "'t", "'RE", "'ve", "'Ll", "'d", "'M", "’s", "'ſ", "I'm", "'sa", "''s", "ſ", "\u212a")
CONTROLS = tuple(chr(value) for value in (*range(0x20), 0x7F, *range(0x80, 0xA0), 0xAD, 0xFEFF, 0x200B, 0x200C, 0x200D,
                                          0x200E, 0x2060, 0xFFFD, 0xFFFF, 0x180E, 0xE0001, 0xE0061))
SPACES = (" ", "  ", "\t", "\n", "\r\n", "\r", "\n\n", "\u00a0", "\u3000", "\u2003", "\u2028", "\u1680", "\u0085", "\v")
MARKS = ("e\u0301", "a\u0323\u0302", "a\u0302\u0323", "\u0301", "\u1100\u1161\u11a8", "\uac00\u11a8", "n\u0303o", "\u00c5",
         "\u212b", "\ufb01", "\u2460", "\u00bd", "\u2167", "q\u0307\u0323", "\u0344", "\u0958", "\ufb1d", "\U0001d15e", "ﷺ")
DIGITS = "0123456789٣७๕１²½Ⅷ𝟙"


@functools.cache
def assigned_characters():
    """Of Unicode 14.0, without surrogates and private use, and only some of the large blocks of like characters."""
    if unicodedata.unidata_version < "14":
        raise RuntimeError("unicodedata is older than the libraries that are compared")
    chosen = []
    for value in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(value))
        if category in ("Cn", "Cs", "Co"):
            continue
        name = unicodedata.name(chr(value), "")
        if name.startswith(("CJK UNIFIED", "HANGUL SYLLABLE", "TANGUT", "CUNEIFORM", "EGYPTIAN", "NUSHU")) and value % 37:
            continue
        chosen.append(chr(value))
    return chosen


@functools.cache
def characters_of_old_tables():
    """What the tokenizers library still knows as unassigned: it normalizes by Unicode 9.0, and has punctuation of 8.0."""
    strip, punctuation = normalizers.StripAccents(), pre_tokenizers.Punctuation("isolated")
    forms = {name: getattr(normalizers, name)() for name in ("NFD", "NFKC")}

    def is_old(character):
        category = unicodedata.category(character)[0]
        if (strip.normalize_str(character) == "") != (category == "M"):
            return True
        if character > "\x7f" and len(punctuation.pre_tokenize_str(f"a{character}b")) == 3 and category != "P":
            return True
        if category == "P" and len(punctuation.pre_tokenize_str(f"a{character}b")) != 3:
            return True
        marked = f"a\u0323{character}\u0301\u0345 {character}\u0334"
        return any(form.normalize_str(marked) != unicodedata.normalize(name, marked) for name, form in forms.items())

    old = {character for character in assigned_characters() if is_old(character)}
    # U+166D was punctuation until Unicode 12. All others must be new, or the library and Python differ in earnest.
    surprising = [c for c in old if c != "\u166d" and unicodedata.ucd_3_2_0.category(c) != "Cn"]
    if surprising or len(old) > 600:
        raise RuntimeError(f"{len(old)} characters differ, among them {surprising}")
    return old


class Samples:
    def __init__(self, seed, added=(), old_tables=False):
        self.random = random.Random(seed)
        self.added = added
        omitted = characters_of_old_tables() if old_tables else ()
        self.characters = [character for character in assigned_characters() if character not in omitted]
        self.words = [word for sentence in SENTENCES for word in sentence.split(" ")]

    def segment(self):
        pick = self.random
        kind = pick.randrange(13)
        if kind == 0:
            return "".join(pick.choices(self.characters, k=pick.randrange(1, 8)))
        if kind == 1:
            return pick.choice(EMOJI) * pick.randrange(1, 3)
        if kind == 2:
            return "".join(pick.choices(SPACES, k=pick.randrange(1, 5)))
        if kind == 3:
            return pick.choice(SPACES) * pick.randrange(1, 20)
        if kind == 4:
            return "".join(pick.choices(CONTROLS, k=pick.randrange(1, 4)))
        if kind == 5:
            return "".join(pick.choices(MARKS, k=pick.randrange(1, 4)))
        if kind == 6:
            return "".join(pick.choices(DIGITS, k=pick.randrange(1, 9)))
        if kind == 7:
            return pick.choice(CONTRACTIONS)
        if kind == 8:
            return "".join(pick.choices("!?.,;:-_()[]{}<>\"'`~@#$%^&*+=|\\/▁Ġ«»…。、", k=pick.randrange(1, 6)))
        if kind == 9 and self.added:
            return pick.choice(["", " ", "\t ", "a"]) + pick.choice(self.added) + pick.choice(["", " ", "\n", "b"])
        word = pick.choice(self.words)
        return pick.choice(["", " "]) + pick.choice([word, word, word.upper(), word.lower(), word[::-1]])

    def strings(self, count):
        pick = self.random
        return ["".join(self.segment() for _ in range(pick.randrange(1, 9))) for _ in range(count)]

    def every_character(self, length=16):
        """Strings that hold every assigned character, in an order of their own."""
        shuffled = self.characters[:]
        self.random.shuffle(shuffled)
        return ["".join(shuffled[at : at + length]) for at in range(0, len(shuffled), length)]
