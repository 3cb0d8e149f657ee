"""The words that an answer is read by: one table of kinds, a letter each, in the languages that models answer in.

Phrases are separated by commas, in lower case. A phrase in Chinese, Japanese or Korean script is found inside a text
without spaces; any other consists of whole words.
"""

from __future__ import annotations

import re
import unicodedata

_TABLE = {
    # What the items are called.
    "n": """paragraph, paragraphs, para, paras, par, passage, passages, section, sections, sec, id, ids, number,
        numbers, nos, nr, chapter, chapters, item, items, text, texts, excerpt, excerpts, snippet, snippets,
        document, documents, chunk, chunks, indices, index, entry, entries, p, pp, §, ¶, #, absatz, absätze,
        absätzen, abschnitt, abschnitte, abschnitten, nummer, nummern, kapitel, passagen, textstelle, paragraphe,
        paragraphes, numéro, numéros, numero, numeros, párrafo, párrafos, sección, secciones, número, números,
        pasaje, pasajes, paragrafo, paragrafi, sezione, sezioni, brano, brani, parágrafo, parágrafos, seção,
        seções, secção, secções, trecho, trechos, alinea, alinea's, paragraaf, paragrafen, sectie, secties,
        passages, akapit, akapity, akapitu, akapitów, akapitach, sekcja, sekcje, sekcji, fragment, fragmenty,
        fragmentów, numer, numery, абзац, абзацы, абзаца, абзацев, абзацах, раздел, разделы, разделов, разделе,
        пункт, пункты, номер, номера, параграф, параграфы, параграфов, الفقرة, الفقرات, فقرة, فقرات, والفقرة,
        القسم, الأقسام, أقسام, قسم, رقم, أرقام, الفقرتان, الفقرتين, 段落, 第, 段, 节, 節, 章节, 编号, 編號, 部分,
        stycke, stycken, styckena, paragraf, paragraflar, odstavec, odstavce,
        odstavci, odstavců, odstavcích, odsek, odseky, odseku, odsekov, odsekoch, oddíl, oddíly, đoạn, अनुच्छेद, абзаци,
        παράγραφος, παράγραφοι,
        פסקה, פסקאות, 番号, 番, 号, セクション, パラグラフ, 문단, 단락, 번호, 번, 섹션, 절, 항목""",
    # What the items are called behind their number, or what makes it one.
    "k": """numaralı, nolu, no'lu""",
    # Says that no item is meant.
    "z": """none, nothing, nope, nah, nil, null, n/a, n.a, na, ∅, empty, zero, nobody, no one, not one,
        not a single, kein, keine,
        keiner, keines, keinen, keinem, nichts, leer, aucun, aucune, rien, ninguno, ninguna, ningún, nada, nessuno,
        nessuna, nessun, niente, nulla, nenhum, nenhuma, geen, niets, geen enkele, żaden, żadna, żadne, żadnego,
        żadnych, nic, brak, нет, ни один, ни одного, ни одна, ничего, никакие, никакой, لا شيء, لا يوجد, لا توجد,
        ليس هناك, لا أحد, 没有, 沒有, 无, 無, 皆无, なし, 無し, 何もない, ありません, ない, 없음, 없습니다, 없다,
        없어요, 해당 없음, ingen, inget, inga,
        hiçbiri, hiçbir, yok, žádný, žádné, žádná, žiadny, žiadne, žiadna, không có, tidak ada, कोई नहीं, κανένα, καμία,
        אף אחד, жоден, немає""",
    # Denies what is said with it.
    "x": """not, no, neither, weder, ni, isn't, aren't, don't, doesn't, didn't, cannot, can't, won't, nor,
        unable, fails, exclude, excluding, excluded, excludes, omit, skip, ignore, discard, drop, remove, rule out,
        ruled out, reject, rejected, without, lacks, lack, false, wrong, couldn't, could not, left out, nicht,
        schließe, ausgeschlossen, pas, ne, n'est, n'a, jamais, non, não, nao, niet, nie, не, ليست, ليس, لا, لم,
        غير, 不, 不是, 并不, 未, ではない, ではありません, 아닙니다, 아니다, 않습니다, 않는다, 않음, no es, no son,
        no está, no están, no tiene, no tienen, no contiene, no contienen, no responde, no responden, no menciona,
        non è, non sono, není, nejsou, neodpovídá, neodpovídají, değil, değildir, ✗, ✘, ❌, ✖, ☐""",
    "u": """irrelevant, unrelated, off topic, off-topic, useless, unhelpful, unimportant, not relevant,
        less relevant, least relevant, beside the point, nonrelevant, irrelevante, irrelevantes, irrilevante,
        irrilevanti, irrelevanti, unwichtig, hors sujet, non pertinent, non pertinents, nieistotny, nieistotne,
        нерелевантны, нерелевантен, нерелевантно, нерелевантные, irelevantní, nerelevantní, nerelevantné, ilgisiz,
        ilgili değil,
        ilgili değildir, 不相关, 不相關, 无关, 無關, 無関係,
        関係ありません, 関係ない, 関連がありません, 関連はありません, 関連しません, 関連しない, 関連していません,
        関連性がありません, 関連性はありません, 관련이 없습니다, 관련 없음, 관련이 없음, 관련 없는, 관련없음, 무관,
        غير ذات صلة, ليست ذات صلة, لا صلة""",
    "r": """relevant, relevance, label,
        information, evidence, yes, true, related, pertinent, useful, helpful, applicable,
        needed, include, included, selected, important, apply, applies, qualify, qualifies, match, matches, ja,
        relevante, relevanter, relevanten, wichtig, oui, pertinente, pertinentes, pertinents, utile, utiles, sí,
        relevantes, rilevante, rilevanti, sì, pertinenti, sim, relevant zijn, istotny, istotne, istotnych, tak,
        релевантны, релевантен, релевантные, релевантных, релевантно, да, относится, относятся, подходит, подходят,
        relevantní, relevantné, relevantný, ilgili, ilgilidir,
        نعم, صلة, ذات صلة, ذو صلة, 相关, 相關, 有关, 是, 関連, 関連する, はい, 該当, 관련, 관련된, 예, 네, 해당, ✓,
        ✔, ✅, ☑""",
    # What an item does: as the verb behind a number it makes that an id.
    "v": """contain, contains, containing, mention, mentions, mentioned, discuss, discusses, discussed, state,
        states, stated, say, says, describe, describes, provide, provides, provided, give, gives, given, explain,
        explains, address, addresses, addressed, answer, answers, answered, refer, refers, cover, covers, covered,
        talk, talks, tell, tells, show, shows, report, reports, found, find, relate, relates, pertain, pertains,
        deal, deals, speak, speaks, list, lists, hold, holds, have, has, indicate, indicates, support, supports,
        help, helps, enthält, enthalten, erwähnt, erwähnen, beantwortet, beantworten, nennt, nennen, gibt, geben,
        beschreibt, behandelt, contient, contiennent, mentionne, mentionnent, répond, répondent, donne, donnent,
        parle, contiene, contienen, menciona, mencionan, responde, responden, tiene, contengono, risponde,
        rispondono, contém, contêm, mencionam, respondem, bevat, bevatten, noemt, noemen, beantwoordt, zawiera,
        zawierają, odpowiada, odpowiadają, содержит, содержат, отвечает, отвечают, упоминает, упоминают, تحتوي,
        يحتوي, تذكر, تجيب, 包含, 提到, 提及, 回答, 含む, 含ん, 포함, 언급""",
    "a": """all, every, everything, anything, alle, alles, allen, jeder, jede, sämtliche, tous, toutes, tout,
        toute, todos, todas, todo, tutti, tutte, tutto, tudo, allemaal, wszystkie, wszystko, wszystkich, все, всё,
        جميع, كل, 全部, 所有, 都, すべて, 全て, 모두, 모든, 전부""",
    "e": """except, excepting, except for, apart from, other than, aside from, save for, minus,
        with the exception of, besides, barring, außer, ausser, ausgenommen, bis auf, mit ausnahme von,
        mit ausnahme der, sauf, excepté, hormis, à l'exception de, à l'exception du, excepto, salvo, menos,
        a excepción de, tranne, eccetto, a parte, a eccezione di, exceto, com exceção de, behalve, uitgezonderd,
        met uitzondering van, oprócz, poza, z wyjątkiem, кроме, за исключением, باستثناء, ما عدا, عدا, إلا, 除了,
        除, 以外, を除く, を除いて, 제외, 제외하고, 제외한""",
    "t": """rest, other, others, remaining, remainder, further, additional, else, more, another, übrigen,
        anderen, andere, weiteren, weitere, autre, autres, reste, otro, otros, otra, otras, demás, resto, altri,
        altre, outros, outras, demais, overige, pozostałe, inne, innych, остальные, другие, других, الأخرى, الباقي,
        باقي, 其他, 其余, 其餘, 他の, その他, 残り, 나머지, 다른""",
    # Turns to something else, so that a denial ends.
    "b": """but, however, while, whereas, though, although, yet, instead, nevertheless, still, so, therefore,
        thus, hence, aber, sondern, während, jedoch, hingegen, dagegen, also sind, mais, tandis que, alors que,
        cependant, toutefois, donc, pero, sino, mientras, mientras que, sin embargo, ma, mentre, però, invece,
        tuttavia, mas, enquanto, porém, maar, terwijl, echter, ale, lecz, natomiast, jednak, но, а, однако,
        тогда как, لكن, ولكن, بينما, 但, 但是, 而, 不过, 不過, しかし, ですが, 一方, 하지만, 그러나, 반면, 지만""",
    # Takes back what was said before.
    "w": """wait, no wait, hold on, actually, correction, scratch that, on second thought,
        on second thoughts, hmm, sorry, i meant, i mean, rather, or rather, let me correct, let me correct that,
        let me correct myself, let me revise, let me reconsider, no only, no just, no actually, no sorry, oops,
        strike that, never mind, my mistake, revised, corrected, moment, halt, warte, korrektur, nein, genauer,
        besser gesagt, plutôt, attendez, en fait, correction, pardon, espera, mejor dicho, perdón, corrección,
        aspetta, anzi, correzione, espere, aliás, correção, wacht, correctie, poprawka, czekaj, подождите, точнее,
        вернее, поправка, انتظر, تصحيح, 更正, 等等, 不对, 訂正, いや, 정정, 아니요, 잠깐""",
    "l": """also, additionally, plus, add, in addition, as well, auch, zusätzlich, aussi, también, anche,
        também, ook, również, także, też, ещё, также, أيضا, أيضًا, 还有, 也, また, 또한, 도""",
    "c": """because, since, as, due to, weil, da, denn, parce que, parce qu'il, car, puisque, porque, ya que,
        perché, poiché, pois, omdat, want, ponieważ, bo, потому что, так как, поскольку, لأن, لأنها, 因为, 因為,
        なぜなら, ため, 왜냐하면""",
    "f": """if, first thought, initially, at first, unless, in case, whether, wenn, falls, sofern, si, se, caso,
        als, indien, jeśli, jeżeli, если, إذا, 如果, 若, もし, 만약""",
    "-": """to, through, thru, until, till, bis, à, a, al, tot, t/m, do, až, до, по, إلى, 至, 到, から, 부터, -, –, —,
        −, ~, 〜, →""",
    "&": """and, or, as well as, und, oder, sowie, et, ou, ainsi que, y, e, o, u, ed, oraz, i, lub, en, ve, veya, и,
        или,
        و, أو, и также, 和, 与, 與, 及, 以及, 跟, 或, と, や, および, 及び, 와, 과, 및, 그리고, &, +, /, ，, 、, ،,
        ,""",
    # A number behind one of these is no id.
    "p": """out of, page, pages, figure, figures, fig, table, tables, year, years, version, score, scored, step, steps,
        equation, than, about, over, under, nearly, almost, top, confidence, hop, line, lines, question, following,
        these, those, roughly, approximately, total, count, rating, footnote, appendix, level, rank, part, seite,
        abbildung, tabelle, jahr, frage, figura, tabla, tabela, página, pagina, année, année, vers, 年, 页, 図, 表,
        gpt, $, €, £, ±, ≈, ×""",
    # Asks which items are meant, behind a verb; before one it is as good as "that".
    "q": """which, which one, which ones, welche, welcher, welches, welchen, quel, quelle, quels, quelles, lequel,
        lesquels, lesquelles, qué, cuál, cuáles, quale, quali, qual, quais, welke, który, które, które z, które są,
        какие, какой, какая, který, která, které, hangi, hangileri, 哪些, 哪个, 哪個""",
    # May stand between an item and what is said of it.
    "s": """is, are, was, were, be, seem, seems, appear, appears, look, looks, does, do, did, would, could, might,
        may, can, will, should, ist, sind, scheint, scheinen, est, sont, es, son, está, están, parece, parecen, è,
        sono, sembra, é, são, está, estão, zijn, jest, są, является, являются, jsou, sú, هي, هو, 是否, 为, 為, の, に,
        を,
        의, 을, 를, 에, 에는, は, が, も, です, である, 은, 는, 이, 가, 입니다, と, だけ, のみ, 만, 까지, まで, =,
        only, just, both, aussi, nur, allein, apenas, tylko, только""",
    "g": """that, this, it, they, them, the, an, in, on, at, from, by, for, here, above, below, listed,
        probably, likely, maybe, perhaps, possibly, then, very, quite, clearly, directly, definitely,
        at all, really, one, ones, i, think, believe,
        my, your, offered, of, der, die, das, den, dem, des, dieser, diese, diesen, sehr, von, vom, zu, für, wohl,
        hier, dafür, le, la, les, du, de, ces, ce, cette, seulement, seul, seuls, que, el, los, las, de los,
        de las, estos, estas, sólo, solo, único, os, as, dos, das, o, il, lo, gli, dei, delle, della, di, soltanto,
        questi, queste, er, het, van, deze, alleen, slechts, z, w, tych, из, это, этих, в, в этих, في, من, فقط,
        هذه, على, 只有, 仅, 只, 的, 均, *, •, any, há, hay,
        y a, il y a, gibt es""",
}

CZECH = re.compile(r"\b(?:odst[ae]v\w+|odsek\w*|odd[ií]l\w*|jsou|sú|relevantn[íýé]\w*|žádn\w+|žiadn\w+)\b")
"""Words that show an answer to be in Czech or Slovak, where "a" means "and", and not "to" as between the numbers of
Spanish, Portuguese or Italian."""

CHINESE = "\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Ranges of the scripts that are written without spaces, or with particles glued to numbers."""

KINDS: dict[str, str] = {}
"""The kind of each phrase, as `plain` writes it: the first one of the table, but `,` for a comma, and for what Chinese,
Japanese or Korean put behind a number `k` of the nouns and `E` of the exceptions."""


def plain(text: str) -> str:
    """The text in one spelling: compatible characters made one, lower case, one kind of apostrophe."""
    # In pieces, for a run of combining characters takes quadratic time.
    pieces = (unicodedata.normalize("NFKC", text[at : at + 1000]) for at in range(0, len(text), 1000))
    return "".join(pieces).casefold().replace("’", "'")


for _kind, _phrases in _TABLE.items():
    for _phrase in filter(None, map(str.strip, _phrases.split(","))):
        KINDS.setdefault(plain(" ".join(_phrase.split())), _kind)
KINDS[","] = ","
for _kind, _phrase in [(kind, phrase) for phrase, kind in KINDS.items() if re.match(f"[{CHINESE}]", phrase)]:
    KINDS[_phrase] = {"n": "k", "e": "E"}.get(_kind, _kind)
