/* language.h - the words and the rules of the generated language (see language.c, which alone includes it). */
#pragma once

#include <stdint.h>

/* ---------------------------------------------------------------- words
 *
 * A class is a list of words, the frequent ones first, or for names lists of pieces: every choice of one of each makes
 * a name. A word may be in several classes. None ends in u: those are the translations. */

typedef enum symbol {
    NONE,
    DETERMINER,
    ADJECTIVE,
    ADVERB,
    TIME,
    CONJUNCTION,
    PRONOUN,
    WHO,
    THAT,
    OF,
    IN,
    WITH,
    FOR,
    TITLE,
    PERSON_NOUN,
    THING_NOUN,
    PLACE_NOUN,
    FIRM_NOUN,
    REST,    /* what persons do, */
    HANDLE,  /* with things, */
    GO,      /* at places, */
    MEET,    /* with persons, */
    JOIN,    /* with firms */
    SAY,     /* and with clauses; */
    PRODUCE, /* what firms do with things, */
    HIRE,    /* with persons */
    ACQUIRE, /* and with firms; */
    GROW,    /* what places do, */
    LIE,     /* near others; */
    BE,      /* what all do, */
    SEE,     /* with all */
    PLACE_FRONT,
    PLACE_BACK,
    FIRM_FRONT,
    FIRM_BACK,
    FIRST_NAME,
    FAMILY_NAME,
    CITY_NAME,
    FIRM_NAME,
    SHARED_NAME,
    N_CLASSES,

    SENTENCE = N_CLASSES,
    CLAUSE,
    PERSON_PHRASE, /* where the neighbours tell the kind */
    PLACE_PHRASE,
    FIRM_PHRASE,
    ANY_PHRASE, /* where they do not */
    THING_PHRASE,
    PERSON_VERBS,
    PLACE_VERBS,
    FIRM_VERBS,
    ANY_VERBS,
    FAMILY, /* parts of names, of which other parts tell the kind */
    CITY,
    FIRM,
    PERSON, /* names */
    PLACE,
    ORGANISATION,
    CLEAR_PERSON, /* names that show their kind */
    CLEAR_PLACE,
    CLEAR_ORGANISATION,
    N_SYMBOLS
} symbol;

#define HEADS "ba be bo da de do fa ga ha ka la le lo ma mi mo na no pa ra ro sa ta va"
#define MIDDLES "l n r s"

static const char *const classes[N_CLASSES][3] = {
    [DETERMINER] = {"the this one some each"},
    [ADJECTIVE] = {"old new big red good small tall rich poor kind blue dark cold warm loud slow wise bold calm clean "
                   "dry fair fine green grey late wet"},
    [ADVERB] = {"never always often slowly still gladly rarely again"},
    [TIME] = {"today now then once soon later"},
    [CONJUNCTION] = {"and but while as"},
    [PRONOUN] = {"he she they"},
    [WHO] = {"who"},
    [THAT] = {"that"},
    [OF] = {"of"},
    [IN] = {"in to near from"},
    [WITH] = {"with under behind on"},
    [FOR] = {"for"},
    [TITLE] = {"mr dr mrs sir judge"},
    [PERSON_NOUN] = {"man girl boy cook judge nurse clerk pilot guard smith baker poet king queen child guest host "
                     "maid nun monk"},
    [THING_NOUN] = {"book house key ring box cup coat hat horse dog cat cow hen egg fish corn rice salt tea wine milk "
                    "stone gold tool bell drum map pen desk bed door wall ship boat cart lamp"},
    [PLACE_NOUN] = {"town city hill lake port coast isle bay wood river"},
    [FIRM_NOUN] = {"bank firm club team union shop mill press group"},
    [REST] = {"slept wept sang sat smiled rested fell danced"},
    [HANDLE] = {"took lost found kept broke hid held cut wore drew fixed stole"},
    [GO] = {"went came ran drove walked flew rode fled"},
    [MEET] = {"met asked called told thanked kissed taught wed"},
    [JOIN] = {"joined left sued led quit owned"},
    [SAY] = {"said knew felt hoped wrote swore"},
    [PRODUCE] = {"sells makes built offers ships rents"},
    [HIRE] = {"hired paid fired trained"},
    [ACQUIRE] = {"bought merged fought saved"},
    [GROW] = {"grew froze burned shrank woke"},
    [LIE] = {"lies begins ends"},
    [BE] = {"was is seems became"},
    [SEE] = {"saw liked feared loved hated drew"},
    [PLACE_FRONT] = {"new port lake fort"},
    [PLACE_BACK] = {"river bay hill falls"},
    [FIRM_FRONT] = {"bank union press"},
    [FIRM_BACK] = {"bank ltd works group press"},
    [FIRST_NAME] = {"an be co da el jo ka le mi no ro ta", "na ra lo ly s"},
    [FAMILY_NAME] = {HEADS, MIDDLES, "son ov ez man ini"},
    [CITY_NAME] = {HEADS, MIDDLES, "ton burg dal ham ia"},
    [FIRM_NAME] = {HEADS, MIDDLES, "co tex lab nix gen"},
    [SHARED_NAME] = {HEADS, MIDDLES, "en is"},
};

/* ---------------------------------------------------------------- rules */

#define MAX_PARTS 5

typedef struct rule {
    uint8_t symbol, weight;
    uint8_t last; /* the part, from 1, that goes to the end in the translation; 0: none */
    uint8_t parts[MAX_PARTS];
} rule;

/* Rules of one symbol stand together. A phrase contains itself only after words of its own: so a sentence that gets too long is given
 * up. */
static const rule rules[] = {
    {SENTENCE, 4, 0, {CLAUSE}},
    {SENTENCE, 2, 0, {TIME, CLAUSE}},
    {SENTENCE, 4, 0, {CLAUSE, CONJUNCTION, CLAUSE}},

    {CLAUSE, 4, 0, {PERSON_PHRASE, PERSON_VERBS}},
    {CLAUSE, 1, 0, {PRONOUN, PERSON_VERBS}},
    {CLAUSE, 2, 0, {PLACE_PHRASE, PLACE_VERBS}},
    {CLAUSE, 2, 0, {FIRM_PHRASE, FIRM_VERBS}},
    {CLAUSE, 2, 0, {ANY_PHRASE, ANY_VERBS}},

    {PERSON_PHRASE, 4, 0, {PERSON}},
    {PERSON_PHRASE, 1, 0, {TITLE, PERSON}},
    {PERSON_PHRASE, 3, 0, {DETERMINER, PERSON_NOUN}},
    {PERSON_PHRASE, 2, 2, {DETERMINER, ADJECTIVE, PERSON_NOUN}},
    {PERSON_PHRASE, 1, 0, {DETERMINER, PERSON_NOUN, WHO, PERSON_VERBS}},

    {PLACE_PHRASE, 4, 0, {PLACE}},
    {PLACE_PHRASE, 2, 0, {DETERMINER, PLACE_NOUN}},
    {PLACE_PHRASE, 1, 2, {DETERMINER, ADJECTIVE, PLACE_NOUN}},

    {FIRM_PHRASE, 4, 0, {ORGANISATION}},
    {FIRM_PHRASE, 2, 0, {DETERMINER, FIRM_NOUN}},
    {FIRM_PHRASE, 1, 2, {DETERMINER, ADJECTIVE, FIRM_NOUN}},

    {ANY_PHRASE, 1, 0, {CLEAR_PERSON}},
    {ANY_PHRASE, 1, 0, {CLEAR_PLACE}},
    {ANY_PHRASE, 1, 0, {CLEAR_ORGANISATION}},
    {ANY_PHRASE, 2, 0, {THING_PHRASE}},

    {THING_PHRASE, 4, 0, {DETERMINER, THING_NOUN}},
    {THING_PHRASE, 3, 2, {DETERMINER, ADJECTIVE, THING_NOUN}},
    {THING_PHRASE, 1, 0, {DETERMINER, THING_NOUN, FOR, PERSON_PHRASE}},

    {PERSON_VERBS, 1, 0, {REST}},
    {PERSON_VERBS, 1, 2, {ADVERB, REST}},
    {PERSON_VERBS, 1, 1, {REST, WITH, THING_PHRASE}},
    {PERSON_VERBS, 3, 1, {HANDLE, THING_PHRASE}},
    {PERSON_VERBS, 1, 1, {HANDLE, THING_PHRASE, IN, PLACE_PHRASE}},
    {PERSON_VERBS, 3, 1, {GO, IN, PLACE_PHRASE}},
    {PERSON_VERBS, 3, 1, {MEET, PERSON_PHRASE}},
    {PERSON_VERBS, 2, 1, {JOIN, FIRM_PHRASE}},
    {PERSON_VERBS, 2, 1, {SAY, THAT, CLAUSE}},

    {PLACE_VERBS, 3, 0, {GROW}},
    {PLACE_VERBS, 2, 2, {ADVERB, GROW}},
    {PLACE_VERBS, 3, 1, {LIE, IN, PLACE_PHRASE}},

    {FIRM_VERBS, 3, 1, {PRODUCE, THING_PHRASE}},
    {FIRM_VERBS, 1, 2, {ADVERB, PRODUCE, THING_PHRASE}},
    {FIRM_VERBS, 2, 1, {HIRE, PERSON_PHRASE}},
    {FIRM_VERBS, 2, 1, {ACQUIRE, FIRM_PHRASE}},

    {ANY_VERBS, 2, 1, {BE, ADJECTIVE}},
    {ANY_VERBS, 3, 1, {SEE, ANY_PHRASE}},
    {ANY_VERBS, 1, 2, {ADVERB, SEE, ANY_PHRASE}},

    {FAMILY, 2, 0, {FAMILY_NAME}},
    {FAMILY, 1, 0, {SHARED_NAME}},

    {CITY, 2, 0, {CITY_NAME}},
    {CITY, 1, 0, {SHARED_NAME}},

    {FIRM, 2, 0, {FIRM_NAME}},
    {FIRM, 1, 0, {FAMILY}},
    {FIRM, 1, 0, {CITY}},

    {PERSON, 2, 0, {CLEAR_PERSON}},
    {PERSON, 1, 0, {SHARED_NAME}},

    {PLACE, 2, 0, {CLEAR_PLACE}},
    {PLACE, 1, 0, {SHARED_NAME}},

    {ORGANISATION, 2, 0, {CLEAR_ORGANISATION}},
    {ORGANISATION, 1, 0, {SHARED_NAME}},

    {CLEAR_PERSON, 1, 0, {FIRST_NAME}},
    {CLEAR_PERSON, 3, 0, {FIRST_NAME, FAMILY}},
    {CLEAR_PERSON, 3, 0, {FAMILY_NAME}},

    {CLEAR_PLACE, 4, 0, {CITY_NAME}},
    {CLEAR_PLACE, 1, 0, {PLACE_FRONT, CITY}},
    {CLEAR_PLACE, 1, 0, {CITY, PLACE_BACK}},

    {CLEAR_ORGANISATION, 4, 0, {FIRM_NAME}},
    {CLEAR_ORGANISATION, 2, 0, {FIRM, FIRM_BACK}},
    {CLEAR_ORGANISATION, 1, 0, {FIRM_FRONT, OF, CITY}},
};

/* The tag of a name's first word; the one after it is that of its other words, and of letters inside words. */
static const char *const tag_names[] = {"O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"};
static const uint8_t entity_tags[N_SYMBOLS] = {
    [PERSON] = 1, [PLACE] = 3, [ORGANISATION] = 5, [CLEAR_PERSON] = 1, [CLEAR_PLACE] = 3, [CLEAR_ORGANISATION] = 5};
