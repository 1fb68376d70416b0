/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener.h - where members on other machines handshake; private to the rendezvous (see gpu/net/rendezvous.h).
 */
#ifndef SWSIM_LISTENER_H
#define SWSIM_LISTENER_H

#include "rendezvous.h"

/* Listens, without blocking. */
int listener_socket(const struct listener *listener);

/* This machine, among those that a run may be on: processes that can meet by name are on one. */
void listener_machine(char out[sizeof((struct meeting_place *)0)->machine]);

#endif
