/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a transformer as costs of its layers, by the published formulas.
 *
 * Activations: Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models": a layer keeps
 * sbh(34 + 5as/h) bytes in half precision, of which tensor parallelism t divides sbh(24 + 5as/h), sequence parallelism
 * all; selective recomputation leaves out the 5as/h, full recomputation keeps the input, 2sbh. Parameters: 12h^2 a layer;
 * 2 bytes each, 4 for the gradient, 12 for Adam and the master copy, which a distributed optimizer divides. Operations:
 * Narayanan et al. 2021, 24bsh^2 + 4bs^2h forward. An MLP of another width, and experts, change their share of these.
 * Gated MLP: Shazeer 2020, "GLU Variants Improve Transformer", a third matrix of the same size; it keeps the outputs of two
 * and the input of the third, and computes the product once more. Keys and values of fewer heads: Ainslie et al. 2023, "GQA".
 */
#ifndef SWSIM_MODEL_H
#define SWSIM_MODEL_H

#include "costs.h"

/* The bytes of the output of a layer on a rank: of a message between stages. */
int64_t model_message_bytes(const struct model_spec *model);
/* The whole of it, without the division of sequence parallelism: what a tensor-parallel group puts together. */
int64_t model_layer_bytes(const struct model_spec *model);
/* The keys and values that a rank has of its part of the sequence, and the queries. */
int64_t model_kv_bytes(const struct model_spec *model);
int64_t model_query_bytes(const struct model_spec *model);

/* The costs of each layer, embedding and head in a model of so many stages, where `out` says nothing yet; items from the
   arena. False: no memory. */
bool model_fill(const struct model_spec *model, int stages, struct arena *arena,
                struct layers *out);

#endif
