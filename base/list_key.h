/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_key.h - the words of a list that is an X-macro: WORK_LIST(LIST_KEY), where the second thing of an entry is its word.
 */
#ifndef SWSIM_LIST_KEY_H
#define SWSIM_LIST_KEY_H

#define LIST_KEY(name, ...)   LIST_SECOND(__VA_ARGS__, )
#define LIST_SECOND(key, ...) key,

#endif
