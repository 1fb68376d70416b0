/* SPDX-License-Identifier: Apache-2.0 */
/* hardware_choice.c - see hardware_choice.h. */
#include "hardware_choice.h"

#include "trace/import/files.h"
#include "trace/import/kineto_operators.h"

static enum status choice_profiled(struct app *app, const char *file, struct operator_times *out)
{
    struct bytes *bytes;
    enum status status = bytes_open(file, &bytes, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = kineto_operators_read(bytes, &app->arena, out, &app->diag);
    bytes_close(bytes);
    return status;
}

/* Traces of PyTorch's profiler, or tables. */
static enum status choice_operators(struct app *app, const struct text_list *files,
                                    struct operator_times *out)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < files->count; i++) {
        const char *file = files->items[i];
        enum format format;
        status = format_recognise(file, &format, &app->diag);
        if (status == STATUS_OK && (format == FORMAT_KINETO || format == FORMAT_JSON))
            status = choice_profiled(app, file, out);
        else if (status == STATUS_OK)
            status = operator_times_read(file, &app->arena, out, &app->diag);
    }
    return status;
}

enum status hardware_choice_read(struct app *app, struct hardware_choice *choice)
{
    if (!choice->name)
        return choice->operators.count == 0
                   ? STATUS_OK
                   : diag_error(&app->diag, STATUS_USAGE, "found --operators without --hardware");
    enum status status = hardware_find(choice->name, &app->arena, &choice->hardware, &app->diag);
    return status == STATUS_OK ? choice_operators(app, &choice->operators, &choice->measured)
                               : status;
}
