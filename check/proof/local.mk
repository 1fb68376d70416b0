# SPDX-License-Identifier: Apache-2.0
# check/proof: certificates, and whether they hold: all that swcheck has besides the lowering.
libproof_a_SOURCES += \
    check/proof/certificate.c check/proof/certificate.h \
    check/proof/lists.h \
    check/proof/proof.c check/proof/proof.h \
    check/proof/proof_paths.c \
    check/proof/proof_run.c \
    check/proof/proof_states.c \
    check/proof/proof_structure.c \
    check/proof/proof_teams.c \
    check/proof/proof_traffic.c \
    check/proof/run_graph.c check/proof/run_graph.h \
    check/proof/structure.h
