# SPDX-License-Identifier: Apache-2.0
# gpu/net: where the processes of a run meet.
libnet_a_SOURCES += \
    gpu/net/broker.c \
    gpu/net/mail.c gpu/net/mail.h \
    gpu/net/rendezvous.c gpu/net/rendezvous.h \
    gpu/net/rendezvous_impl.h \
    gpu/net/rendezvous_queue.c
