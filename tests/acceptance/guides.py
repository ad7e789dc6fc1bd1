"""A small made-up corpus: a guide for each of some things, a chunk for each of some topics."""

import numpy as np

from tests.acceptance.command import Project, Record

THINGS = (
    "accordion", "bicycle", "canoe", "drill", "espresso machine", "freezer", "greenhouse",
    "harp", "ice rink", "jukebox", "kettle", "lighthouse", "microscope", "nutcracker", "oven",
    "piano", "quilt", "radiator", "sailing boat", "telescope", "umbrella", "violin", "windmill",
    "xylophone",
)  # fmt: skip

TOPICS = (
    ("Wipe the {} with warm water and a soft cloth once a week; no soap, no sand.",
     "How do I clean the {}?"),
    ("In winter the {} is stored in a dry room, covered, away from frost and mice.",
     "Where should the {} be stored in winter?"),
    ("A broken {} is repaired by its maker within ten days; send it with the receipt.",
     "Who can repair a broken {}?"),
    ("Children may use the {} from the age of eight, with an adult beside them.",
     "From what age may children use the {}?"),
    ("The price of the {} holds until March and includes taxes but not delivery.",
     "What does the price of the {} include?"),
)  # fmt: skip

DIMENSIONS = 256


def chunks() -> list[Record]:
    """Return 120 chunks, in 24 documents."""
    return [
        {"document_id": thing, "chunk_index": index, "content": text.format(thing),
         "language": "en"}
        for thing in THINGS for index, (text, _) in enumerate(TOPICS)
    ]  # fmt: skip


def questions() -> list[Record]:
    """Return 120 questions, each with the one chunk that answers it."""
    return [
        {"question": question.format(thing), "expected": {f"{thing}:{index}": 1}}
        for thing in THINGS for index, (_, question) in enumerate(TOPICS)
    ]  # fmt: skip


def spoiled_chunks() -> list[Record]:
    """Return every third document's chunks with vectors that have nothing to do with them."""
    spoiled = [chunk for chunk in chunks() if chunk["document_id"] in THINGS[::3]]
    vectors = np.random.default_rng(1).normal(size=(len(spoiled), DIMENSIONS))
    return [
        chunk | {"embedding": vector.tolist()}
        for chunk, vector in zip(spoiled, vectors, strict=True)
    ]


def load(project: Project) -> None:
    """Load the corpus and import the golden set, as a user does."""
    project.run("corpus", "load", project.write("chunks.jsonl", chunks()))
    project.run("golden", "import", project.write("golden.jsonl", questions()))
