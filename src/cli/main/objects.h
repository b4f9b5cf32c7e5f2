/* objects.h - the program of an exported network: lines of JSON, answered by the same objects with more members. ANSWER_NAMES says
 * what these are, UNANSWERED which of them are null without an answer; put_value prints one. */
typedef struct answer answer;
static void put_value(const answer *a, size_t i);

/* Is the first line an object? */
static int is_json(input in) {
    vpps_json json;
    vpps_json_error error;
    while (next_line(&in)) {
        const text line = trim(in.line), second = line.len ? trim(after(line, 1)) : line;
        if (!line.len) continue;
        if (*line.at == '[' && second.len && *second.at == '{') stop(&in, "objects, one a line, found an array");
        if (*line.at != '{' || !vpps_json_parse_foreign(&json, line.at, line.len, &error)) return 0;
        vpps_json_free(&json);
        return 1;
    }
    return 0;
}

/* Reads the line, and finds the value that is the text. */
static const vpps_json_value *read_object(const input *in, vpps_json *json) {
    static const char *const names[] = {TEXT_NAMES};
    const vpps_json_value *found = NULL;
    vpps_json_error error;
    if (!vpps_json_parse_foreign(json, in->line.at, in->line.len, &error)) stop(in, error.expected);
    if (json->values->kind != VPPS_JSON_OBJECT) stop(in, "an object of JSON");
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) {
        found = vpps_json_get(json, json->values, names[i]);
        for (const vpps_json_value *v = found; v && (v = vpps_json_next(json, json->values, v));)
            if (strcmp(v->key, names[i]) == 0) stop(in, "one field with the text, found two");
    }
    if (!found && json->values->n == 1) found = vpps_json_next(json, json->values, NULL);
    if (!found) stop(in, "a field '" TEXT_NAME "'");
    return found;
}

/* A string, whose blanks become spaces. */
static text flat(const input *in, const vpps_json_value *v) {
    if (v->kind != VPPS_JSON_STRING) stop(in, "a text, or a list of words");
    for (char *c = (char *)(size_t)v->string; *c; c++) *c = vpps_is_space(*c) ? ' ' : *c;
    return (text){v->string, strlen(v->string)};
}

/* The object's members with those of the answer in their places, or after them; NULL: there is no answer. */
static void put_object(text line, const vpps_json *json, const answer *a) {
    static const char *const names[] = {ANSWER_NAMES};
    enum { N = sizeof names / sizeof *names };
    const char *comma = "{";
    for (const vpps_json_value *v = NULL; (v = vpps_json_next(json, json->values, v));) {
        size_t i = 0;
        while (i < N && strcmp(names[i], v->key) != 0) i++;
        const int ours = i < N && (a || UNANSWERED(i));
        if (ours && vpps_json_get(json, json->values, v->key) != v) continue; /* there already */
        fputs(comma, stdout);
        comma = ",";
        put((text){line.at + v->key_begin, v->key_end - v->key_begin});
        putchar(':');
        if (ours && a)
            put_value(a, i);
        else if (ours)
            fputs("null", stdout);
        else
            put((text){line.at + v->begin, v->end - v->begin});
    }
    for (size_t i = 0; a && i < N; i++) {
        if (vpps_json_get(json, json->values, names[i])) continue;
        printf("%s\"%s\":", comma, names[i]);
        comma = ",";
        put_value(a, i);
    }
    fputs(*comma == '{' ? "{}" : "}", stdout);
}

VPPS_UNUSED static void put_string(text t) {
    char *copy = room(t.len, 1);
    memcpy(copy, t.at, t.len);
    vpps_json_write_string(stdout, copy);
    free(copy);
}

/* Six digits, and always a fraction or an exponent. */
static void put_number(double x) {
    char digits[32];
    snprintf(digits, sizeof digits, "%.6g", x);
    const char *e = strchr(digits, 'e');
    if (!(fabs(x) < (double)INFINITY))
        fputs("null", stdout);
    else if (e)
        printf("%.*se%d", (int)(e - digits), digits, atoi(e + 1));
    else
        printf("%s%s", digits, strchr(digits, '.') ? "" : ".0");
}

/* The probability of a class, by the logits of all. */
static double score_of(const float *logits, size_t label) {
    const double most = (double)logits[likeliest(logits)];
    double sum = 0;
    for (size_t i = 0; i < CLASSES; i++) sum += exp((double)logits[i] - most);
    return exp((double)logits[label] - (most + log(sum)));
}
