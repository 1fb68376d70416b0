/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keywords.h - the words of enums in a plan file, for parser and printer alike.
 *
 * Each table is generated from the list beside its enum (plan.h); the position of a word is the
 * value of its enum. NULL ends a table; a value beyond the end cannot be written as a word.
 */
#ifndef SWSIM_KEYWORDS_H
#define SWSIM_KEYWORDS_H

extern const char *const keywords_direction[];
extern const char *const keywords_collective[];
extern const char *const keywords_dtype[];
extern const char *const keywords_element[];
extern const char *const keywords_host_sync[];
extern const char *const keywords_scope[];
extern const char *const keywords_order[];
extern const char *const keywords_retire[];
extern const char *const keywords_ticket_at[];
extern const char *const keywords_forget[];
extern const char *const keywords_retired_dep[];
extern const char *const keywords_slot_reset[];
extern const char *const keywords_on_failure[];
extern const char *const keywords_fifo[];
extern const char *const keywords_metadata[];
extern const char *const keywords_megatron[];
extern const char *const keywords_balance[]; /* all but a list */
extern const char *const keywords_checkpoint[];
extern const char *const keywords_release[];
extern const char *const keywords_grad_reduce[];
extern const char *const keywords_embedding[];
extern const char *const keywords_group_call[];
extern const char *const keywords_layer_function[];
extern const char *const keywords_loss[];
extern const char *const keywords_sync[];
extern const char *const keywords_driver[];

#endif
