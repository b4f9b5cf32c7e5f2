/* language.h - words and grammar of an artificial language, whose sentences language.c generates as training data. */
#pragma once

/* Word lists, called classes, with frequent words first. The last N_NAMES classes are lists of syllables, separated by '|'; each word joins
 * one syllable of every list. A word may be in several classes. No word ends in u, which marks translated words. */
static const struct {
    const char *name, *words;
} classes[] = {
    {"DETERMINER", "the this one some each"},
    {"ADJECTIVE",
     "old new big red good small tall rich poor kind blue dark cold warm loud slow wise bold calm clean dry fair "
     "fine green grey late wet"},
    {"ADVERB", "never always often slowly still gladly rarely again"},
    {"TIME", "today now then once soon later"},
    {"CONJUNCTION", "and but while as"},
    {"PRONOUN", "he she they"},
    {"WHO", "who"},
    {"THAT", "that"},
    {"OF", "of"},
    {"IN", "in to near from"},
    {"WITH", "with under behind on"},
    {"FOR", "for"},
    {"TITLE", "mr dr mrs sir judge"},
    {"PERSON_NOUN",
     "man girl boy cook judge nurse clerk pilot guard smith baker poet king queen child guest host maid nun monk"},
    {"THING_NOUN",
     "book house key ring box cup coat hat horse dog cat cow hen egg fish corn rice salt tea wine milk stone gold "
     "tool bell drum map pen desk bed door wall ship boat cart lamp"},
    {"PLACE_NOUN", "town city hill lake port coast isle bay wood river"},
    {"FIRM_NOUN", "bank firm club team union shop mill press group"},
    {"REST", "slept wept sang sat smiled rested fell danced"},
    {"HANDLE", "took lost found kept broke hid held cut wore drew fixed stole"},
    {"GO", "went came ran drove walked flew rode fled"},
    {"MEET", "met asked called told thanked kissed taught wed"},
    {"JOIN", "joined left sued led quit owned"},
    {"SAY", "said knew felt hoped wrote swore"},
    {"PRODUCE", "sells makes built offers ships rents"},
    {"HIRE", "hired paid fired trained"},
    {"ACQUIRE", "bought merged fought saved"},
    {"GROW", "grew froze burned shrank woke"},
    {"LIE", "lies begins ends"},
    {"BE", "was is seems became"},
    {"SEE", "saw liked feared loved hated drew"},
    {"PLACE_FRONT", "new port lake fort"},
    {"PLACE_BACK", "river bay hill falls"},
    {"FIRM_FRONT", "bank union press"},
    {"FIRM_BACK", "bank ltd works group press"},
#define N_NAMES 5 /* the last 5 word classes are proper names */
#define SYLLABLES "ba be bo da de do fa ga ha ka la le lo ma mi mo na no pa ra ro sa ta va|l n r s|"
    {"FIRST_NAME", "an be co da el jo ka le mi no ro ta|na ra lo ly s"},
    {"FAMILY_NAME", SYLLABLES "son ov ez man ini"},
    {"CITY_NAME", SYLLABLES "ton burg dal ham ia"},
    {"FIRM_NAME", SYLLABLES "co tex lab nix gen"},
    {"SHARED_NAME", SYLLABLES "en is"},
};

/* Phrases of the grammar. Each of a phrase's rules has a weight and the classes and phrases that replace the phrase. In the translation,
 * the symbol after '>' moves to the end. No phrase begins with itself: a word precedes each recursion, which ends when the sentence is too
 * long. tag: chunk tag of a name's first word, an index of tag_names; 0: no name. */
static const struct {
    const char *name, *rules;
    int tag;
} phrases[] = {
    {"sentence", "4 clause; 2 TIME clause; 4 clause CONJUNCTION clause", 0},
    {"clause",
     "4 person_phrase person_verbs; 1 PRONOUN person_verbs; 2 place_phrase place_verbs; 2 firm_phrase firm_verbs; "
     "2 any_phrase any_verbs",
     0},
    {"person_phrase",
     "4 person; 1 TITLE person; 3 DETERMINER PERSON_NOUN; 2 DETERMINER >ADJECTIVE PERSON_NOUN; "
     "1 DETERMINER PERSON_NOUN WHO person_verbs",
     0},
    {"place_phrase", "4 place; 2 DETERMINER PLACE_NOUN; 1 DETERMINER >ADJECTIVE PLACE_NOUN", 0},
    {"firm_phrase", "4 organisation; 2 DETERMINER FIRM_NOUN; 1 DETERMINER >ADJECTIVE FIRM_NOUN", 0},
    {"any_phrase", "1 clear_person; 1 clear_place; 1 clear_organisation; 2 thing_phrase", 0},
    {"thing_phrase",
     "4 DETERMINER THING_NOUN; 3 DETERMINER >ADJECTIVE THING_NOUN; 1 DETERMINER THING_NOUN FOR person_phrase", 0},
    {"person_verbs",
     "1 REST; 1 ADVERB >REST; 1 >REST WITH thing_phrase; 3 >HANDLE thing_phrase; 1 >HANDLE thing_phrase IN "
     "place_phrase; "
     "3 >GO IN place_phrase; 3 >MEET person_phrase; 2 >JOIN firm_phrase; 2 >SAY THAT clause",
     0},
    {"place_verbs", "3 GROW; 2 ADVERB >GROW; 3 >LIE IN place_phrase", 0},
    {"firm_verbs",
     "3 >PRODUCE thing_phrase; 1 ADVERB >PRODUCE thing_phrase; 2 >HIRE person_phrase; 2 >ACQUIRE firm_phrase", 0},
    {"any_verbs", "2 >BE ADJECTIVE; 3 >SEE any_phrase; 1 ADVERB >SEE any_phrase", 0},
    {"family", "2 FAMILY_NAME; 1 SHARED_NAME", 0},
    {"city", "2 CITY_NAME; 1 SHARED_NAME", 0},
    {"firm", "2 FIRM_NAME; 1 family; 1 city", 0},
    {"person", "2 clear_person; 1 SHARED_NAME", 1},
    {"place", "2 clear_place; 1 SHARED_NAME", 3},
    {"organisation", "2 clear_organisation; 1 SHARED_NAME", 5},
    {"clear_person", "1 FIRST_NAME; 3 FIRST_NAME family; 3 FAMILY_NAME", 1},
    {"clear_place", "4 CITY_NAME; 1 PLACE_FRONT city; 1 city PLACE_BACK", 3},
    {"clear_organisation", "4 FIRM_NAME; 2 firm FIRM_BACK; 1 FIRM_FRONT OF city", 5},
};

/* Chunk tags. B-X marks the first word of a proper name of kind X. I-X, the next tag in this list, marks the name's other words. If letters
 * have tags instead of words, I-X also marks all letters of a name but the first. */
static const char *const tag_names[] = {"O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"};
