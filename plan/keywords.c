/* SPDX-License-Identifier: Apache-2.0 */
/* keywords.c - see keywords.h. */
#include "keywords.h"

#include "plan.h"

#define WORD(name, key)              key,
#define WORD_SIZED(name, key, bytes) key,

const char *const keywords_direction[] = {DIRECTION_LIST(WORD) NULL};
const char *const keywords_collective[] = {COLLECTIVE_LIST(WORD) NULL};
const char *const keywords_dtype[] = {DTYPE_LIST(WORD_SIZED) NULL};
const char *const keywords_element[] = {ELEMENT_LIST(WORD_SIZED) NULL};
const char *const keywords_host_sync[] = {HOST_SYNC_LIST(WORD) NULL};
const char *const keywords_scope[] = {SCOPE_LIST(WORD) NULL};
const char *const keywords_order[] = {ORDER_LIST(WORD) NULL};
const char *const keywords_retire[] = {RETIRE_LIST(WORD) NULL};
const char *const keywords_ticket_at[] = {TICKET_AT_LIST(WORD) NULL};
const char *const keywords_forget[] = {FORGET_LIST(WORD) NULL};
const char *const keywords_retired_dep[] = {RETIRED_DEP_LIST(WORD) NULL};
const char *const keywords_slot_reset[] = {SLOT_RESET_LIST(WORD) NULL};
const char *const keywords_on_failure[] = {ON_FAILURE_LIST(WORD) NULL};
const char *const keywords_fifo[] = {FIFO_LIST(WORD) NULL};
const char *const keywords_metadata[] = {METADATA_LIST(WORD) NULL};
const char *const keywords_megatron[] = {MEGATRON_LIST(WORD) NULL};
const char *const keywords_balance[] = {BALANCE_LIST(WORD) NULL};
const char *const keywords_checkpoint[] = {CHECKPOINT_LIST(WORD) NULL};
const char *const keywords_release[] = {RELEASE_LIST(WORD) NULL};
const char *const keywords_grad_reduce[] = {GRAD_REDUCE_LIST(WORD) NULL};
const char *const keywords_embedding[] = {EMBEDDING_LIST(WORD) NULL};
const char *const keywords_group_call[] = {GROUP_CALL_LIST(WORD) NULL};
const char *const keywords_layer_function[] = {LAYER_FUNCTION_LIST(WORD) NULL};
const char *const keywords_loss[] = {LOSS_LIST(WORD) NULL};
const char *const keywords_sync[] = {SYNC_LIST(WORD) NULL};
const char *const keywords_driver[] = {PLAN_DRIVER_LIST(WORD) NULL};
