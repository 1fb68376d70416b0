/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c - see listener.h and rendezvous.h. */
#include "listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system_words.h"

enum { BACKLOG = 1024 };

struct listener {
    int socket;
    bool is_named; /* its address was given */
    struct meeting_place place;
};

static enum status refused(struct diag *diag, const char *what)
{
    return diag_error(diag, STATUS_SYSTEM,
                      "cannot open a listener for ranks on other machines: %s: %s", what,
                      system_words(errno));
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

/* Addresses of this machine, without the loopback; how many there are, at most `room` of them in `out`. */
static enum status list_addresses(uint32_t *out, int room, int *count, struct diag *diag)
{
    struct ifaddrs *all;
    *count = 0;
    if (getifaddrs(&all) != 0)
        return refused(diag, "getifaddrs");
    for (const struct ifaddrs *at = all; at && *count < room; at = at->ifa_next) {
        if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET || !(at->ifa_flags & IFF_UP) ||
            (at->ifa_flags & IFF_LOOPBACK))
            continue;
        struct sockaddr_in address;
        memcpy(&address, at->ifa_addr, sizeof address);
        out[(*count)++] = address.sin_addr.s_addr;
    }
    freeifaddrs(all);
    return STATUS_OK;
}

/* Of several addresses the one that this machine's name stands for; false: none of them. */
static bool find_named(const uint32_t *addresses, int count, uint32_t *out)
{
    char name[256];
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    bool is_one = false;
    if (gethostname(name, sizeof name) != 0 || getaddrinfo(name, NULL, &hints, &found) != 0)
        return false;
    for (const struct addrinfo *at = found; at && !is_one; at = at->ai_next) {
        struct sockaddr_in address;
        memcpy(&address, at->ai_addr, sizeof address);
        *out = address.sin_addr.s_addr;
        for (int i = 0; i < count && !is_one; i++)
            is_one = addresses[i] == *out;
    }
    freeaddrinfo(found);
    return is_one;
}

/* One address, not all: the only one, else that of the machine's name; the loopback where there is no other. */
static enum status choose_address(uint32_t *out, struct diag *diag)
{
    uint32_t addresses[MEETING_ADDRESSES];
    int count;
    enum status status = list_addresses(addresses, MEETING_ADDRESSES, &count, diag);
    if (status)
        return status;
    *out = count ? addresses[0] : htonl(INADDR_LOOPBACK);
    if (count < 2 || find_named(addresses, count, out))
        return STATUS_OK;
    char first[INET_ADDRSTRLEN] = "", second[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &addresses[0], first, sizeof first);
    inet_ntop(AF_INET, &addresses[1], second, sizeof second);
    return diag_error(diag, STATUS_USAGE,
                      "found %d addresses of this machine (%s, %s%s), none of them its name's; "
                      "expected SWRUN_ADDRESS to say to which the other ranks connect",
                      count, first, second, count > 2 ? ", ..." : "");
}

static enum status not_here(const struct listener *listener, const char *address, struct diag *diag)
{
    return diag_error(diag, STATUS_USAGE, "%sfound '%s', expected an IPv4 address of this machine",
                      listener->is_named ? "environment variable SWRUN_ADDRESS: " : "", address);
}

static enum status listen_at(struct listener *listener, in_addr_t where, struct diag *diag)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = listener->place.port, .sin_addr = {.s_addr = where}};
    socklen_t length = sizeof address;
    char text[INET_ADDRSTRLEN];
    const int again = 1; /* the port of a run that has just ended */
    listener->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->socket < 0)
        return refused(diag, "socket");
    if (address.sin_port)
        setsockopt(listener->socket, SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
    if (bind(listener->socket, (struct sockaddr *)&address, sizeof address) != 0)
        return errno == EADDRNOTAVAIL
                   ? not_here(listener, inet_ntop(AF_INET, &where, text, sizeof text), diag)
                   : refused(diag, "bind");
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
    struct in_addr only = {0};
    enum status status = STATUS_OK;
    uint64_t chance; /* so that nobody else can take the name first */
    listener_machine(place->machine);
    if (getrandom(&chance, sizeof chance, 0) != (ssize_t)sizeof chance ||
        getrandom(place->secret, sizeof place->secret, 0) != (ssize_t)sizeof place->secret ||
        getrandom(place->answer, sizeof place->answer, 0) != (ssize_t)sizeof place->answer)
        return refused(diag, "getrandom");
    snprintf(place->name, sizeof place->name, "%.40s-%016" PRIx64, name, chance);
    listener->is_named = address;
    if (address && (inet_pton(AF_INET, address, &only) != 1 || only.s_addr == htonl(INADDR_ANY)))
        return not_here(listener, address, diag);
    if (!address)
        status = choose_address(&only.s_addr, diag);
    place->addresses[place->address_count++] = only.s_addr;
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

enum status listener_open_at(const struct meeting_place *place, struct listener **out,
                             struct diag *diag)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return diag_no_memory(diag);
    *listener = (struct listener){.socket = -1, .place = *place};
    enum status status = listen_at(listener, place->addresses[0], diag);
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
