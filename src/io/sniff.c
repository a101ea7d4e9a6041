/* SPDX-License-Identifier: Apache-2.0 */
#include "io/sniff.h"

#include <string.h>

typedef struct magic {
    size_t at, bytes;
    const char *pattern;
    const char *found;
} magic;

#define MAGIC(at, pattern, found)                                                                  \
    {                                                                                              \
        at, sizeof(pattern) - 1, pattern, found                                                    \
    }
#define ZIP_HINT                                                                                   \
    "a ZIP archive (.pt and .bin files of PyTorch are ZIPs of pickles: pickle refused; .npz: "     \
    "archive not supported)"

static const magic magics[] = {
    MAGIC(0, "PK\003\004", ZIP_HINT),
    MAGIC(0, "PK\005\006", ZIP_HINT),
    MAGIC(0, "GGUF", "a GGUF file"),
    MAGIC(0, "\211HDF\r\n\032\n", "an HDF5 file"),
    MAGIC(0, "\037\213", "a gzip file (decompress it first)"),
    MAGIC(0, "\3757zXZ", "an xz file (decompress it first)"),
    MAGIC(0, "\050\265\057\375", "a zstd file (decompress it first)"),
    MAGIC(0, "BZh", "a bzip2 file (decompress it first)"),
    MAGIC(0, "\223NUMPY", "a NumPy .npy file"),
    MAGIC(0, "version https://git-lfs.github.com/spec/",
          "a Git LFS pointer (the file itself was not downloaded: git lfs pull)"),
    MAGIC(0, "%PDF-", "a PDF file"),
    MAGIC(257, "ustar", "a tar archive"),
};

static int is_space(unsigned char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* Bytes of white space, after a byte-order mark if there is one. */
static size_t text_begin(const unsigned char *bytes, size_t count)
{
    size_t at = count >= 3 && memcmp(bytes, "\357\273\277", 3) == 0 ? 3 : 0;
    while (at < count && is_space(bytes[at])) at++;
    return at;
}

static int begins_with(const unsigned char *bytes, size_t count, const char *lower_case)
{
    for (size_t i = 0; lower_case[i] != '\0'; i++) {
        if (i >= count) return 0;
        const unsigned char byte = bytes[i];
        const int lower = byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte;
        if (lower != lower_case[i]) return 0;
    }
    return 1;
}

static const char *sniff_text(const unsigned char *bytes, size_t count)
{
    static const char *const html[] = {"<!doctype html", "<html", "<head", "<?xml"};
    const size_t at = text_begin(bytes, count);
    for (size_t i = 0; i < sizeof html / sizeof *html; i++)
        if (begins_with(bytes + at, count - at, html[i]))
            return "an HTML page (often a server's error message saved by a download)";
    if (begins_with(bytes + at, count - at, "{\""))
        return "JSON text without the 8 bytes of the header's length";
    return NULL;
}

/* Could this be a safetensors file whose end is missing? */
static int length_is_plausible(const unsigned char *bytes, size_t count)
{
    if (count < 8 || memcmp(bytes + 4, "\0\0\0\0", 4) != 0) return 0;
    return count == 8 || is_space(bytes[8]) || bytes[8] == '{';
}

/* PROTO (0x80), a version, then an opcode; all opcodes are 0x28 or above. */
static int is_pickle(const unsigned char *bytes, size_t count)
{
    return count >= 3 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5 && bytes[2] >= 0x28 &&
           !length_is_plausible(bytes, count);
}

/* ONNX is a protobuf: field 1 (ir_version, a varint), field 2 (producer, a string). */
static int is_onnx(const unsigned char *bytes, size_t count)
{
    if (count < 6 || bytes[0] != 0x08 || bytes[1] == 0 || bytes[1] > 32 || bytes[2] != 0x12)
        return 0;
    const size_t end = 4 + (size_t)bytes[3];
    for (size_t i = 4; i < end && i < count; i++)
        if (bytes[i] < 0x20 || bytes[i] > 0x7E) return 0;
    return bytes[3] > 0 && bytes[3] < 0x80;
}

const char *locus_sniff(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        const magic *m = &magics[i];
        if (count >= m->at + m->bytes && memcmp(bytes + m->at, m->pattern, m->bytes) == 0)
            return m->found;
    }
    if (is_pickle(bytes, count)) return "a Python pickle, which can run code: pickle refused";
    if (is_onnx(bytes, count)) return "an ONNX model";
    return sniff_text(bytes, count);
}
