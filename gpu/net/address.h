/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.h - a meeting place that its members know beforehand: the host and port of member 0, and a password.
 *
 *     address "node1:29500", password  ->  struct meeting_place, the same in every process
 *
 * The processes of a job that no launcher has started know nothing of each other but an address. Its port is
 * member 0's; processes on the machine that has the address meet by a name made of both, which only the same
 * user can use, all others over TCP, with secrets made of the password. Without a password every
 * process that can connect to the port while members are missing can take part.
 *
 * Errors: STATUS_USAGE: it is no address. STATUS_SYSTEM: its host is not known.
 */
#ifndef SWSIM_ADDRESS_H
#define SWSIM_ADDRESS_H

#include "rendezvous.h"

/* `password` NULL: none. IPv4. */
enum status address_place(const char *address, const char *password, struct meeting_place *out,
                          struct diag *diag);

#endif
