/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto_event.c - kineto_internal.h: an event is read member by member, whatever the order of its members. `args` of
 * categories without use are passed over if the category stands before them, as it does in what Kineto writes.
 */
#include "kineto_internal.h"

#include <stdio.h>
#include <string.h>

static const char *const category_words[][2] = {
#define X(name, now, before) {now, before},
    CATEGORY_LIST(X)
#undef X
};

/* ---- members --------------------------------------------------------------------------------- */

static void copy_text(const struct json_reader *reader, struct text *out)
{
    const size_t length = reader->length < TEXT - 1 ? reader->length : TEXT - 1;
    memcpy(out->bytes, reader->text, length);
    out->bytes[length] = 0;
}

bool kineto_read_text(struct kineto *kineto, struct text *out)
{
    enum json_token token = json_next(&kineto->reader);
    if (token == JSON_STRING || token == JSON_NUMBER)
        copy_text(&kineto->reader, out);
    return json_skip_rest(&kineto->reader, token);
}

bool kineto_read_number(struct kineto *kineto, int places, int64_t *out, bool *found)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    *found = (token == JSON_STRING || token == JSON_NUMBER) &&
             decimal_scaled(reader->text, reader->length, places, out);
    return json_skip_rest(reader, token);
}

static enum category category_of(const struct json_reader *reader)
{
    for (int i = 0; i < CATEGORY_OTHER; i++)
        if (json_text_is(reader, category_words[i][0]) ||
            json_text_is(reader, category_words[i][1]))
            return (enum category)i;
    return CATEGORY_OTHER;
}

static bool begins(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

bool kineto_is_distributed(const struct event *event)
{
    return event->category == CATEGORY_OPERATOR && begins(event->name.bytes, "c10d::");
}

static bool has_useful_args(const struct event *event)
{
    const enum category category = event->category;
    return kineto_is_distributed(event) ||
           (category != CATEGORY_OTHER && category != CATEGORY_ANNOTATION &&
            category != CATEGORY_MARK && category != CATEGORY_OPERATOR &&
            category != CATEGORY_PYTHON);
}

/* "Concrete Inputs": the third of a message is its other rank; the last but one of a collective says whether it is
   asynchronous. */
static bool read_inputs(struct kineto *kineto, struct event *event)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    if (token != JSON_ARRAY)
        return json_skip_rest(reader, token);
    bool before = false, last = false; /* "False" */
    int place = 0;
    for (token = json_next(reader); token != JSON_ARRAY_END; token = json_next(reader), place++) {
        if (token == JSON_STRING && place == 2)
            decimal_scaled(reader->text, reader->length, 0, &event->peer);
        before = last;
        last = token == JSON_STRING && json_text_is(reader, "False");
        if (!json_skip_rest(reader, token))
            return false;
    }
    event->waits = before;
    return true;
}

/* "Process Group Ranks": the text "[0, 2]", or a list, of which the same text is made. */
static bool read_ranks(struct kineto *kineto, struct text *out)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    if (token != JSON_ARRAY) {
        if (token == JSON_STRING)
            copy_text(reader, out);
        return json_skip_rest(reader, token);
    }
    size_t length = 0;
    for (token = json_next(reader); token == JSON_NUMBER; token = json_next(reader)) {
        if (length + reader->length + 4 < TEXT)
            length += (size_t)snprintf(out->bytes + length, TEXT - length, "%s%.*s",
                                       length ? ", " : "[", (int)reader->length, reader->text);
    }
    if (length)
        snprintf(out->bytes + length, TEXT - length, "]");
    return token == JSON_ARRAY_END || json_skip_rest(reader, token);
}

static bool read_args(struct kineto *kineto, struct event *event)
{
    const struct {
        const char *key;
        int64_t *value;
    } numbers[] = {
        {"correlation", &event->correlation},
        {"stream", &event->stream},
        {"device", &event->device},
        {"bytes", &event->bytes},
        {"wait_on_stream", &event->source_stream},
        {"wait_on_cuda_event_record_corr_id", &event->record},
        {"Dst Rank", &event->peer},
        {"Src Rank", &event->peer},
    };
    struct json_reader *reader = &kineto->reader;
    enum json_token token = json_next(reader);
    if (token != JSON_OBJECT)
        return json_skip_rest(reader, token);
    for (token = json_next(reader); token == JSON_KEY; token = json_next(reader)) {
        size_t i = 0;
        bool found;
        while (i < sizeof numbers / sizeof *numbers && !json_text_is(reader, numbers[i].key))
            i++;
        if (i < sizeof numbers / sizeof *numbers)
            kineto_read_number(kineto, 0, numbers[i].value, &found);
        else if (json_text_is(reader, "Concrete Inputs") && kineto_is_distributed(event))
            read_inputs(kineto, event);
        else if (json_text_is(reader, "Process Group Name"))
            kineto_read_text(kineto, &event->group);
        else if (json_text_is(reader, "Process Group Ranks"))
            read_ranks(kineto, &event->ranks);
        else if (json_text_is(reader, "Collective name"))
            kineto_read_text(kineto, &event->collective);
        else
            json_skip(reader);
    }
    return token == JSON_OBJECT_END;
}

static enum phase phase_of(const struct json_reader *reader)
{
    return json_text_is(reader, "X")   ? PHASE_COMPLETE
           : json_text_is(reader, "B") ? PHASE_BEGIN
           : json_text_is(reader, "E") ? PHASE_END
                                       : PHASE_OTHER;
}

static bool read_member(struct kineto *kineto, struct event *event)
{
    struct json_reader *reader = &kineto->reader;
    bool found;
    if (json_text_is(reader, "ts"))
        return kineto_read_number(kineto, 3, &event->start_ns, &event->has_start);
    if (json_text_is(reader, "dur"))
        return kineto_read_number(kineto, 3, &event->duration_ns, &found);
    if (json_text_is(reader, "name"))
        return kineto_read_text(kineto, &event->name);
    if (json_text_is(reader, "pid"))
        return kineto_read_text(kineto, &event->pid);
    if (json_text_is(reader, "tid"))
        return kineto_read_text(kineto, &event->tid);
    if (json_text_is(reader, "args") && has_useful_args(event))
        return read_args(kineto, event);
    const bool cat = json_text_is(reader, "cat");
    if (!cat && !json_text_is(reader, "ph"))
        return json_skip(reader);
    enum json_token token = json_next(reader);
    if (token == JSON_STRING && cat)
        event->category = category_of(reader);
    else if (token == JSON_STRING)
        event->phase = phase_of(reader);
    return json_skip_rest(reader, token);
}

static void begin_event(struct event *event)
{
    event->category = CATEGORY_UNKNOWN;
    event->phase = PHASE_OTHER;
    event->has_start = false;
    event->name.bytes[0] = event->pid.bytes[0] = event->tid.bytes[0] = event->group.bytes[0] = 0;
    event->collective.bytes[0] = event->ranks.bytes[0] = 0;
    event->start_ns = event->duration_ns = 0;
    event->correlation = event->stream = event->device = event->bytes = -1;
    event->source_stream = event->record = event->peer = -1;
    event->waits = false;
}

enum status kineto_read_event(struct kineto *kineto, struct event *out)
{
    struct json_reader *reader = &kineto->reader;
    enum json_token token;
    begin_event(out);
    for (token = json_next(reader); token == JSON_KEY; token = json_next(reader))
        if (!read_member(kineto, out))
            break;
    return token == JSON_OBJECT_END ? STATUS_OK : reader->status;
}
