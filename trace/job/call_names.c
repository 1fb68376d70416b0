/* SPDX-License-Identifier: Apache-2.0 */
/* call_names.c - tables of words. */
#include "call_names.h"

#include <stdlib.h>
#include <string.h>

/* Behind "cuda", "hip" or "cu"; the whole name where it begins otherwise. */
static const char *without_prefix(const char *name)
{
    static const char *const prefixes[] = {"cuda", "hip", "cu"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return name + strlen(prefixes[i]);
    return name;
}

static const struct call_word {
    const char *begins;
    enum call_kind kind;
    bool ends; /* the name is no longer, but for a version: _v2 */
} call_words[] = {
    {"StreamSynchronize", CALL_SYNC_STREAM, false},
    {"EventSynchronize", CALL_SYNC_EVENT, false},
    {"DeviceSynchronize", CALL_SYNC_DEVICE, false},
    {"CtxSynchronize", CALL_SYNC_DEVICE, false},
    {"StreamWaitEvent", CALL_WAIT, false},
    {"EventRecord", CALL_RECORD, false},
    {"Free", CALL_SYNC_DEVICE, true},
    {"MemFree", CALL_SYNC_DEVICE, true},
};

/* Parts of the names of calls that neither push nor wait. */
static const char *const asking[] = {"Query",       "Get",          "Occupancy",   "PeekAt",
                                     "IsCapturing", "SetAttribute", "EventCreate", "EventDestroy",
                                     "ElapsedTime", "SetDevice",    "CaptureMode", "SetLimit"};

/* The entry of a call; NULL: it has none. */
static const struct call_word *find_word_of(const char *name)
{
    const char *call = without_prefix(name);
    for (size_t i = 0; i < sizeof call_words / sizeof *call_words; i++) {
        const size_t length = strlen(call_words[i].begins);
        if (strncmp(call, call_words[i].begins, length) == 0 &&
            (!call_words[i].ends || !call[length] || call[length] == '_'))
            return &call_words[i];
    }
    return NULL;
}

bool call_waits_and_works(const char *name)
{
    const struct call_word *word = find_word_of(name);
    return word && word->ends;
}

bool call_kind_of(const char *name, enum call_kind *out)
{
    const char *call = without_prefix(name);
    const struct call_word *word = find_word_of(name);
    if (word) {
        *out = word->kind;
        return true;
    }
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++)
        if (strstr(call, asking[i]))
            return false;
    *out = CALL_OTHER;
    return true;
}

/* Where the parameters or template arguments that open at `at` are closed. */
static const char *closing(const char *at)
{
    int depth = 0;
    for (; *at; at++) {
        if (*at == '<' || *at == '(' || *at == '{')
            depth++;
        else if ((*at == '>' || *at == ')' || *at == '}') && --depth == 0)
            return at + 1;
    }
    return at;
}

const char *kernel_short_name(const char *name, char *out, size_t cap)
{
    size_t length = 0;
    const char *at = name;
    while (*at) {
        if (*at == '<' || *at == '{') {
            at = closing(at);
        } else if (*at == '(') {
            if (strncmp(at, "(anonymous namespace)", 21) != 0)
                break;
            at = closing(at);
        } else if (*at == ' ' || (at[0] == ':' && at[1] == ':')) {
            length = 0;
            at += *at == ' ' ? 1 : 2;
        } else {
            if (length + 1 < cap)
                out[length++] = *at;
            at++;
        }
    }
    out[length] = 0;
    if (length == 0) {
        strncpy(out, name, cap - 1);
        out[cap - 1] = 0;
    }
    return out;
}

static const struct collective_word {
    const char *part;
    enum collective_kind kind;
} collective_words[] = {
    {"AllReduce", COLLECTIVE_ALL_REDUCE},
    {"AllGather", COLLECTIVE_ALL_GATHER},
    {"ReduceScatter", COLLECTIVE_REDUCE_SCATTER},
    {"Broadcast", COLLECTIVE_BROADCAST},
    {"SendRecv", COLLECTIVE_ALL_TO_ALL},
    {"AllToAll", COLLECTIVE_ALL_TO_ALL},
    {"Reduce", COLLECTIVE_ALL_REDUCE},
    {"Generic", COLLECTIVE_ALL_REDUCE},
};

bool kernel_is_collective(const char *name, enum collective_kind *out)
{
    if (!strstr(name, "nccl") && !strstr(name, "rccl"))
        return false;
    for (size_t i = 0; i < sizeof collective_words / sizeof *collective_words; i++) {
        if (!strstr(name, collective_words[i].part))
            continue;
        *out = collective_words[i].kind;
        return true;
    }
    return false;
}

enum direction copy_direction(const char *name)
{
    if (strstr(name, "HtoD") || strstr(name, "HostToDevice"))
        return DIRECTION_H2D;
    if (strstr(name, "DtoH") || strstr(name, "DeviceToHost"))
        return DIRECTION_D2H;
    return DIRECTION_D2D;
}

bool copy_is_pageable(const char *name)
{
    static const char *const told[] = {"Pinned", "Managed", "Array"};
    bool known = !strstr(name, "Host");
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        known |= strstr(name, told[i]) != NULL;
    return strstr(name, "Pageable") || !known;
}

bool range_is_step(const char *name, int64_t *number)
{
    static const char word[] = "ProfilerStep#";
    if (strncmp(name, word, sizeof word - 1) != 0)
        return false;
    char *end;
    *number = strtoll(name + sizeof word - 1, &end, 10);
    return *end == 0 && end > name + sizeof word - 1;
}
