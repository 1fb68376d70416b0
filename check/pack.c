/* pack.c - see pack.h. */
#include "pack.h"

#include <string.h>

size_t pack_bound(const struct program *program)
{
    return program->at.bytes / 4 * 5 + 16;
}

static unsigned char *put_varint(unsigned char *out, uint32_t value)
{
    while (value >= 0x80) {
        *out++ = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    *out++ = (unsigned char)value;
    return out;
}

static const unsigned char *get_varint(const unsigned char *in, uint32_t *value)
{
    uint32_t result = 0;
    int shift = 0;
    for (; *in & 0x80; in++, shift += 7)
        result |= (uint32_t)(*in & 0x7f) << shift;
    *value = result | (uint32_t)*in++ << shift;
    return in;
}

static uint32_t zigzag(int32_t value)
{
    return (uint32_t)value << 1 ^ (uint32_t) - (value < 0);
}

static int32_t unzigzag(uint32_t value)
{
    return (int32_t)(value >> 1 ^ (0u - (value & 1)));
}

size_t pack_state(const struct program *program, const struct state *state, unsigned char *out)
{
    const int32_t *words = state->cells;
    size_t count = program->at.bytes / sizeof *words;
    unsigned char *start = out;
    for (size_t i = 0; i < count;) {
        if (words[i] != 0) {
            out = put_varint(out, zigzag(words[i++]));
            continue;
        }
        size_t first = i;
        while (i < count && words[i] == 0)
            i++;
        *out++ = 0;
        out = put_varint(out, (uint32_t)(i - first));
    }
    return (size_t)(out - start);
}

void pack_expand(const struct program *program, const unsigned char *packed, struct state *out)
{
    int32_t *words = out->cells;
    size_t count = program->at.bytes / sizeof *words;
    for (size_t i = 0; i < count;) {
        uint32_t value;
        packed = get_varint(packed, &value);
        if (value != 0) {
            words[i++] = unzigzag(value);
            continue;
        }
        packed = get_varint(packed, &value);
        memset(words + i, 0, value * sizeof *words);
        i += value;
    }
}
