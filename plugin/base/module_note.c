/* Reads the note of a module file. The file may be anything, so every offset is checked against its size before it is
 * used, and the numbers of headers and notes are limited.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/module_note.h"

#include "base/error.h"
#include "base/file.h"
#include "base/processor.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADERS_MOST = 64, NOTES_MOST = 64 };

static const char note_owner[8] = GRAFT_MODULE_NOTE_OWNER;

struct elf_file {
    int      fd;
    uint64_t bytes;
};

/* A range of bytes of the file that holds notes. */
struct note_range {
    uint64_t at, end, alignment;
};

/* \return 0 if the bytes are not all in the file */
static int read_at(const struct elf_file *file, uint64_t at, void *to, uint64_t bytes)
{
    char *next = to;

    if (at > file->bytes || bytes > file->bytes - at) return 0;
    while (bytes > 0) {
        const ssize_t got = pread(file->fd, next, bytes, (off_t)at);

        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        next += got;
        at += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    return 1;
}

/* Opening does not wait for the other end of a pipe. */
static int32_t open_elf(struct elf_file *file, const char *path, graft_error *error)
{
    struct stat about;

    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file->fd < 0)
        return gr_fail_native(error, GRAFT_ERR_MODULE, errno, "it cannot be opened: %s", gr_file_errno_text(errno));
    if (fstat(file->fd, &about) != 0 || !S_ISREG(about.st_mode)) return gr_fail(error, GRAFT_ERR_MODULE, "not a file");
    file->bytes = (uint64_t)about.st_size;
    return GRAFT_OK;
}

/* The header of this library defines the properties of a loadable library. */
static int32_t check_header(const struct elf_file *file, ElfW(Ehdr) * header, graft_error *error)
{
    const ElfW(Ehdr) * own;
    Dl_info info;

    if (!read_at(file, 0, header, sizeof *header) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return gr_fail(error, GRAFT_ERR_MODULE, "not a shared library");
    if (dladdr((void *)(uintptr_t)&gr_module_note_read, &info) == 0) return GRAFT_OK;
    own = info.dli_fbase;
    if (header->e_ident[EI_CLASS] != own->e_ident[EI_CLASS] || header->e_ident[EI_DATA] != own->e_ident[EI_DATA] ||
        header->e_machine != own->e_machine)
        return gr_fail(error, GRAFT_ERR_MODULE,
                       "it is for another processor: %s bits and ELF machine %u, this library has %d bits and %u",
                       header->e_ident[EI_CLASS] == ELFCLASS64 ? "64" : "32", header->e_machine,
                       (int)sizeof(void *) * 8, own->e_machine);
    if (header->e_type != ET_DYN || header->e_phentsize != sizeof(ElfW(Phdr)))
        return gr_fail(error, GRAFT_ERR_MODULE, "not a shared library");
    if (header->e_phnum > HEADERS_MOST)
        return gr_fail(error, GRAFT_ERR_MODULE, "it has more than %d program headers", HEADERS_MOST);
    return GRAFT_OK;
}

static int text_ends(const char *text, size_t capacity)
{
    return text[0] != '\0' && memchr(text, '\0', capacity) != NULL;
}

static int32_t read_note(const struct elf_file *file, uint64_t at, uint64_t bytes, graft_module_note *note,
                         graft_error *error)
{
    graft_module_note found = { .size = 0 };

    if (!read_at(file, at, &found, bytes < sizeof found ? bytes : sizeof found) || found.size > bytes ||
        found.size < GRAFT_HAS(graft_module_note, name) || found.abi_min > found.abi_max ||
        !text_ends(found.kind, sizeof found.kind) || !text_ends(found.name, sizeof found.name))
        return gr_fail(error, GRAFT_ERR_MODULE, "its note is damaged");
    *note = found;
    return 1;
}

static uint64_t padded(uint64_t bytes, uint64_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

/* Look for the note in a range. All sizes of a note have 32 bits, so their sums fit. */
static int32_t search_range(const struct elf_file *file, struct note_range range, graft_module_note *note,
                            graft_error *error)
{
    struct {
        uint32_t owner_bytes, bytes, type;
    } head;

    for (int i = 0; i < NOTES_MOST && range.at < range.end && range.end - range.at >= sizeof head; i++) {
        char     owner[sizeof note_owner];
        uint64_t inside, whole;

        if (!read_at(file, range.at, &head, sizeof head)) break;
        inside = padded(sizeof head + (uint64_t)head.owner_bytes, range.alignment);
        whole = padded(inside + head.bytes, range.alignment);
        if (inside + head.bytes > range.end - range.at) break;
        if (head.type == GRAFT_MODULE_NOTE_TYPE && head.owner_bytes == strlen(note_owner) + 1 &&
            read_at(file, range.at + sizeof head, owner, sizeof owner) &&
            memcmp(owner, note_owner, head.owner_bytes) == 0)
            return read_note(file, range.at + inside, head.bytes, note, error);
        range.at += whole;
    }
    return 0;
}

static int32_t search_file(const struct elf_file *file, const ElfW(Ehdr) * header, graft_module_note *note,
                           graft_error *error)
{
    int32_t rc = 0;

    for (uint64_t i = 0; i < header->e_phnum && rc == 0; i++) {
        ElfW(Phdr) segment;

        if (header->e_phoff > file->bytes ||
            !read_at(file, header->e_phoff + i * sizeof segment, &segment, sizeof segment))
            return gr_fail(error, GRAFT_ERR_MODULE, "it ends before its program headers");
        if (segment.p_type != PT_NOTE) continue;
        if (segment.p_offset > file->bytes || segment.p_filesz > file->bytes - segment.p_offset)
            return gr_fail(error, GRAFT_ERR_MODULE, "it ends before its notes");
        rc = search_range(
            file,
            (struct note_range){ segment.p_offset, segment.p_offset + segment.p_filesz, segment.p_align == 8 ? 8 : 4 },
            note, error);
    }
    return rc;
}

int32_t gr_module_note_read(const char *path, graft_module_note *note, graft_error *error)
{
    struct elf_file file = { .fd = -1 };
    int32_t         rc;
    ElfW(Ehdr) header;

    GR_TRY(open_elf(&file, path, error));
    GR_TRY(check_header(&file, &header, error));
    GR_TRY(search_file(&file, &header, note, error));
done:
    if (file.fd >= 0) close(file.fd);
    return rc;
}

int32_t gr_module_note_check(const graft_module_note *note, graft_error *error)
{
    if (note->abi_min > GRAFT_ABI_VERSION || note->abi_max < GRAFT_ABI_VERSION)
        return gr_fail(error, GRAFT_ERR_VERSION, "needs contract %u to %u, this library has %u", note->abi_min,
                       note->abi_max, GRAFT_ABI_VERSION);
    if (note->cpu_level > (uint32_t)gr_processor_level())
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "needs a processor of level %u, this one has level %d",
                       note->cpu_level, gr_processor_level());
    return GRAFT_OK;
}
