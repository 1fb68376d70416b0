/* SPDX-License-Identifier: Apache-2.0 */
/*
 * documents.h - the kinds of objects that programs print as JSON.
 *
 * An object at the top says its kind and version in its first key, "schema": "swsim.verdict/1". The file
 * doc/schema/NAME.json describes the kind as JSON Schema; `swsim schema` prints it, and tests/cmd/t_schema.sh holds what the
 * commands print against it. A new key leaves the version as it is; a key that goes, or gets another type or
 * meaning, raises it. Plans have a version of their own, `swplan: 1`, and no row here.
 */
#ifndef SWSIM_DOCUMENTS_H
#define SWSIM_DOCUMENTS_H

/* X(constant, name, version, commands that print it) */
#define DOCUMENT_LIST(X)                                                                           \
    X(DOCUMENT_VERDICT, verdict, 1, "swsim verify")                                                \
    X(DOCUMENT_CHANNELS, channels, 1, "swsim verify --p2p=all, swsim predict --p2p=all")           \
    X(DOCUMENT_PREDICTION, prediction, 1, "swsim predict")                                         \
    X(DOCUMENT_TUNING, tuning, 1, "swsim tune of a pipeline or of host programs")                  \
    X(DOCUMENT_FRONTIER, frontier, 1, "swsim tune of rank programs")                               \
    X(DOCUMENT_SCHEDULE, schedule, 1, "swsim schedule")                                            \
    X(DOCUMENT_STAGES, stages, 1, "swsim stages")                                                  \
    X(DOCUMENT_LOWERED, lowered, 1, "swsim lower")                                                 \
    X(DOCUMENT_GROUPS, groups, 1, "swsim groups")                                                  \
    X(DOCUMENT_IMPORT, import, 1, "swsim import")                                                  \
    X(DOCUMENT_COMPARISON, comparison, 1, "swsim compare DB")                                      \
    X(DOCUMENT_TWO_RUNS, two_runs, 1, "swsim compare DB:RUN")                                      \
    X(DOCUMENT_EXPLANATION, explanation, 1, "swsim explain")                                       \
    X(DOCUMENT_WHY, why, 1, "swsim why of one job")                                                \
    X(DOCUMENT_RUN, run, 1, "swsim runs, one for each run")                                        \
    X(DOCUMENT_LEDGER, ledger, 1, "swsim runs --run=N")                                            \
    X(DOCUMENT_LOOK, look, 1, "swsim watch, one for each look")                                    \
    X(DOCUMENT_SCHEMAS, schemas, 1, "swsim schema")                                                \
    X(DOCUMENT_TABLES, tables, 1, "swsim schema store")                                            \
    X(DOCUMENT_MEASURED, measured, 1, "swrun")                                                     \
    X(DOCUMENT_PROGRESS, progress, 1, "swrun --progress, one for each iteration")                  \
    X(DOCUMENT_EXPOSURE, exposure, 1, "swrun --profile")                                           \
    X(DOCUMENT_REPLAYED, replayed, 1, "swrun --replay")                                            \
    X(DOCUMENT_PROOF, proof, 1, "swcheck, one for each certificate")                               \
    X(DOCUMENT_ERRORS, errors, 1, "every command that fails")

enum document {
#define X(constant, name, version, commands) constant,
    DOCUMENT_LIST(X)
#undef X
        DOCUMENT_COUNT
};

/* "swsim.verdict/1" */
#define DOCUMENT_SCHEMA(name, version) "swsim." #name "/" #version

#endif
