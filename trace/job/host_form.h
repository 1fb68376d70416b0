/* SPDX-License-Identifier: Apache-2.0 */
/* host_form.h - the threads of a job as a plan of host programs, whatever file they are from. */
#ifndef SWSIM_HOST_FORM_H
#define SWSIM_HOST_FORM_H

#include "job.h"

/* Takes the plan out of the job, with the job's threads in it. The caller ends *out with plan_fini; set on success only.
   Fails without memory. */
enum status host_form(struct job *job, struct plan *out, struct diag *diag);

#endif
