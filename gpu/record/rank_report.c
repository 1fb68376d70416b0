/* SPDX-License-Identifier: Apache-2.0 */
/* rank_report.c - see rank_report.h. */
#include "rank_report.h"

#include <stdlib.h>
#include <string.h>

bool rank_report_send(struct rendezvous *rendezvous, enum report_kind kind, int number,
                      const void *data, size_t bytes)
{
    const struct report_head head = {(int32_t)kind, number};
    char *packet = malloc(sizeof head + bytes);
    if (!packet)
        return false;
    memcpy(packet, &head, sizeof head);
    if (bytes > 0)
        memcpy(packet + sizeof head, data, bytes);
    bool sent = rendezvous_send(rendezvous, TO_BROKER, packet, sizeof head + bytes);
    free(packet);
    return sent;
}
