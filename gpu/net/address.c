/* SPDX-License-Identifier: Apache-2.0 */
/* address.c - see address.h. */
#include "address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "listener.h"
#include "base/hash.h"
#include "base/system_words.h"

/* "host:port" in two; false: it is not that. */
static bool split(const char *address, char host[256], uint16_t *port)
{
    const char *colon = strrchr(address, ':');
    char *end;
    if (!colon || colon == address || (size_t)(colon - address) >= 256)
        return false;
    unsigned long number = strtoul(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end || number == 0 || number > UINT16_MAX)
        return false;
    memcpy(host, address, (size_t)(colon - address));
    host[colon - address] = '\0';
    *port = (uint16_t)number;
    return true;
}

static enum status look_up(const char *host, uint32_t *out, struct diag *diag)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    struct sockaddr_in first;
    int failed = getaddrinfo(host, NULL, &hints, &found);
    if (failed)
        return diag_error(diag, STATUS_SYSTEM, "host '%s' has no address: %s", host,
                          system_address_words(failed));
    memcpy(&first, found->ai_addr, sizeof first);
    *out = first.sin_addr.s_addr;
    freeaddrinfo(found);
    return STATUS_OK;
}

/* Is it an address of this machine? */
static bool is_here(uint32_t address)
{
    struct ifaddrs *all;
    bool here = (ntohl(address) >> 24) == IN_LOOPBACKNET;
    if (here || getifaddrs(&all) != 0)
        return here;
    for (const struct ifaddrs *at = all; at && !here; at = at->ifa_next) {
        struct sockaddr_in own;
        if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET)
            continue;
        memcpy(&own, at->ifa_addr, sizeof own);
        here = own.sin_addr.s_addr == address;
    }
    freeifaddrs(all);
    return here;
}

enum { MOST_PASSWORD = 250 };

/* MEETING_SECRET bytes of the password, others for each `purpose`. */
static void make_secret(const char *password, char purpose, char out[MEETING_SECRET])
{
    char text[300];
    for (int i = 0; i < MEETING_SECRET; i += 8) {
        int length = snprintf(text, sizeof text, "%c%d %s", purpose, i, password);
        uint64_t word = hash_bytes(text, (size_t)length);
        memcpy(out + i, &word, sizeof word);
    }
}

/* On rank 0's machine the user is what counts. A name of its own for each password keeps those apart that do not mean
   the same run; everybody can read it, so it tells 16 bits. */
static void name_place(const char *password, struct meeting_place *place)
{
    char word[MEETING_SECRET];
    make_secret(password, 'n', word);
    snprintf(place->name, sizeof place->name, "swpipe-%08" PRIx32 "-%u-%02x%02x",
             place->addresses[0], ntohs(place->port), (unsigned char)word[0],
             (unsigned char)word[1]);
}

enum status address_place(const char *address, const char *password, struct meeting_place *out,
                          struct diag *diag)
{
    char host[256];
    uint16_t port;
    struct meeting_place place = {.address_count = 1};
    if (!split(address, host, &port))
        return diag_error(diag, STATUS_USAGE,
                          "found '%s', expected the address of rank 0 as host:port", address);
    if (password && strlen(password) > MOST_PASSWORD)
        return diag_error(diag, STATUS_USAGE, "found a password of %zu bytes, expected at most %d",
                          strlen(password), MOST_PASSWORD);
    enum status status = look_up(host, &place.addresses[0], diag);
    if (status)
        return status;
    if (is_here(place.addresses[0]))
        listener_machine(place.machine);
    else
        snprintf(place.machine, sizeof place.machine, "elsewhere");
    place.port = htons(port);
    name_place(password ? password : "", &place);
    make_secret(password ? password : "", 'm', place.secret);
    make_secret(password ? password : "", 'b', place.answer);
    *out = place;
    return STATUS_OK;
}
