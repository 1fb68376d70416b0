/*
 * door.h - where members on other machines knock; private to the rendezvous (see net/rendezvous.h).
 */
#ifndef SWSIM_DOOR_H
#define SWSIM_DOOR_H

#include "rendezvous.h"

/* Listens, without blocking. */
int door_socket(const struct door *door);

/* This machine, among those that a run may be on: processes that can meet by name are on one. */
void door_machine(char out[sizeof((struct meeting_place *)0)->machine]);

#endif
