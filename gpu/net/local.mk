# SPDX-License-Identifier: Apache-2.0
# gpu/net: where the processes of a run meet.
libnet_a_SOURCES += \
    gpu/net/address.c gpu/net/address.h \
    gpu/net/broker.c \
    gpu/net/broker_far.c \
    gpu/net/broker_impl.h \
    gpu/net/far_clock.c gpu/net/far_clock.h \
    gpu/net/listener.c gpu/net/listener.h \
    gpu/net/mail.c gpu/net/mail.h \
    gpu/net/rendezvous.c gpu/net/rendezvous.h \
    gpu/net/rendezvous_bytes.c \
    gpu/net/rendezvous_far.c \
    gpu/net/rendezvous_impl.h \
    gpu/net/rendezvous_queue.c
