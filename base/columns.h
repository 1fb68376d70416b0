/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - the columns that a text takes on a terminal, for every table and bar that is printed.
 *
 *     fprintf(out, "%s%*s  %5d", name, columns_fill(name, width), "", number);    what "%-*s" is for ASCII
 *
 * A character takes one column; one of East Asia or a picture takes two, one that joins the character before it none,
 * whatever locale the program has. Signs of the scripts of India and its neighbours that join take one. Text is as it is shown
 * (printable.h).
 */
#ifndef SWSIM_COLUMNS_H
#define SWSIM_COLUMNS_H

/* 0, 1 or 2. */
int columns_of_character(unsigned code);
int columns_of(const char *text);
/* Spaces that are missing behind the text in a column of this width; 0 or more. */
int columns_fill(const char *text, int width);
/* *width is at least that of the text. */
void columns_widen(int *width, const char *text);
/* The bytes of the characters at the beginning of the text that fit. It ends where the text is no UTF-8. */
int columns_fit(const char *text, int width);

#endif
