/* xml.c - writes text inside XML. */
#include "io/xml.h"
#include "vpps_data.h"

#include <string.h>

void vpps_write_xml(FILE *f, const char *text) {
    for (uint32_t bytes; *text; text += bytes) {
        bytes = vpps_utf8_character(text, strlen(text));
        const unsigned char c = (unsigned char)*text;
        switch (c) {
        case '<': fputs("&lt;", f); break;
        case '>': fputs("&gt;", f); break;
        case '&': fputs("&amp;", f); break;
        default:
            if (bytes > 1) {
                fprintf(f, "%.*s", (int)bytes, text);
            } else {
                fputc(c < 0x20 ? ' ' : c < 0x80 ? c : '?', f);
            }
        }
    }
}
