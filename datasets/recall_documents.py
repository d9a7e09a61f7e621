#!/usr/bin/env python3
"""Seeded synthetic documents in which facts must be recalled at a distance.

    recall_documents.py --seed 1 --documents 50 --tokens 1024 [--facts 16] [--questions 8]
                        [--tokenizer tokenizer.model] [--filler DIR] [--out FILE.jsonl]

A document is plain English-like text: facts ("Marta Quill lives in Amber Ferry."), filler, and questions that are
followed by their answers ("Where does Marta Quill live? Marta Quill lives in Amber Ferry."). A model that kept the fact
predicts the answer. Subjects and values are drawn from spaces of thousands of combinations, so an answer cannot be
guessed without the fact, and several facts of a document share first names, surnames and kinds of value, so it cannot be
guessed from half of the key either.

Two forms:
  training_segments    facts and questions interleaved all the way, many answers a document, any length
  evaluation_document  facts over the first part, the questions at the end, with known answer positions

The generator has its own random numbers (SplitMix64), so a seed means the same text on every Python. Lengths are counted
by a function that the caller gives: tokens of a sentencepiece vocabulary where one is at hand, an estimate otherwise.
Filler is either generated or lines of real text. Only the standard library is needed, sentencepiece only for --tokenizer.
"""

import argparse
import json
import os
import sys

# ---------------------------------------------------------------------------------------------------------------------
# Words
# ---------------------------------------------------------------------------------------------------------------------

FIRST_NAMES = """Adam Agnes Albert Alice Amos Andrew Anna Arthur Beatrice Benjamin Bernard Bertha Blanche Carl Caroline
Catherine Cecil Charles Clara Daniel David Dora Edgar Edith Edward Eleanor Elias Elizabeth Emily Emma Ernest Esther Eva
Felix Florence Frances Frank Frederick George Gerald Gilbert Grace Hannah Harold Harriet Harvey Helen Henry Herbert Hugh
Ida Irene Isaac Ivan Jacob James Jane Jerome John Jonathan Joseph Julia Karl Laura Lawrence Leonard Lewis Louisa Lucy
Luther Mabel Margaret Maria Marta Martin Matthew Maurice Michael Miriam Nathan Nicholas Nora Oliver Oscar Patrick Paul
Peter Philip Rachel Ralph Rebecca Richard Robert Roger Rose Ruth Samuel Sarah Simon Sophia Stephen Susan Sylvia Theodore
Thomas Ursula Victor Walter William""".split()

LAST_NAMES = """Abbott Archer Baker Barlow Barton Bell Bishop Black Bond Bowman Bridges Brook Brown Burton Butler Carpenter
Carter Castle Chambers Chandler Chase Church Clark Cole Cook Cooper Cotton Cross Curtis Dale Day Dean Drake Dyer Field
Fisher Fletcher Ford Forest Foster Fowler Fox Freeman Frost Gardner Gibson Glass Goodman Grant Gray Green Hale Hall Harper
Hart Hill Holland Holmes Hood Hope Hunter Hurst Ingram Johnson King Knight Lake Lamb Lane Law Lee Little Long Lord Marsh
Mason Mills Moon Moore Newton Noble North Page Palmer Parker Pearce Penny Perry Pierce Pool Pope Porter Potter Price
Prince Quill Reed Rice Rivers Robinson Rose Rowe Sharp Shepherd Short Silver Singer Small Smith Snow Spencer Stone Strong
Swift Taylor Thorn Turner Vale Vincent Walker Ward Waters Webb West White Wise Wolf Wood Young""".split()

PLACE_HEADS = """Amber Ash Bald Bitter Black Blue Bold Brass Bright Broad Broken Brown Clear Cold Copper Crooked Dark Dead
Deep Dry East Elder Elm Fair False Far Flat Fox Gold Grand Gray Great Green Half Hard High Hollow Holy Iron King Last Lion
Little Long Lost Low Maple Mid New North Oak Old Open Pale Pine Queen Quiet Raven Red Rich Rose Rough Round Salt Sand
Sharp Short Silver Single Small Smooth South Stone Strange Summer Sweet Tall Three Twin Upper Warm West White Wide Wild
Winter Wolf""".split()

PLACE_TAILS = """Abbey Bank Bar Barn Bay Beach Bend Bottom Bridge Brook Camp Castle Chapel Church City Common Corner Court
Creek Cross Dam Dale Falls Farm Ferry Field Ford Forest Fort Gap Gate Glen Green Grove Hall Harbor Heath Hill Home House
Island Junction Lake Landing Lane Lodge Market Marsh Meadow Mill Moor Mount Park Pass Point Pond Pool Port Ridge River
Rock Shore Spring Station Tower Town Valley View Village Walk Wall Well Wood""".split()

CODE_WORDS = """anchor apple arrow barrel basket beacon bell bird bottle bow box branch bread brick bridge bucket butter
candle castle chain chair circle cloud coal coat copper corn cotton cradle crown crystal desk door dragon drum eagle egg
engine feather fence finger fire fish flag flower flute forest fox garden gate glass glove gold grain grass hammer hand harp
hat hawk heart hill honey horn horse island ivory jewel kettle key knife ladder lake lamp leaf lemon letter lion map marble
mask milk mirror moon mountain mouse needle nest oak oil orange paper pearl pen pepper pipe plate pocket pond powder queen
rain ribbon rice ring river road rock root rope rose salt sand scale sea seed shadow shell shield ship shoe silk silver smoke
snow spear spoon star steel stone storm string sugar sword table tail tiger tooth tower tree wagon wall water wave wheel
wind window wine wing wolf wood wool""".split()

MATERIALS = """brass bread carpet cattle cheese clay cloth coal coffee copper corn cotton fish flower fruit fur glass glove
gold grain hat horse iron ivory leather letter linen marble meat milk oil paper pearl pepper powder rice rope rug salt seed
sheep shoe silk silver soap spice steel stone straw sugar tea timber tobacco wax wheat wine wood wool""".split()

TRADES = """agent artist broker buyer carrier collector cutter dealer doctor driver engineer expert farmer inspector keeper
maker master merchant painter printer seller smith spinner student teacher thief trader washer weaver worker writer""".split()

THINGS = """axe bag ball basket bed bell blanket boat book bottle bowl box brush candle chain chair chest clock coat cup desk
dish doll drum flag flute glass globe hammer harp hat horn jar key knife ladder lamp lock map mask medal mirror needle
painting pen picture pipe plate ring robe rope saddle scale seal shield shoe spoon statue sword table trumpet vase violin
watch wheel whistle""".split()

QUALITIES = """ancient bent black blue brass broken brown carved cheap clean copper cracked crooked curved dark dirty dull
empty faded foreign golden gray green heavy hollow huge iron ivory large leather light little long marble narrow new old
painted pale pink plain polished precious purple rare red round rusty sacred sharp short shining silver small smooth square
steel stolen straight striped tall thick thin tiny torn twisted white wooden yellow""".split()

BEASTS = """Bear Dolphin Dove Dragon Eagle Falcon Fox Griffin Gull Hawk Heron Horse Hound Lark Lion Otter Owl Pelican Raven
Robin Rose Salmon Seal Serpent Shark Sparrow Star Swallow Swan Tiger Unicorn Whale Wolf""".split()

# Each relation: the kind of its subject, the kind of its value, ways to state it, ways to ask for it. Every text ends in
# the value and a full stop, so that an answer is always the last thing before one.
RELATIONS = {
    "home": ("person", "place",
             ["{s} lives in {v}", "The home of {s} is in {v}", "For many years {s} has lived in {v}"],
             ["Where does {s} live? {s} lives in {v}", "Where is the home of {s}? The home of {s} is in {v}"]),
    "birth": ("person", "place",
              ["{s} was born in {v}", "The birthplace of {s} is {v}"],
              ["Where was {s} born? {s} was born in {v}", "What is the birthplace of {s}? The birthplace of {s} is {v}"]),
    "code": ("person", "code",
             ["The secret code of {s} is {v}", "{s} was given the secret code {v}"],
             ["What is the secret code of {s}? The secret code of {s} is {v}",
              "Which secret code was given to {s}? {s} was given the secret code {v}"]),
    "trade": ("person", "trade",
              ["{s} is known as the {v}", "The profession of {s} is {v}"],
              ["How is {s} known? {s} is known as the {v}", "What is the profession of {s}? The profession of {s} is {v}"]),
    "kept": ("object", "place",
             ["The {s} is kept at {v}", "They carried the {s} to {v}"],
             ["Where is the {s} now? The {s} is kept at {v}", "Where did they carry the {s}? They carried the {s} to {v}"]),
    "owner": ("object", "person",
              ["The {s} belongs to {v}", "The owner of the {s} is {v}"],
              ["To whom does the {s} belong? The {s} belongs to {v}",
               "Who is the owner of the {s}? The owner of the {s} is {v}"]),
    "ship": ("ship", "place",
             ["The {s} sailed from {v}", "The home port of the {s} is {v}"],
             ["Where did the {s} sail from? The {s} sailed from {v}",
              "What is the home port of the {s}? The home port of the {s} is {v}"]),
    "mayor": ("place", "person",
              ["The mayor of {s} is {v}", "The people of {s} chose {v}"],
              ["Who is the mayor of {s}? The mayor of {s} is {v}", "Whom did they choose? The people of {s} chose {v}"]),
    "word": ("place", "code",
             ["The watchword at {s} is {v}", "At {s} the guards ask for {v}"],
             ["What is the watchword at {s}? The watchword at {s} is {v}",
              "What do the guards ask for? At {s} the guards ask for {v}"]),
}
RELATION_NAMES = sorted(RELATIONS)


class Random:
    """SplitMix64: the same numbers everywhere, whatever the standard library does."""

    def __init__(self, seed):
        self.state = seed & 0xFFFFFFFFFFFFFFFF

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return z ^ (z >> 31)

    def below(self, n):
        return (self.next() * n) >> 64

    def unit(self):
        return (self.next() >> 11) / (1 << 53)

    def choice(self, items):
        return items[self.below(len(items))]

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]


def draw(rng, kind):
    if kind == "person":
        return rng.choice(FIRST_NAMES) + " " + rng.choice(LAST_NAMES)
    if kind == "place":
        return rng.choice(PLACE_HEADS) + " " + rng.choice(PLACE_TAILS)
    if kind == "code":
        return rng.choice(CODE_WORDS) + " " + rng.choice(CODE_WORDS) + " " + str(10 + rng.below(90))
    if kind == "trade":
        return rng.choice(MATERIALS) + " " + rng.choice(TRADES)
    if kind == "object":
        return rng.choice(QUALITIES) + " " + rng.choice(THINGS)
    return rng.choice(QUALITIES).capitalize() + " " + rng.choice(BEASTS)  # a ship


# How many values each kind has: what a guess without the document is worth.
VALUE_COUNTS = {
    "person": len(FIRST_NAMES) * len(LAST_NAMES),
    "place": len(PLACE_HEADS) * len(PLACE_TAILS),
    "code": len(CODE_WORDS) ** 2 * 90,
    "trade": len(MATERIALS) * len(TRADES),
}


class Fact:
    __slots__ = ("relation", "subject", "value")

    def __init__(self, relation, subject, value):
        self.relation, self.subject, self.value = relation, subject, value


def new_fact(rng, known, relations=RELATION_NAMES):
    """A fact whose (relation, subject) is new; now and then another relation of a subject that is already known."""
    while True:
        relation = rng.choice(relations)
        subject_kind, value_kind = RELATIONS[relation][:2]
        same_kind = [f.subject for f in known.values() if RELATIONS[f.relation][0] == subject_kind]
        subject = rng.choice(same_kind) if same_kind and rng.unit() < 0.15 else draw(rng, subject_kind)
        if (relation, subject) not in known:
            fact = Fact(relation, subject, draw(rng, value_kind))
            known[relation, subject] = fact
            return fact


# A document is a list of (kind, text); texts are joined by single spaces, except that a "stop" closes the one before it.
# Kinds: filler, statement (up to its value), value, question (up to its value), answer (a value that was asked for), stop.

def statement_segments(rng, fact):
    text = rng.choice(RELATIONS[fact.relation][2]).replace("{s}", fact.subject)
    return [("statement", text.replace(" {v}", "")), ("value", fact.value), ("stop", ".")]


def question_segments(rng, fact):
    text = rng.choice(RELATIONS[fact.relation][3]).replace("{s}", fact.subject)
    return [("question", text.replace(" {v}", "")), ("answer", fact.value), ("stop", ".")]


SUBJECTS = """an old man|the teacher|a traveller|the farmer|his sister|her brother|the doctor|a young girl|the captain
the neighbours|a stranger|the children|the judge|a soldier|the cook|nobody|everyone|the priest""".replace("\n", "|").split("|")
VERBS = """walked along|looked at|talked about|waited for|remembered|painted|crossed|avoided|spoke of|admired|left
returned to|feared|watched|described|forgot""".replace("\n", "|").split("|")
OBJECTS = """the river|the road to the sea|the market|the long winter|the broken bridge|the harvest|the mountains
the new law|the storm|the empty house|the war|the price of bread|the evening bell|the garden|the harbour
the letter""".replace("\n", "|").split("|")
ENDINGS = """in the morning|before dawn|that year|as usual|without a word|in silence|after the rain|for an hour|once more
at night|with great care|in the cold wind|all summer|on that day""".replace("\n", "|").split("|")


def generated_sentence(rng):
    sentence = f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(OBJECTS)} {rng.choice(ENDINGS)}"
    return sentence[0].upper() + sentence[1:] + "."


def filler_segment(rng, lines):
    """A line of real text mostly, where there is any, else a generated sentence."""
    if lines and rng.unit() < 0.8:
        return "filler", rng.choice(lines)
    return "filler", generated_sentence(rng)


def size_of(segments, count):
    """Tokens of some segments; a stop is one, without the space that `count` would see before it."""
    return sum(1 if kind == "stop" else count(text) for kind, text in segments)


def training_segments(rng, length, count, lines=None, most_facts=32, filler=0.4):
    """Segments of at least `length` by `count`: statements, questions about anything stated before, filler between.

    Questions are frequent and ask about old and new facts alike, so that every document carries many answers at distances
    from one sentence to its whole length.
    """
    known, facts, segments, total = {}, [], [], 0
    goal = 1 + rng.below(most_facts)
    while total < length:
        draw_kind = rng.unit()
        if not facts or (len(facts) < goal and draw_kind < 0.3):
            fact = new_fact(rng, known)
            facts.append(fact)
            added = statement_segments(rng, fact)
        elif draw_kind < 1.0 - filler:
            added = question_segments(rng, rng.choice(facts))
        else:
            added = [filler_segment(rng, lines)]
        segments += added
        total += size_of(added, count)
    return segments


def evaluation_document(rng, length, count, lines=None, facts=16, questions=8, relations=RELATION_NAMES):
    """Segments of at most `length`: `facts` statements spread evenly in filler, then `questions` at the end.

    The document is filled up to `length` with filler before the questions, so the distances grow with the length.
    """
    known = {}
    chosen = [new_fact(rng, known, relations) for _ in range(facts)]
    asked = list(chosen)
    rng.shuffle(asked)
    tail = [segment for fact in asked[:questions] for segment in question_segments(rng, fact)]
    statements = [statement_segments(rng, fact) for fact in chosen]
    room = length - size_of(tail, count) - sum(size_of(statement, count) for statement in statements)
    if room < 0:
        raise ValueError(f"{facts} facts and {questions} questions do not fit into {length} tokens")
    # Filler is gathered first and dealt out over the gaps, so that the length is met closely whatever the lines' lengths.
    fillers, misses = [], 0
    while misses < 40:  # generated sentences are short: they take the last of the room
        segment = filler_segment(rng, lines if misses < 20 else None)
        size = count(segment[1])
        if size <= room:
            fillers.append(segment)
            room -= size
            misses = 0
        else:
            misses += 1
    gaps = [[] for _ in range(facts + 1)]
    for segment in fillers:
        gaps[rng.below(facts + 1)].append(segment)
    segments = list(gaps[0])
    for statement, gap in zip(statements, gaps[1:]):
        segments += statement + gap
    return segments + tail


def join(segments):
    """The text of a document and, for every segment, its [start, end) in it."""
    text, spans = "", []
    for kind, part in segments:
        if text and kind != "stop":
            text += " "
        spans.append((len(text), len(text) + len(part)))
        text += part
    return text, spans


def encode(segments, encode_text, first=()):
    """Token ids and, for every segment, its [start, end) in them.

    `encode_text` must put a word's leading space into the word (sentencepiece with a dummy prefix does), then ids of the
    parts are the ids of the joined text. The full stop is taken from the ids of "a." because it has no space before it.
    """
    stop = encode_text("a.")[len(encode_text("a")):]
    ids, spans = list(first), []
    for kind, part in segments:
        start = len(ids)
        ids += stop if kind == "stop" else encode_text(part)
        spans.append((start, len(ids)))
    return ids, spans


def answers(segments, spans):
    """[(value span, span of the value where it was stated)] of every question."""
    stated, found = {}, []
    for (kind, text), span in zip(segments, spans):
        if kind == "value":
            stated[text] = span
        elif kind == "answer":
            found.append((span, stated[text]))
    return found


def estimate(text):
    """Tokens of a 4k vocabulary, roughly, where no tokenizer is at hand."""
    return 1 + len(text) * 10 // 34


def read_lines(folder, longest=300, shortest=40, most=20000):
    """Lines of real text that are whole sentences, in the order of the files."""
    lines = []
    for base, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            with open(os.path.join(base, name), encoding="utf-8") as stream:
                for line in stream.read().split("\n"):
                    if shortest <= len(line) <= longest and line[-1] in ".!?" and "  " not in line:
                        lines.append(line)
    step = max(1, len(lines) // most)
    return lines[::step]


def evaluation_records(seed, documents, tokens, facts, questions, encode_text=None, lines=None, first=()):
    """The evaluation set as JSON-able records."""
    count = (lambda text: len(encode_text(text))) if encode_text else estimate
    for index in range(documents):
        rng = Random(seed * 1000003 + index)
        segments = evaluation_document(rng, tokens - len(first), count, lines, facts, questions)
        text, spans = join(segments)
        record = {"id": f"recall-{seed}-{tokens}-{index}", "text": text,
                  "answers": [{"chars": list(a), "stated_chars": list(s), "value": text[a[0]:a[1]]}
                              for a, s in answers(segments, spans)]}
        if encode_text:
            ids, spans = encode(segments, encode_text, first)
            record["ids"] = ids
            for answer, (a, s) in zip(record["answers"], answers(segments, spans)):
                answer["tokens"], answer["distance"] = list(a), a[0] - s[0]
        yield record


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--documents", type=int, default=50)
    parser.add_argument("--tokens", type=int, default=1024, help="length of a document")
    parser.add_argument("--facts", type=int, default=16)
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--tokenizer", metavar="FILE", help="a sentencepiece model: exact lengths and token positions")
    parser.add_argument("--filler", metavar="DIR", help="text files whose lines are the filler (default: generated)")
    parser.add_argument("--out", default="-", metavar="FILE")
    options = parser.parse_args(arguments)
    encode_text, first = None, ()
    try:
        if options.tokenizer:
            import sentencepiece
            processor = sentencepiece.SentencePieceProcessor(model_file=options.tokenizer)
            encode_text = processor.encode
            first = (processor.bos_id(),) if processor.bos_id() >= 0 else ()
        lines = read_lines(options.filler) if options.filler else None
        if options.questions > options.facts:
            raise ValueError(f"{options.questions} questions need as many facts, there are {options.facts}")
        records = list(evaluation_records(options.seed, options.documents, options.tokens, options.facts,
                                          options.questions, encode_text, lines, first))
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        if options.out == "-":
            sys.stdout.write(text)
        else:
            with open(options.out + ".new", "w", encoding="utf-8") as stream:
                stream.write(text)
            os.rename(options.out + ".new", options.out)
    except (ImportError, OSError, ValueError) as error:
        print(f"recall_documents.py: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
