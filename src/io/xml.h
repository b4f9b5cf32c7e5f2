/* xml.h - writes text inside XML, such as an SVG picture. */
#pragma once

#include <stdio.h>

/* Writes text as an element's content: <, > and & as entities, control characters as spaces, bytes that are not UTF-8 as question marks. */
void vpps_write_xml(FILE *f, const char *text);
