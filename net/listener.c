/* listener.c - see listener.h and rendezvous.h. */
#include "listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

struct listener {
    int socket;
    struct meeting_place place;
};

static enum status refused(struct diag *diag, const char *what)
{
    return diag_error(diag, STATUS_SYSTEM,
                      "cannot open a listener for ranks on other machines: %s: %s", what,
                      strerror(errno));
}

/* Names outside the file system are those of a network namespace, as in a container of its own. */
void listener_machine(char out[sizeof((struct meeting_place *)0)->machine])
{
    char boot[40] = "?";
    struct stat space = {0};
    memset(out, 0, sizeof((struct meeting_place *)0)->machine); /* it is compared as a whole */
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && !fgets(boot, sizeof boot, file))
        snprintf(boot, sizeof boot, "?");
    if (file)
        fclose(file);
    boot[strcspn(boot, "\n")] = '\0';
    if (stat("/proc/self/ns/net", &space) != 0)
        space.st_ino = 0;
    snprintf(out, sizeof((struct meeting_place *)0)->machine, "%s/%llu", boot,
             (unsigned long long)space.st_ino);
}

/* Every address of this machine but the loopback; that alone where there is no other. */
static enum status list_addresses(struct meeting_place *place, struct diag *diag)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return refused(diag, "getifaddrs");
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET || !(at->ifa_flags & IFF_UP) ||
            (at->ifa_flags & IFF_LOOPBACK) || place->address_count == MEETING_ADDRESSES)
            continue;
        struct sockaddr_in address;
        memcpy(&address, at->ifa_addr, sizeof address);
        place->addresses[place->address_count++] = address.sin_addr.s_addr;
    }
    freeifaddrs(all);
    if (place->address_count == 0)
        place->addresses[place->address_count++] = htonl(INADDR_LOOPBACK);
    return STATUS_OK;
}

static enum status listen_at(struct listener *listener, in_addr_t where, struct diag *diag)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = where}};
    socklen_t length = sizeof address;
    listener->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->socket < 0)
        return refused(diag, "socket");
    if (bind(listener->socket, (struct sockaddr *)&address, sizeof address) != 0)
        return refused(diag, "bind");
    if (listen(listener->socket, BACKLOG) != 0 ||
        getsockname(listener->socket, (struct sockaddr *)&address, &length) != 0)
        return refused(diag, "listen");
    listener->place.port = address.sin_port;
    return STATUS_OK;
}

static enum status set_up(struct listener *listener, const char *name, const char *address,
                          struct diag *diag)
{
    struct meeting_place *place = &listener->place;
    struct in_addr only = {.s_addr = htonl(INADDR_ANY)};
    enum status status = STATUS_OK;
    snprintf(place->name, sizeof place->name, "%s", name);
    listener_machine(place->machine);
    if (getrandom(place->secret, sizeof place->secret, 0) != (ssize_t)sizeof place->secret ||
        getrandom(place->answer, sizeof place->answer, 0) != (ssize_t)sizeof place->answer)
        return refused(diag, "getrandom");
    if (address && inet_pton(AF_INET, address, &only) != 1)
        return diag_error(diag, STATUS_USAGE,
                          "found '%s', expected an IPv4 address of this machine", address);
    if (address)
        place->addresses[place->address_count++] = only.s_addr;
    else
        status = list_addresses(place, diag);
    return status ? status : listen_at(listener, only.s_addr, diag);
}

enum status listener_open(const char *name, const char *address, struct listener **out,
                          struct diag *diag)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return diag_no_memory(diag);
    listener->socket = -1;
    enum status status = set_up(listener, name, address, diag);
    if (status) {
        listener_close(listener);
        return status;
    }
    *out = listener;
    return STATUS_OK;
}

const struct meeting_place *listener_place(const struct listener *listener)
{
    return &listener->place;
}

int listener_socket(const struct listener *listener)
{
    return listener->socket;
}

void listener_close(struct listener *listener)
{
    if (!listener)
        return;
    if (listener->socket >= 0)
        close(listener->socket);
    free(listener);
}

void listener_run_name(const struct meeting_place *place, int run, char *out)
{
    snprintf(out, RENDEZVOUS_MAX_NAME + 1, "%.60s.%d", place->name, run);
}
