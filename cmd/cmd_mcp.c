/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_mcp.c - `swsim mcp`: the server for agents, which is a program of the Python package. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "options.h"

#include "base/system_words.h"

#define SERVER "swsim-mcp"

/* Where pip installs it: beside this program. Else PATH is searched. NULL: no memory. */
static const char *find_server(struct app *app)
{
    char own[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length <= 0)
        return SERVER;
    own[length] = '\0';
    *strrchr(own, '/') = '\0';
    const char *beside = arena_printf(&app->arena, "%s/" SERVER, own);
    return !beside || access(beside, X_OK) == 0 ? beside : SERVER;
}

enum status cmd_mcp(struct app *app, int argc, char **argv)
{
    const struct command command = {
        .unlimited = true,
        .name = "swsim mcp",
        .arguments = "",
        .about = "Serve an agent over standard input and output, by the Model Context Protocol: it "
                 "asks\n"
                 "for proofs, predictions, what-ifs, reasons and meanings, and writes no file. The "
                 "server\n"
                 "is " SERVER " of the Python package swsim.",
        .examples =
            "  {\"mcpServers\": {\"swsim\": {\"command\": \"swsim\", \"args\": [\"mcp\"]}}}",
        .argument_optional = true,
    };
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    if (arguments.count > 0)
        return diag_error(&app->diag, STATUS_USAGE, "swsim mcp: found argument '%s', expected none",
                          arguments.items[0]);
    const char *server = find_server(app);
    if (!server)
        return diag_no_memory(&app->diag);
    fflush(NULL);
    execlp(server, SERVER, (char *)NULL);
    if (errno != ENOENT)
        return diag_error(&app->diag, STATUS_SYSTEM, "cannot run %s: %s", server,
                          system_words(errno));
    return diag_error(&app->diag, STATUS_SYSTEM,
                      SERVER
                      " is neither beside swsim nor in PATH: it is part of the Python package "
                      "(pip install swsim, or ./python of the source)");
}
