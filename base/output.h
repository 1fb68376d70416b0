/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - files are written whole or not at all.
 *
 * Every file that the programs write, but for trace stores, passes through here. The new text is written beside the
 * file, synchronised and renamed: whatever happens, `path` is the old file or the new one. Nothing else is left, also
 * by SIGINT, SIGTERM and SIGHUP, which take effect afterwards; SIGKILL may leave the file beside.
 * A symbolic link stays one and its target is replaced; permissions stay, and owner and group where the system lets
 * them. Other hard links keep the old text. A file that is not an ordinary one (a terminal, a pipe, /dev/null) is written to as
 * it is, and so is a file in a folder that lets no file be made.
 */
#ifndef SWSIM_OUTPUT_H
#define SWSIM_OUTPUT_H

#include <stddef.h>

#include "diag.h"
#include "status.h"

/* STATUS_SYSTEM with a message that names `path`. */
enum status output_write(const char *path, const char *data, size_t bytes, struct diag *diag);

#endif
