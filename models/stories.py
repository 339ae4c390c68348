"""Writes short, simple stories: the text that the embedded model is trained on.

A story has a hero, often a friend and a grown-up, and follows one of the plots
below. A plot is a list of sentence templates. In a template

    [a|b|c]   is one of the choices (an empty choice is allowed, groups nest),
    {name}    is a word of the story's cast, the same throughout the story.

So names, pronouns, places and things stay consistent within a story while the
sentences vary. Every text is a function of its seed alone.

    python stories.py --seed 1 --count 3     # prints three stories
"""

import argparse
import random
import re
from collections.abc import Iterator

GIRLS = "Mia Lily Anna Rosa Nina Ella Ruby Clara Emma Lucy".split()
BOYS = "Tom Ben Leo Max Sam Finn Oscar Jack Noah Peter".split()
PET_NAMES = "Pip Momo Dot Hazel Toto Pepper Biscuit Clover Bramble Poppy".split()
ANIMALS = "rabbit fox bear mouse duck cat dog hedgehog squirrel frog goat pony".split()
GROWN_UPS = ("mother", "father", "grandmother", "grandfather", "aunt", "uncle")
WOMEN = {"mother", "grandmother", "aunt"}

COLOURS = "red blue green yellow white brown orange purple black pink".split()
TOYS = "ball kite boat drum hat doll teddy train book scarf bell bucket".split()
FOODS = ["apple", "carrot", "piece of cake", "pie", "sandwich", "cookie", "pear", "bun",
         "piece of bread", "bowl of soup"]
PLACES = ["the park", "the forest", "the garden", "the lake", "the river", "the hill",
          "the farm", "the beach", "the meadow", "the old bridge"]
HOMES = ["a small house by the sea", "a quiet village", "a little house near the forest",
         "a big city", "an old farmhouse on a hill", "a cosy house at the end of the road",
         "a small town by the river", "a house with a blue door"]
HIDING = ["under the bed", "behind the sofa", "in the garden", "under a big leaf",
          "behind the door", "in the long grass", "on top of a wall", "next to the old tree",
          "in the kitchen", "under the table"]
WEATHER = ["The sun was shining and the sky was blue", "It was a warm and bright day",
           "It was a windy day and the clouds moved fast", "It was a cold morning",
           "The air was fresh after the rain", "It was a lovely spring day",
           "Soft white clouds were in the sky", "The birds were singing in the trees"]

OPENINGS = [
    "Once upon a time, there was a [little|young|small|kind|clever|cheerful] {kind} named {n}. "
    "[{He} lived in {home}.|{n} lived with {his} {grown} in {home}.|]",
    "Once upon a time, in {home}, there lived a [little|kind|curious|brave] {kind} called {n}.",
    "There was once a [little|shy|happy|curious|small] {kind} [called|named] {n}. "
    "[{He} lived in {home}.|Everyone liked {n} because {he} was [kind|funny|brave|gentle].|]",
    "{n} was a [little|happy|curious|brave|gentle] {kind} who lived in {home}.",
    "In {home} lived a [little|young|clever|kind] {kind} named {n}.",
    "A [little|small|young] {kind} named {n} lived in {home}.",
]
LIKES = [
    "{n} [loved|liked] to [play|sing|run|dance|draw|read] [every day|all day long|in the morning].",
    "More than anything, {n} loved [{his} {colour} {toy}|to walk to {place}|to listen to stories].",
    "{He} had a [good|best] friend, a {fkind} named {f}.",
    "",
    "",
]
ENDINGS = [
    "{n} was very happy.",
    "{n} smiled all the way home.",
    "It was the best day of all.",
    "That night, {n} slept very well.",
    "And they all lived happily ever after.",
    "{n} could not wait for the next day.",
    "When the stars came out, {n} was fast asleep.",
    "{n} told {his} {grown} all about it, and {grown_he} [smiled|laughed|gave {him} a big hug].",
]

PLOTS = {
    "lost toy": (
        "One [day|morning|afternoon], {n} could not find {his} {colour} {toy}.",
        "[{He} looked {spot1}, but it was not there.|First {he} looked {spot1}.] "
        "[Then|After that,] {he} looked {spot2}, but [it was not there|there was only a [sock|shoe|spoon|beetle]].",
        "{n} [began to cry|sat down and felt very sad|did not know what to do].",
        "[{f} the {fkind} came by and asked, \"What is wrong, {n}?\"|Then {f} the {fkind} came along. "
        "\"Why are you sad?\" asked {f}.]",
        "\"I [have lost|cannot find] my {toy},\" said {n}. \"[Do not worry|Do not cry], "
        "[I will help you|we will find it together],\" said {f}.",
        "They looked [here and there|up and down|everywhere]. [At last|Then|Suddenly,] {f} saw something "
        "{colour} {spot3}. It was the {toy}!",
        "\"[Thank you|Thank you so much], {f}!\" said {n}. [{He} gave {f} a big hug.|They played together "
        "until it was dark.|{He} held the {toy} close.]",
    ),
    "hungry friend": (
        "One [cold|sunny|rainy|quiet] [day|morning], {n} went for a walk to {place}.",
        "There {he} met a [small|thin|little] {fkind} who was [cold and hungry|all alone|very sad].",
        "\"[Hello|Good morning], my name is {n}. What is your name?\" {he} asked. "
        "\"My name is {f},\" said the {fkind}. \"[I am so hungry|I have nothing to eat|I have no friends].\"",
        "{n} [opened {his} bag|looked in {his} bag|thought for a moment] and gave {f} a [big|fresh|nice|warm] {food}.",
        "{f} ate [it all up|every bit of it|it slowly] and [smiled|felt much better|was not sad any more].",
        "\"[Thank you|You are very kind], {n},\" said {f}. \"[Do you want to play with me|Shall we play]?\"",
        "[So they|The two of them] [ran and jumped|played hide and seek|danced and sang] "
        "[in the grass|under the trees|until the sun went down].",
        "From that day on, {n} and {f} were [the best of friends|good friends].",
    ),
    "bad weather": (
        "One [morning|day], {n} wanted to [play outside|go to {place}|fly {his} kite], but "
        "[it was raining|the rain fell and fell|there was a big storm].",
        "{He} looked out of the window and [felt sad.|was not happy.|said, \"Go away, rain!\"]",
        "\"[We can have fun at home|There is much to do inside],\" said {his} {grown}.",
        "So they [made a boat out of paper|built a house out of pillows|painted a picture of {place}|"
        "read a long story about a [brave|kind] {fkind}].",
        "[Then|After that,] they [ate warm soup|drank hot milk|ate a {food}] [by the fire|at the table].",
        "[After a while|In the afternoon|Soon], the rain stopped and the sun came out.",
        "[\"Look, a rainbow!\" said {n}.|{n} ran outside and saw a big rainbow in the sky.]",
        "{He} put on {his} {colour} boots and jumped in [all the puddles|every puddle]. "
        "[Splash, splash, splash!|The water went up high.|]",
    ),
    "baking": (
        "One [day|morning|Sunday], {n} and {his} {grown} wanted to [make|bake] a {bake} for {f} the {fkind}.",
        "They took [flour, eggs and milk|butter, sugar and eggs|apples, sugar and flour] and "
        "[put it all in a big bowl|mixed it with a big spoon].",
        "[Oh no! |]{n} [dropped an egg|got flour on {his} nose|spilled the milk], and they both "
        "[laughed|laughed and laughed].",
        "[\"It is all right,\" said {his} {grown}. \"We can clean it up.\"|"
        "\"You are a good cook,\" said {his} {grown}.]",
        "Then the {bake} went into the hot oven. [Soon|After a while,] the whole house smelled "
        "[sweet|good|wonderful].",
        "When it was ready, {n} [carried|took] it to {f}. \"This is for you,\" {he} said.",
        "{f} [tasted a piece|took a big bite] and said, \"[This is so good!|This is the best I have ever had!]\"",
        "They sat [in the sun|under a tree|at the table] and ate [until it was all gone|together].",
    ),
    "seed": (
        "One [spring day|day|morning], {his} {grown} gave {n} a [tiny|small|little] seed.",
        "\"[Put it in the ground|Plant it in the garden], give it water, and wait,\" said {his} {grown}.",
        "{n} made a [small|little] hole [in the garden|near the fence|by the wall] and put the seed in it.",
        "Every [day|morning], {he} gave it water. [But nothing happened.|{He} waited and waited.]",
        "\"[Will it ever grow?|Why does it not grow?]\" {n} asked. "
        "\"[You must wait a little longer|Good things take time],\" said {his} {grown}.",
        "Then one [morning|day], there was a [tiny|small] green leaf! {n} [jumped with joy|could not believe it|"
        "ran to tell {f} the {fkind}].",
        "The plant grew [taller and taller|day after day], and in summer it had a big {colour} flower.",
        "[The bees came to visit it.|{f} came to look at it.|Everyone said that it was beautiful.] "
        "{n} was [so proud|very proud].",
    ),
    "trip": (
        "One [summer day|day|morning], {n} and {his} {grown} went to {place} by [train|bus|boat|bike].",
        "[On the way they sang songs.|{n} looked out and saw [cows|sheep|horses] in the fields.]",
        "When they came to {place}, {n} [ran as fast as {he} could|took off {his} shoes|looked around]. "
        "\"[It is so beautiful here|I like it here]!\" {he} said.",
        "They saw [a duck with five little ducks|a big brown cow|two white birds|a frog on a stone|"
        "a butterfly with yellow wings].",
        "At noon they sat down and ate [bread and cheese|a {food}|apples and nuts]. "
        "[A {fkind} came to look, and {n} gave it a piece.|A little bird wanted some too.|]",
        "[Then|After that,] they [threw stones into the water|picked flowers|made a house of sand|"
        "climbed on a big rock].",
        "When the sun went down, {n} was [tired|very tired]. {His} {grown} carried {him} [home|all the way home].",
    ),
    "sharing": (
        "One [day|afternoon], {n} and {f} the {fkind} found a {colour} {toy} [at {place}|on the road].",
        "\"[It is mine|I saw it first]!\" said {n}. \"No, [it is mine|I saw it first]!\" said {f}.",
        "They [pulled and pulled|pulled it this way and that way], and [the {toy} fell into the mud|"
        "both of them fell down].",
        "[Now they were both sad.|{n} began to cry, and {f} cried too.] "
        "{His} {grown} [came and asked|heard them and asked], \"What happened?\"",
        "\"[It is more fun to share|Friends take turns],\" said {his} {grown}.",
        "{n} thought about it. \"You can [have it first|play first], {f},\" {he} said. "
        "\"[Thank you|I am sorry], {n},\" said {f}.",
        "So they took turns, and [it was much more fun|they laughed all afternoon].",
    ),
    "noise": (
        "One [dark|windy|cold] night, {n} was in bed when {he} heard a [strange|loud|funny] noise. "
        "[Tap, tap, tap!|Knock, knock!|Woo, woo!]",
        "\"Who is there?\" {he} asked. [Nobody answered.|There was no answer.]",
        "{n} [was afraid and hid under the blanket|called for {his} {grown}|held {his} teddy very close].",
        "{His} {grown} came with a [lamp|candle]. \"Let us [look together|go and see],\" {grown_he} said.",
        "[Slowly, they|Hand in hand, they] [opened the door|walked to the window] and looked outside.",
        "It was [only the wind in the trees|only a branch at the window|a little owl on the roof|"
        "only {f} the {fkind}, who could not sleep]!",
        "{n} [laughed|had to laugh]. \"[That is not scary at all|I am not afraid any more],\" {he} said.",
        "{He} went back to bed and [slept until morning|dreamed of the moon and the stars|soon fell asleep].",
    ),
    "building": (
        "One [day|morning], {n} wanted to build a [tall|big|strong] {build}.",
        "{He} [found some wood|took some stones|looked for sticks and leaves] and worked [all morning|very hard].",
        "But then [the wind blew|{he} pulled too hard|a big cat ran by], and the {build} [fell down|broke].",
        "\"[I will never do it|I cannot do it]!\" said {n}. {He} [was angry|sat down and cried].",
        "{f} the {fkind} [saw it|came by] and said, \"[Try again|Do not give up], [I will help you|we can do it "
        "together].\"",
        "So they worked [side by side|together]. {n} [held|carried] the wood and {f} [brought the nails|"
        "tied it with a rope].",
        "[In the evening|At last|When the sun went down], the {build} was [ready|done], and it was [strong|"
        "better than before].",
        "\"We did it!\" said {n} and {f}. [They were very proud.|They danced around it.]",
    ),
    "race": (
        "One day, there was a [big|great] race [from {place} to the old mill|around the lake|up the hill].",
        "{n} and {f} the {fkind} both wanted to win. \"[Ready, steady, go!|One, two, three, go!]\" said the owl.",
        "{n} ran [very fast|as fast as the wind] and was [soon|far] ahead.",
        "But then {he} [heard a cry|looked back]. {f} had [fallen into a hole|hurt a foot|fallen down].",
        "{n} [stopped|thought for a moment]. {He} wanted to win, but {he} [went back to help|could not leave "
        "{his} friend].",
        "\"[Hold on to me|Take my hand],\" said {n}. [Slowly|Step by step], they walked to the end together.",
        "They were the last, but everyone [cheered|clapped and cheered]. \"You are a [true|good] friend,\" said {f}.",
        "The owl gave {n} [a golden cup|a ring of flowers|a big {food}].",
    ),
    "birthday": (
        "[Today|It] was a special day. It was the birthday of {n}!",
        "But in the morning, [nobody said a word|the house was quiet|no one was there]. "
        "\"[Did they all forget|Has everyone forgotten]?\" {n} thought. {He} felt [sad|very lonely].",
        "{He} walked [slowly|alone] to {place} and sat down [on a stone|under a tree].",
        "Then {f} the {fkind} came [running|by]. \"Come with me, [quick|quickly]!\" said {f}.",
        "{n} [followed|ran after] {f} [down the road|through the trees|to the garden].",
        "\"[Surprise|Happy birthday]!\" [shouted|called] everyone. There was a big cake[ with candles|], and there "
        "were {colour} balloons [in the trees|on every chair].",
        "{His} {grown} gave {him} a [box|present]. In it was a {colour2} {toy}!",
        "\"[This is just what I wanted|You did not forget]!\" said {n}.",
    ),
    "learning": (
        "{n} wanted to learn how to [swim|ride a bike|skate|climb a tree|whistle].",
        "[\"It is too hard,\" {he} said.|The first time, {he} [fell down|was afraid|did it all wrong].] "
        "[{f} the {fkind} laughed, but not in a bad way.|{n} wanted to give up.]",
        "\"[Everyone has to start|Nobody can do it the first time],\" said {his} {grown}. "
        "\"[Try it again|Try a little every day].\"",
        "So every [day|afternoon] {n} [tried again|tried and tried]. [{He} fell, and {he} got up again.|"
        "Some days were good and some days were bad.]",
        "[{f} came to help.|{f} sat in the grass and watched.|]",
        "Then, one [sunny|fine] day, {he} could do it! \"Look at me! Look at me!\" {n} [shouted|called].",
        "{f} [clapped|jumped up and down], and {his} {grown} said, \"[I knew you could do it|I am so proud of you]!\"",
    ),
    "helping": (
        "One [day|afternoon], {n} saw an old {elder} with a [heavy|big] bag on the road to {place}.",
        "\"[Can I help you|May I carry that for you]?\" asked {n}. \"That is very [kind|nice] of you,\" came "
        "the answer.",
        "The bag was [very heavy|full of apples|full of books], but {n} [did not stop|carried it all the way].",
        "On the way, they [talked about the weather|told each other stories|sang an old song].",
        "At the door, {n} got a [shiny|little] {colour} {toy} [to keep|as a present]. "
        "\"[A kind heart is worth more than gold|Thank you for your help],\" the old {elder} said.",
        "{n} ran home and showed it to {f} the {fkind}. [\"I want to help people too,\" said {f}.|"
        "\"How lucky you are!\" said {f}.]",
    ),
    "snow": (
        "One winter [morning|day], {n} looked out of the window. Everything was white! \"[Snow|It is snowing]!\" "
        "{he} [shouted|called].",
        "{He} put on {his} [warm|thick] coat and {his} {colour} {wear} and ran [outside|to {place}].",
        "{f} the {fkind} was [already|also] there. \"[Let us make a snowman!|Shall we make a snowman?]\" said {f}.",
        "They made a big ball, a middle ball and a small ball. They used a carrot for the nose and "
        "[stones|two buttons] for the eyes.",
        "\"He looks cold,\" said {n}, and {he} gave the snowman {his} {colour} {wear}.",
        "[They threw snowballs|They went down the hill on a sled] until their hands were cold.",
        "Then they went home and drank [hot milk|hot chocolate] [by the fire|with {his} {grown}].",
        "[In the night, the snowman smiled at the moon.|In spring, the snowman was gone, but the {colour} "
        "{wear} was still there.|]",
    ),
    "kite": (
        "One windy [day|afternoon], {n} took {his} {colour} kite to {place}.",
        "The kite went [up and up|higher and higher], [over the trees|like a bird|up to the clouds].",
        "But [then|suddenly] a strong wind came, and the kite [got stuck in a tall tree|flew into a tree].",
        "{n} [pulled and pulled|jumped as high as {he} could], but {he} could not [get it down|reach it].",
        "[\"I can help,\" said {f} the {fkind}.|{f} the {fkind} saw it and came to help.] "
        "{f} [climbed up the tree|stood on {n}'s shoulders|shook the tree].",
        "[Down came the kite!|Soon the kite was free.] \"[Hooray|You did it]!\" said {n}.",
        "\"Now it is your turn to fly it,\" {n} said to {f}. And [they flew the kite|the kite danced in the sky] "
        "until [evening|the sun went down].",
    ),
}

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeiouAEIOU])")
_SPACES = re.compile(r" {2,}")


def _pronouns(female: bool) -> dict[str, str]:
    return ({"he": "she", "him": "her", "his": "her"} if female
            else {"he": "he", "him": "him", "his": "his"})


def _cast(rng: random.Random) -> dict[str, str]:
    """The words that stay the same throughout one story."""
    female = rng.random() < 0.5
    if rng.random() < 0.6:
        kind = "girl" if female else "boy"
        name = rng.choice(GIRLS if female else BOYS)
    else:
        kind = rng.choice(ANIMALS)
        name = rng.choice(PET_NAMES)
    grown = rng.choice(GROWN_UPS)
    colour, colour2 = rng.sample(COLOURS, 2)
    spot1, spot2, spot3 = rng.sample(HIDING, 3)
    cast = _pronouns(female) | {
        "n": name,
        "kind": kind,
        "f": rng.choice([p for p in PET_NAMES if p != name]),
        "fkind": rng.choice([a for a in ANIMALS if a != kind]),
        "grown": grown,
        "grown_he": "she" if grown in WOMEN else "he",
        "elder": rng.choice(["man", "woman"]),
        "bake": rng.choice(["cake", "pie"]),
        "wear": rng.choice(["hat", "scarf"]),
        "home": rng.choice(HOMES),
        "place": rng.choice(PLACES),
        "toy": rng.choice(TOYS),
        "food": rng.choice(FOODS),
        "build": rng.choice(["house", "tower", "boat", "bridge", "tree house", "castle"]),
        "colour": colour,
        "colour2": colour2,
        "spot1": spot1,
        "spot2": spot2,
        "spot3": spot3,
        "Weather": rng.choice(WEATHER),
    }
    cast["He"], cast["His"] = cast["he"].capitalize(), cast["his"].capitalize()
    return cast


def _choose(template: str, rng: random.Random) -> str:
    """Takes one choice of every [a|b] group, the innermost groups first."""
    while True:
        template, n = _CHOICE.subn(lambda m: rng.choice(m[1].split("|")), template)
        if n == 0:
            return template


def story(rng: random.Random) -> str:
    """One story, a single paragraph of plain ASCII."""
    parts = [rng.choice(OPENINGS), rng.choice(LIKES)]
    if rng.random() < 0.2:
        parts.append("{Weather}.")
    parts += rng.choice(list(PLOTS.values()))
    parts.append(rng.choice(ENDINGS))
    text = _choose(" ".join(parts), rng).format(**_cast(rng))
    text = _SPACES.sub(" ", text).strip()
    return _ARTICLE.sub(r"\1n ", text)


def stories(seed: int) -> Iterator[str]:
    """An endless sequence of stories, a function of `seed` alone."""
    rng = random.Random(seed)
    while True:
        yield story(rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=5)
    args = parser.parse_args()
    source = stories(args.seed)
    for _ in range(args.count):
        print(next(source), end="\n\n")


if __name__ == "__main__":
    main()
