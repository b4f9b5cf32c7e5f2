/* xml.h - text inside XML, which pictures are. */
#pragma once

#include <stdio.h>

/* Writes text as the content of an element: <, > and & as entities, control characters as spaces, bytes that are not UTF-8 as question
 * marks. */
void vpps_write_xml(FILE *f, const char *text);
