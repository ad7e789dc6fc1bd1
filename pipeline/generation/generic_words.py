"""Words that fit a question about anything, by language: a search needs others.

Function words, and the nouns and verbs of "What are the main points?". A language that is not here
has its stop words in full text search, see `pipeline.generation.filters`.
"""

_WORDS = {
    "en": """
    what which who whom whose when where why how is are was were be been do does did can could
    may might must should would will shall has have had the a an this that these those it its
    they them their there here of in on for to from by with about as at and or but not any some
    all more most other i you he she we me my your our us
    thing things stuff point points idea ideas topic topics subject detail details information
    info fact facts example examples step steps way ways part parts kind kinds type types purpose
    reason reasons benefit benefits advantage advantages disadvantage disadvantages use uses used
    feature features main key important importance significance best good work works working mean
    means meaning happen happens tell explain describe discuss discussed summarize summary know
    list name give provide provided say said get go need make question answer please
    """,
    "pt": """
    o a os as um uma uns umas de do da dos das em no na nos nas por pelo pela para com sem sobre
    ao aos à às e ou que qual quais quem quando onde como porque quanto quantos quantas é são foi
    foram ser está estão isso isto esse essa este esta ele ela eles elas se não mais seu sua seus
    suas me eu você pode podem deve devem tem têm há
    coisa coisas ponto pontos ideia ideias tema temas assunto assuntos detalhe detalhes
    informação informações exemplo exemplos passo passos parte partes tipo tipos forma formas
    objetivo objetivos motivo motivos razão benefício benefícios vantagem vantagens desvantagens
    uso usos principal principais importante importância função funciona significa acontece
    explique descreva resuma resumo diga fale pergunta resposta feito dito
    """,
    "es": """
    el la los las un una unos unas de del a al en por para con sin sobre y o que qué cuál cuáles
    quién quiénes cuándo dónde cómo cuánto cuántos es son fue fueron ser está están eso esto ese
    esa este esta él ella ellos ellas lo le les se no más su sus me usted yo tú puede pueden debe
    deben tiene tienen hay
    cosa cosas punto puntos idea ideas tema temas asunto detalle detalles información ejemplo
    ejemplos paso pasos parte partes tipo tipos forma propósito objetivo objetivos motivo razón
    beneficio beneficios ventaja ventajas desventajas uso usos principal principales importante
    importancia función funciona significa sucede explique describa resuma resumen pregunta
    respuesta
    """,
    "de": """
    was wer wen wem wann wo warum wieso wie welche welcher welches welchen ist sind war waren
    sein wird werden wurde wurden hat haben kann können muss müssen soll sollte der die das den
    dem des ein eine einen einem einer dies diese dieser dieses es er sie ihr ihre von im in an
    am auf für zu zum zur aus bei mit über als und oder nicht man ich wir mir mich davon darüber
    dazu hier
    sache sachen punkt punkte idee ideen thema themen detail details information informationen
    beispiel beispiele schritt schritte teil teile art arten zweck grund gründe vorteil vorteile
    nachteil nachteile nutzen verwendung wichtig wichtigsten wichtigste bedeutung bedeutet
    funktioniert passiert erkläre erklären beschreibe zusammenfassung frage antwort gibt geht
    """,
    "fr": """
    le la les un une des du de au aux en par pour avec sans sur dans et ou où que qui quoi quel
    quelle quels quelles quand comment pourquoi combien est sont était être a ont peut peuvent
    doit ce cet cette ces cela ça il elle ils elles on se ne pas plus son sa ses leur me je vous
    nous y cest quest
    chose choses point points idée idées sujet sujets détail détails information informations
    exemple exemples étape étapes partie parties type types manière but objectif raison raisons
    avantage avantages inconvénients utilisation principal principale principaux principales
    important importance rôle fonctionne marche signifie passe expliquez décrivez résumé question
    réponse
    """,
    "it": """
    il lo la i gli le un uno una di del della dei delle a al in nel nella con per su da e o che
    chi cosa quale quali quando dove come perché quanto è sono era essere può possono deve questo
    questa ciò esso essa si non più
    punto punti idea idee tema argomento dettagli informazioni esempio esempi passo passi parte
    tipo scopo motivo vantaggio vantaggi svantaggi principale principali importante importanza
    funziona significa succede riassunto domanda risposta
    """,
    "nl": """
    wat wie wanneer waar waarom hoe welke welk is zijn was kan kunnen moet de het een dit dat
    deze die van in op voor met door naar en of niet meer je ik we er
    ding dingen punt punten idee onderwerp informatie voorbeeld voorbeelden stap stappen deel
    type soort doel reden voordeel voordelen nadelen belangrijk belangrijkste werkt betekent
    gebeurt samenvatting vraag antwoord
    """,
}
_PHRASES_WITHOUT_BLANKS = (
    # Chinese
    "什么 什麼 怎么样 怎么 怎麼 如何 为什么 為什麼 哪些 哪个 哪 谁 誰 这个 这 這 那个 那 它们 它 "
    "的 是 了 吗 嗎 呢 有 和 在 能 可以 主要 内容 內容 信息 要点 重点 例子 步骤 作用 意思 请 "
    "解释 说明 介绍 总结 "
    # Japanese; what is in hiragana alone never counts
    "何 主な 情報 例 手順 意味 説明 要約 教え "
    # Thai
    "คืออะไร อะไร อย่างไร ทำไม นี่ นี้ นั้น มัน คือ เป็น มี บ้าง ทำงาน"
)

GENERIC = tuple(frozenset(words.split()) for words in _WORDS.values())
"""A set a language, apart: the German `mit` must not make "O que é o MIT?" say nothing."""

GENERIC_UNSPACED = _PHRASES_WITHOUT_BLANKS.split()
"""Where blanks bound no words: longer ones before those that they begin with."""
