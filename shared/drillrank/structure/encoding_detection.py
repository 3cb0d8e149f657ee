"""Detection of legacy encodings by the letters and signs that each one would show.

charset-normalizer is made for long texts: it misreads most sentences of fewer than a hundred characters. Therefore the
usual encodings are compared first. Each decodes a sample, and the characters are scored as a reader would judge them:
letters by their rank in a language, signs inside words, capitals after small letters, letters of two scripts in one
word. charset-normalizer decides if no usual encoding gives a plausible text.
"""

from __future__ import annotations

import codecs
import unicodedata
from collections import Counter
from collections.abc import Iterable
from math import log

_SAMPLE_BYTES = 4000
_MIN_SCORE = -7.5  # for each byte that is not ASCII; texts below it are not plausible

# Encodings in the order in which they win ties, with the logarithm of their prior probability.
_PRIORS = {
    "cp1252": 0.0, "cp1251": -1.0, "cp932": -1.0, "gbk": -1.0, "cp949": -1.0, "big5": -1.0, "cp1250": -1.0,
    "koi8_r": -1.2, "euc_jp": -1.0, "iso8859_2": -1.5, "cp1253": -2.0, "cp1254": -2.0, "cp1257": -2.0, "cp1255": -1.4,
    "cp1256": -2.0, "mac_roman": -2.0, "cp866": -2.0, "cp850": -1.9, "cp874": -2.0, "koi8_u": -2.0, "iso8859_15": -2.0,
    "iso8859_5": -2.5, "iso8859_7": -2.5, "iso8859_9": -2.5, "mac_cyrillic": -2.5, "cp437": -3.0, "cp852": -3.0,
    "iso8859_13": -3.0, "utf_16_le": -6.0, "utf_16_be": -6.0, "iso8859_8": -3.0, "iso8859_6": -3.0,
}  # fmt: skip

# Letters beyond ASCII of each language that is written in Latin letters, the most frequent first.
_LATIN_LETTERS = (
    "üäößÜÄÖé", "éèàêçùôîâûëïœÉÀÈÊÇ", "óíáéñúüÁÓÉÍÑÚ", "ãçáéíóêõâúàôÁÉÓÇ", "èàòùéìÈÀ", "ëéïöüè", "äöåÄÖÅé",
    "øåæØÅÆé", "íáðéóúýþæöÞÁÍ", "łąężśćóńźŁŚŻÓĆ", "íáéěřýčšžůúťďňóČŠŽŘÚ", "áéíóýčšžľťúňďôäČŠŽĽ", "áéőöíóüúűÁÉÖŐÓÜ",
    "ăîâșțşţŞÎȘȚÂ", "čćšžđČŠŽĆĐ", "ıüşçğöİŞÇÖÜĞâ", "ėąšįųūčęžŠŽČ", "āīēšūņķļģžčĀĪŠ", "äõüöÕÄÜÖ", "áíéúóÁÉÍÓÚ",
)  # fmt: skip
# Small letters of other alphabets, the most frequent first.
_ALPHABETS = (
    "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё", "оаниіртвеслкдмупязьбгйчхцжшюїєщфґ", "аоиетнрвсдлпкмзубъчгщцжшяюхйьф",
    "аоиенрјтсквдумлпбзгчжцшћђхљњџф", "ατοιεσνηυρπκμλςόίδγάέωήχθύώφβξζψϊϋ", "יוהלאמתרבשנדעחפקםכגסצטזןץךף",
    "اليمنرتوبعدهسفكقحجشةأصطخضىذإزئغءثؤظآیپچگژ", "ารนอกเงมยลว่ดทส้ตะปบคหแจพชัีิ์็ไใึืุูโำขถผซธณศญฐภฎๆฯ",
)  # fmt: skip
_RARE_LETTER, _FOREIGN_LETTER = -9.0, -10.0
_LATIN_PRIOR = -2.5  # most letters of such texts are ASCII

# Frequent characters of Chinese in both forms, Japanese and Korean.
_FREQUENT = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所"
    "然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日月元期"
    "這個們來為國說時會對過發後裡經麼學現當沒動還進樣開從實們與關於業務應該區間電話資訊臺灣"
    "年月日円人大本中国会事的社者部生業分方上合地場立同出行政力学手自前目体定見言通物金動主明考高作性"
    "이다는을의에가한고하지로도사은기서를자리시나어인아대해정그들일수부과스제보전원장구여있었했습니면라만용"
    "世界約契書京東都市語文章題年期間社会株式東西南北租金房屋合同押"
    "계약월금조상공내비문주성관위경신실무"
)
_KANA = ("\u3041", "\u30ff")
_WIDE_SIGNS = frozenset("\u3000、。，．・：；？！「」『』（）【】《》〈〉％～〜ー々—－　０１２３４５６７８９")
_SIGNS = frozenset("“”‘’„‚«»‹›–—…•·§°©®™€£¥¿¡№\u00a0²³½¼¾±×µ")
_APOSTROPHES = frozenset("’\u00ad")


def detect_encoding(content: bytes) -> str:
    """Return the Python name of the likeliest encoding of a text that is not UTF-8.

    The encoding may fail on some bytes of the content.

    >>> detect_encoding("Die Straße ist “lang”.".encode("cp1252"))
    'cp1252'
    >>> detect_encoding("Арендатор платит.".encode("koi8_r")), detect_encoding("賃料です。".encode("shift_jis"))
    ('koi8_r', 'cp932')
    """
    sample = _take_sample(content)
    scores: dict[str, float] = {}
    for encoding, prior in _PRIORS.items():
        text = _decode_sample(sample, content, encoding)
        if text is not None:
            scores[encoding] = prior + _score_text(text)
    n_high_bytes = sum(byte > 0x7F for byte in sample)
    for encoding in sorted(scores, key=scores.__getitem__, reverse=True):  # stable: ties keep their order
        if scores[encoding] < _MIN_SCORE * n_high_bytes:
            break
        if _can_decode(content, encoding):
            return encoding
    return _ask_charset_normalizer(sample) or next(iter(scores), "cp1252")


def _take_sample(content: bytes) -> bytes:
    """Return the first lines that are not ASCII, up to `_SAMPLE_BYTES` bytes."""
    lines: list[bytes] = []
    n_bytes = 0
    for line in content.splitlines(keepends=True):
        if not line.isascii():
            lines.append(line[: _SAMPLE_BYTES - n_bytes])
            n_bytes += len(lines[-1])
            if n_bytes >= _SAMPLE_BYTES:
                break
    return b"".join(lines)


def _decode_sample(sample: bytes, content: bytes, encoding: str) -> str | None:
    """Return the text of a sample that may end inside a character; None if the encoding does not fit."""
    if encoding.startswith("utf_16"):  # its lines do not end at the byte of a line feed
        if len(content) % 2:
            return None
        sample = content[:_SAMPLE_BYTES]
    try:
        return codecs.getincrementaldecoder(encoding)("strict").decode(sample, False)
    except UnicodeDecodeError:
        return None


def _can_decode(content: bytes, encoding: str) -> bool:
    """Return True if the encoding decodes all bytes."""
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _ask_charset_normalizer(sample: bytes) -> str:
    """Return the encoding that charset-normalizer detects; an empty string if it detects none."""
    import charset_normalizer  # few files need it

    match = charset_normalizer.from_bytes(sample).best()
    return "" if match is None or match.encoding.startswith(("utf", "ascii")) else match.encoding


def _score_text(text: str) -> float:
    """Return the logarithm of the probability of the characters beyond ASCII, in the language that fits best."""
    letters: Counter[str] = Counter()
    score = 0.0
    padded = f" {text} "
    for index, character in enumerate(padded):
        if character < "\x80":
            continue
        before, after = padded[index - 1], padded[index + 1]
        if character.isalpha() or unicodedata.category(character).startswith("M"):
            if character < "\u1100":
                letters[character] += 1
                score += _score_letter_context(character, before, after)
            else:
                score += _score_wide_letter(character, before, after)
        else:
            score += _score_sign(character, before, after)
    return score + _score_letters(letters)


def _score_letter_context(character: str, before: str, after: str) -> float:
    """Return the penalty for a letter of an alphabet between two other characters."""
    if not before.isalpha():
        is_alone = not after.isalpha()
        return -1.5 * is_alone - 2.0 * (before.isdigit() or after.isdigit())
    if before > "\u2e7f":
        return -6.0
    is_latin = character < "\u0250"
    penalty = 0.0
    if is_latin != (before < "\u0250"):
        penalty -= 6
    elif is_latin and before > "\x7f":
        penalty -= 1.5
    if character.isupper():
        penalty -= 6 if before.islower() else 0.5
    return penalty


def _score_wide_letter(character: str, before: str, after: str) -> float:
    """Return the score of a Chinese, Japanese or Korean character."""
    penalty = -3.0 * (before < "\x80" and before.isalpha()) - 3.0 * (after < "\x80" and after.isalpha())
    if _is_hangul(character) != _is_hangul(before) and before > "\u2e7f" and before.isalpha():
        penalty -= 3.0  # Korean words have no Chinese characters today
    if _KANA[0] <= character <= _KANA[1]:
        return penalty - (3.5 if character < "\u30a0" else 4.5)
    if character in _FREQUENT:
        return penalty - 4.5
    if "\uff61" <= character <= "\uff9f":  # katakana of half width, which any high byte may be
        return penalty - 8
    if _is_hangul(character):
        return penalty - (7.5 if _lead_byte(character, "euc_kr") else 12)
    is_common = (
        0xB0 <= _lead_byte(character, "gb2312") <= 0xD7
        or 0xB0 <= _lead_byte(character, "euc_jp") <= 0xCF
        or 0xA4 <= _lead_byte(character, "big5") <= 0xC6
    )
    return penalty - (7 if is_common else 12)


def _is_hangul(character: str) -> bool:
    """Return True for a Korean syllable."""
    return "\uac00" <= character <= "\ud7a3"


def _lead_byte(character: str, encoding: str) -> int:
    """Return the first byte of a character in an encoding that sorts by frequency; 0 if it is not in there."""
    return (character.encode(encoding, errors="ignore") or b"\0")[0]


def _score_sign(character: str, before: str, after: str) -> float:
    """Return the score of a character that is not a letter."""
    if character in _WIDE_SIGNS:
        return -4.0 if before > "\x7f" or not before.isalpha() else -7.0
    is_inside_word = before.isalpha() and after.isalpha()
    if character in _APOSTROPHES or (character == "·" and before + after in ("ll", "LL")):  # Catalan
        return -3.5
    if character in _SIGNS:
        is_attached = (
            before.isalpha()
            if character in "„‚‹«¿¡"
            else character in "§£¥€№¼½¾±µ" and (before.isalpha() or after.isalpha())
        )
        return -9.0 if is_inside_word else -6.5 if is_attached else -4.0
    if "\u2500" <= character <= "\u259f":  # lines of tables in DOS texts
        return -8.0 if before.isalpha() or after.isalpha() else -5.0
    if unicodedata.category(character) in ("Cc", "Co", "Cn", "Cs"):
        return -20.0
    return -10.0 if is_inside_word else -7.0


def _score_letters(letters: Counter[str]) -> float:
    """Return the score of letters in the language that fits them best."""
    scores = [0.0] if not letters else []
    for language in _LATIN_LETTERS if letters else ():
        rank_by_letter = {letter: rank for rank, letter in enumerate(language)}
        scores.append(
            _sum_scores(
                (_LATIN_PRIOR - 0.8 - 0.3 * rank_by_letter[letter] if letter in rank_by_letter else _RARE_LETTER, n)
                if letter < "\u0250"
                else (_FOREIGN_LETTER, n)
                for letter, n in letters.items()
            )
        )
    for language in _ALPHABETS if letters else ():
        rank_by_letter = {letter: rank for rank, letter in enumerate(language)}
        scale = len(language) / 3.6  # frequencies fall exponentially with the rank
        scores.append(
            _sum_scores(
                (
                    -log(scale) - rank_by_letter[letter.lower()] / scale
                    if letter.lower() in rank_by_letter
                    else _RARE_LETTER,
                    n,
                )
                for letter, n in letters.items()
            )
        )
    return max(scores)


def _sum_scores(scores_and_counts: Iterable[tuple[float, int]]) -> float:
    """Return the sum of scores, each as often as it occurs."""
    return sum(score * n for score, n in scores_and_counts)
