"""Words by which a generated question gives itself away, by language.

Alternatives of regular expressions over a question's tokens (`pipeline.generation.words`): lower
case, without apostrophes, one blank between. `references` puts them together.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrases:
    """How a language speaks of a text.

    `text`: nouns that only a reader of the passage would use. `page`: nouns that a customer may ask
    about too, which count where the question asks what is said in them. `author`: who wrote it.
    `according`, `told` ("mentioned"), `above` and `say`: words that ask what is said. `the` and
    `this`: articles and demonstratives, `in_the` a preposition with its article, `in_` one without.
    `given`: adjectives between article and noun.
    """

    text: str
    page: str
    author: str
    according: str
    told: str
    above: str
    say: str
    the: str
    this: str
    in_the: str
    in_: str
    given: str


ENGLISH = Phrases(
    text="texts?|passages?|paragraphs?|excerpts?|snippets?",
    page="documents?|documentation|articles?|sections?|contexts?|pages?|sources?|chunks?|content",
    author="authors?",
    according="according to|based on|as per|per",
    told=r"mentioned|described|discussed|stated|given|provided|listed|presented|outlined|explained"
    r"|covered|referenced",
    above="above|here",
    say=r"says?|mentions?|describes?|states?|discuss(?:es)?|suggests?|explains?|recommends?|claims?"
    r"|refers?|identif(?:y|ies)",
    the="the|your",
    this="this|these|that",
    in_the="in the|by the|within the|in your",
    in_="in|by|from|within|of",
    given="above|given|provided|following|preceding|previous|source|supplied",
)
PORTUGUESE = Phrases(
    text="textos?|trechos?|passagem|passagens|parágrafos?|excertos?",
    page="documentos?|documentação|artigos?|seção|seções|contextos?|páginas?|materia(?:l|is)"
    "|conteúdos?|fragmentos?",
    author="autor(?:es|as?)?",
    according="de acordo com|segundo|conforme|com base em|com base",
    told="(?:mencionad|descrit|citad|apresentad|discutid|fornecid|listad|abordad|explicad|referid)"
    "[oa]s?",
    above="acima|anteriormente|aqui",
    say="diz|mencionam?|descrevem?|afirmam?|citam?|apresentam?|explicam?|sugerem?|abordam?|falam?",
    the="[oa]s?|n[oa]s?|ao",
    this="n?est[ea]s?|n?ess[ea]s?|dest[ea]s?|dess[ea]s?",
    in_the="n[oa]s?|pel[oa]s?|d[oa]s?",
    in_="em|por|de",
    given="referid[oa]|apresentad[oa]|fornecid[oa]|dad[oa]|seguinte|próprio",
)
SPANISH = Phrases(
    text="textos?|pasajes?|párrafos?|extractos?",
    page="documentos?|documentación|artículos?|sección|secciones|contextos?|páginas?|material(?:es)?"
    "|contenidos?|fragmentos?",
    author="autor(?:es|as?)?",
    according="según|de acuerdo con|de acuerdo a|conforme a|con base en|basándose en",
    told="(?:mencionad|descrit|citad|presentad|proporcionad|listad|explicad|indicad)[oa]s?"
    "|(?:se )?(?:mencionan?|describen?|explican?|indican?)",
    above="arriba|anteriormente|aquí",
    say="dicen?|mencionan?|describen?|afirman?|citan?|presentan?|explican?|sugieren?|indican?",
    the="el|la|los|las",
    this="est[ea]|est[oa]s|es[ea]|dich[oa]s?",
    in_the="en el|en la|en los|en las|por el|del",
    in_="en|por|de",
    given="siguiente|anterior|dad[oa]|proporcionad[oa]|citad[oa]|presente",
)
GERMAN = Phrases(
    text="text(?:e|es|s)?|textabschnitt(?:s|es)?|textstelle|passage|absatz(?:es)?|auszug(?:s|es)?",
    page="dokument(?:s|es)?|dokumentation|artikels?|abschnitt(?:s|es)?|kontext(?:s|es)?|seite|quelle"
    "|inhalts?",
    author="autors?|autorin",
    according="laut|gemäß|nach|entsprechend",
    told="(?:erwähnt|beschrieben|genannt|aufgeführt|erklärt|angegeben|dargestellt|erläutert)(?:e[nr]?)?",
    above="oben|hier|vorstehend",
    say="sagt|sagen|erwähnt|beschreibt|nennt|erklärt|behauptet|erläutert",
    the="de[rmns]|die|das",
    this="diese[rmns]?",
    in_the="im|in der|in den|vom|aus dem|aus der",
    in_="in|aus|von",
    given="obigen|obiger|vorliegenden|folgenden|gegebenen|genannten",
)
FRENCH = Phrases(
    text="textes?|passages?|paragraphes?|extraits?",
    page="documents?|documentation|l?articles?|sections?|contextes?|pages?|contenus?",
    author="l?auteurs?|l?autrice",
    according="selon|daprès|conformément à|en fonction de",
    told="(?:mentionn|présent|expliqu|indiqu|abord|cit|list)ée?s?|décrite?s?|fournie?s?",
    above="ci dessus|plus haut|ici",
    say="dit|disent|mentionnent|mentionne|décrit|affirme|cite|présente|explique|suggère|indique",
    the="l[ea]s?",
    this="ce|cet|cette|ces",
    in_the="dans l[ea]s?|dans|par l[ea]|du|au",
    in_="dans|par|de",
    given="présent|présente|même|dit",
)
ITALIAN = Phrases(
    text="test[oi]|bran[oi]|passaggi?o|paragraf[oi]|estratt[oi]",
    page="document[oi]|documentazione|l?articol[oi]|sezion[ei]|contest[oi]|pagin[ae]|contenut[oi]",
    author="l?autor[ei]|l?autrice",
    according="secondo|in base al?|in base alla|stando al?|stando alla",
    told="(?:menzionat|descritt|citat|presentat|spiegat|indicat|fornit|elencat)[oaie]",
    above="sopra|qui",
    say="dice|dicono|menziona|descrive|afferma|cita|presenta|spiega|indica",
    the="il|lo|la|i|gli|le",
    this="quest[oaei]",
    in_the="nel|nello|nella|dal|dalla|del|della",
    in_="in|da|di",
    given="seguente|precedente|dato|presente",
)
DUTCH = Phrases(
    text="tekst(?:en)?|passages?|alineas?|fragment(?:en)?",
    page="document(?:en)?|documentatie|artikel(?:en)?|sectie|context|pagina|inhoud|paragraaf",
    author="auteurs?",
    according="volgens|op basis van|aldus",
    told="genoemde?|vermelde?|beschreven|uitgelegde?|aangegeven",
    above="hierboven|hier",
    say="zegt|noemt|vermeldt|beschrijft|stelt|legt",
    the="de|het",
    this="deze|dit|die",
    in_the="in de|in het|door de|uit de|uit het",
    in_="in|door|uit|van",
    given="bovenstaande|gegeven|volgende",
)
SPACED = (ENGLISH, PORTUGUESE, SPANISH, GERMAN, FRENCH, ITALIAN, DUTCH)

OTHERS = (
    # Chinese
    r"(?:根据|根據|依据|按照)(?:上述|以上|本|该|該|这段|這段|这篇|這篇|上面的|给定的)?(?:文本|文章|段落|文段|原文|文档|文件|上下文)",
    r"文中|上文|这段文字|這段文字|这段话|这篇文章|這篇文章|(?:文章|段落|文本)(?:中|里)?(?:提到|提及|所述|说)",
    # Japanese
    r"(?:この|その|上記の|次の)(?:文章|文書|テキスト|段落|記事|抜粋|文脈)",
    r"(?:文章|本文|テキスト|記事)(?:によると|によれば|の中で|で述べ|で言及|で説明|に書かれ)",
    # Korean
    r"(?:이|위|본|해당|주어진) (?:글|텍스트|문서|단락|구절|지문|문단)(?:에서|에|의|은|는)",
    r"(?:글|텍스트|본문|지문|문단|문서)에 (?:따르면|의하면)|본문에서",
    # Russian
    r"(?:согласно|в|из|по) (?:\w+ )?(?:тексту|тексте|текста|отрывку|отрывке|отрывка)",
    r"(?:согласно|в|из|по) (?:\w+ )?(?:фрагменту|фрагменте|фрагмента|абзацу|абзаце|абзаца)",
    # Thai
    r"(?:ตาม|ใน|จาก)(?:ข้อความ|บทความ|เนื้อหา|ย่อหน้า)(?:นี้|ข้างต้น|ดังกล่าว)?",
    # Arabic
    r"\b(?:وفقا|وفقًا|بحسب|حسب) (?:ل|لهذا )?(?:ال|لل)?(?:نص|مقال|فقرة|وثيقة)\b|\bفي (?:هذا )?النص\b",
    # Hindi
    r"(?:दिए गए|इस|उपरोक्त|उपर्युक्त) (?:पाठ|गद्यांश|अनुच्छेद|दस्तावेज़)|(?:पाठ|गद्यांश) के अनुसार",
)
"""Whole patterns, where words are not bounded by blanks or have endings of many kinds."""
