/* SPDX-License-Identifier: Apache-2.0 */
/* certify_teams.c - failure safety by structure: the certificate says no more than that. */
#include "certify.h"
#include "faults.h"

enum status certify_teams(const struct certifier *certifier, struct diag *diag)
{
    const unsigned life = 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_DRAIN | 1u << PROPERTY_MISMATCH;
    bool proved, lives = (certifier->before & life) == life;
    enum status status = faults_proved_by_structure(certifier->program, lives, &proved, diag);
    if (status == STATUS_OK && proved)
        *certifier->proves = certifier->asked & proof_teams_covers(certifier->program);
    return status;
}
