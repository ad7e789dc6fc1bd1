import json

import pytest

from pipeline.generation.references import is_generic, reference_to_text
from tests.shared import collection, needs_shared

OF_A_TEXT = """
According to the text, when was the router made?
What does the passage say about refunds?
What is described in this document?
Based on the provided context, what is the limit?
What are the steps mentioned above?
How does the author justify the rule?
Segundo o texto, quem fundou a universidade?
De acordo com o trecho apresentado, qual é o prazo?
O que o texto diz sobre o reitor?
Quais são os passos mencionados no documento?
Neste artigo, qual é o prazo?
Según el texto, ¿quién fundó la universidad?
¿Qué dice el documento sobre los plazos?
¿Qué se menciona en el pasaje?
Laut dem Text, wann wurde die Universität gegründet?
Was wird im Dokument über Fristen beschrieben?
Welche Schritte werden in diesem Abschnitt genannt?
Selon le texte, qui a fondé l'université ?
D'après le passage, quel est le délai ?
Secondo il testo, chi ha fondato l'università?
Volgens de tekst, wie heeft de universiteit gesticht?
根据上述文本 大学是什么时候成立的?
文中提到的步骤有哪些?
この文章によると、大学はいつ設立されましたか?
본문에 따르면 대학은 언제 설립되었습니까?
Согласно тексту, когда основан университет?
ตามข้อความข้างต้น มหาวิทยาลัยก่อตั้งเมื่อใด
وفقا للنص، متى تأسست الجامعة؟
""".strip().splitlines()

ABOUT_NOTHING = """
What are the main points?
How does it work?
What is this?
What are the benefits?
Can you explain more?
O que é isso?
Quais são as principais vantagens?
Como funciona?
¿Cuáles son los puntos principales?
¿Qué es esto?
Was ist das?
Wie funktioniert das?
Was sind die Vorteile?
Quels sont les avantages ?
Comment ça marche ?
Quali sono i vantaggi?
Wat zijn de voordelen?
这是什么?
主要内容是什么?
これは何ですか?
นี่คืออะไร
""".strip().splitlines()

OF_A_CUSTOMER = """
How do I sign the document?
What is the context window of Claude?
How do I extract text from a PDF?
Which documents do I need for a visa?
Where can I find the documentation?
How do I add a section to a page?
Can I change the text color?
Who is the author of Emma?
What content is provided by the plan?
How long is an article of 500 words?
What is NAT?
O que é o MIT?
O que é universidade?
Qual documento devo apresentar?
¿Cómo firmo el documento?
Wie unterschreibe ich das Dokument?
Wie ändere ich den Text der E-Mail?
如何重置路由器?
ルーターをリセットするにはどうすればいいですか?
""".strip().splitlines()


@pytest.mark.parametrize("question", OF_A_TEXT)
def test_a_question_that_speaks_of_its_text_is_found(question: str) -> None:
    assert reference_to_text(question) is not None


@pytest.mark.parametrize("question", ABOUT_NOTHING)
def test_a_question_that_could_be_about_anything_is_generic(question: str) -> None:
    assert is_generic(question)


@pytest.mark.parametrize("question", OF_A_CUSTOMER)
def test_a_customers_question_is_neither(question: str) -> None:
    assert reference_to_text(question) is None
    assert not is_generic(question)


@needs_shared
@pytest.mark.parametrize("name", ["faquad-pt", "mtrag-un-en", "eshop-en", "cranfield-en"])
def test_no_question_of_a_person_is_said_to_speak_of_a_text(name: str) -> None:
    with collection(name).golden.open() as lines:
        questions = [json.loads(line)["question"] for line in lines]

    assert [each for each in questions if reference_to_text(each)] == []
    assert sum(map(is_generic, questions)) <= 0.01 * len(questions)
