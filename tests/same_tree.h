/* SPDX-License-Identifier: Apache-2.0 */
/*
 * same_tree.h - do both ways of reading a plan's YAML give one tree? Lines of operations are read by our own reader
 * (plan/text/flow_lines.h), or everything by libyaml.
 */
#ifndef SWSIM_SAME_TREE_H
#define SWSIM_SAME_TREE_H

#include <stdbool.h>
#include <stddef.h>

/* false: the trees differ, or the messages do. `*lines`, where given: how many lines our own reader read. */
bool same_tree(const char *text, size_t length, size_t *lines);

#endif
