/* SPDX-License-Identifier: Apache-2.0 */
/* t_hash.c - the hash of names from outside: the vectors of its authors, and a key that differs between processes. */
#include <sys/wait.h>
#include <unistd.h>

#include "base/keyed_hash.h"
#include "tests/tap.h"

/* Appendix A of the paper, and the list of its authors' program: bytes 0, 1, 2... under the key 0, 1, 2... */
static void test_vectors(void)
{
    static const struct {
        size_t length;
        uint64_t hash;
    } vectors[] = {
        {0, UINT64_C(0x726fdb47dd0e0e31)},
        {1, UINT64_C(0x74f839c593dc67fd)},
        {8, UINT64_C(0x93f5f5799a932462)},
        {15, UINT64_C(0xa129ca6149be45e5)},
    };
    static const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    unsigned char bytes[16];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        tap_ok(keyed_hash_with(key, bytes, vectors[i].length) == vectors[i].hash,
               "SipHash-2-4 of %zu bytes", vectors[i].length);
}

/* The hash of a name as this program has it when it is started once more. */
static uint64_t hash_elsewhere(void)
{
    uint64_t hash = 0;
    int ends[2];
    if (pipe(ends) != 0)
        return 0;
    if (fork() == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "t_hash", "hash", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    if (read(ends[0], &hash, sizeof hash) != (ssize_t)sizeof hash)
        hash = 0;
    close(ends[0]);
    wait(NULL);
    return hash;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        const uint64_t hash = keyed_hash("name", 4);
        return write(STDOUT_FILENO, &hash, sizeof hash) == (ssize_t)sizeof hash ? 0 : 1;
    }
    test_vectors();
    uint64_t one = hash_elsewhere(), other = hash_elsewhere();
    tap_ok(one && other && one != other, "two processes have two keys");
    tap_ok(keyed_hash("name", 4) == keyed_hash("name", 4), "one process has one");
    return tap_done();
}
