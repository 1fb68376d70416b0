/* SPDX-License-Identifier: Apache-2.0 */
/* models.c - the GPUs that --device=none can be: figures of NVIDIA's data sheets and of cudaGetDeviceProperties. */
#include "none.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static const struct none_model models[] = {
#define X(...) {__VA_ARGS__},
    NONE_MODEL_LIST(X)
#undef X
};

static const char *wanted(void)
{
    const char *text = getenv(NONE_VARIABLE);
    return text ? text : "h100";
}

/* `swsim record` has checked the variable. */
const struct none_model *none_model(void)
{
    const char *text = wanted();
    const size_t length = strcspn(text, ":");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strlen(models[i].key) == length && memcmp(models[i].key, text, length) == 0)
            return &models[i];
    none_missing(text, "a GPU of this name");
}

int none_devices(void)
{
    const char *number = strchr(wanted(), ':');
    const int count = number ? atoi(number + 1) : NONE_DEVICES;
    return count > 0 && count <= NONE_MOST_DEVICES ? count : NONE_DEVICES;
}

/* ---- attributes ----------------------------------------------------------------------------------- */

enum { SHARED_OF_BLOCK = 49152, WARP = 32, MOST_THREADS = 1024 };

/* Number of cudaDeviceAttr, value; `m` is the model. */
#define ATTRIBUTE_LIST(X)                                                                          \
    X(1, MOST_THREADS)                                                                             \
    X(2, 1024)                                                                                     \
    X(3, 1024)                                                                                     \
    X(4, 64)                                                                                       \
    X(5, 2147483647)                                                                               \
    X(6, 65535) X(7, 65535) X(8, SHARED_OF_BLOCK) X(9, 65536) X(10, WARP) X(11, 2147483647)        \
        X(12, 65536) X(13, m->clock_khz) X(14, 512) X(15, 1) X(16, m->multiprocessors) X(17, 0) X( \
            18, 0) X(19, 1) X(20, 0) X(21, 131072) X(22, 131072) X(23, 65536) X(24, 16384)         \
            X(25, 16384) X(26, 16384) X(30, 512) X(31, 1) X(32, 1) X(33, 1 + device) X(34, 0) X(   \
                35, 0) X(36, m->memory_clock_khz) X(37, m->bus_bits) X(38, (int)m->l2) X(39, 2048) \
                X(40, 3) X(41, 1) X(50, 0) X(51, 32) X(75, m->major) X(76, m->minor) X(78, 1)      \
                    X(79, 1) X(80, 1) X(81, m->shared_of_multiprocessor) X(82, 65536) X(83, 1)     \
                        X(84, 0) X(85, device) X(86, 0) X(87, 2) X(88, 0) X(89, 1) X(90, 1)        \
                            X(91, 1) X(92, 0) X(93, 1) X(94, 0) X(95, 1) X(96, 1)                  \
                                X(97, m->shared_optin) X(98, 0) X(99, 1) X(100, 0) X(101, 0) X(    \
                                    102, 0) X(103, 0) X(104, 0)                                    \
                                    X(105, 0) X(106, 32) X(107, 0) X(108, m->persisting_l2) X(     \
                                        109, 134217728) X(110, 0)                                  \
                                        X(111, 1024) X(112, 0) X(113, 1) X(114, 0) X(115, 1) X(    \
                                            116, 0) X(117, 0) X(118, 0)                            \
                                            X(119, 0) X(120, m->major >= 9)                        \
                                                X(121, 0) X(122, 1)                                \
                                                    X(123, 1) X(124, 0)                            \
                                                        X(125, 0) X(126, m->major >= 9 ? 4 : 1)    \
                                                            X(127, m->major >= 9) X(128, 0)        \
                                                                X(129, 1) X(130, 0)                \
                                                                    X(131, -1) X(132, 0) X(133, 0) \
                                                                        X(134, -1) X(135, 0)

int none_attribute(int attribute, int device)
{
    const struct none_model *m = none_model();
    char name[32];
    switch (attribute) {
#define X(number, value)                                                                           \
    case number: return value;
        ATTRIBUTE_LIST(X)
#undef X
    default: break;
    }
    snprintf(name, sizeof name, "device attribute %d", attribute);
    none_missing(name, "its value on this model");
}
