/* SPDX-License-Identifier: Apache-2.0 */
/* unseen.h - libraries and functions of a program whose calls go past the recorder. */
#ifndef SWSIM_UNSEEN_H
#define SWSIM_UNSEEN_H

/* Writes an item for each. When the process ends: by then it has loaded what it uses. */
void unseen_note(void);

#endif
