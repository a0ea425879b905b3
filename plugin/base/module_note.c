/* Finds the note of a module in the bytes of its file. Offsets in the file are not used, because the file may be
 * damaged.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/module.h"
#include "base/processor.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>

/* Linkers put notes at the beginning of a file, but tools that change files may move them. */
enum { PIECE = 16384, SEARCHED_MOST = 1 << 26 };

/* The bytes that precede the note in the file (GRAFT_MODULE_NOTE). */
static const struct mark {
    uint32_t type;
    char     owner[8];
} note_mark = { GRAFT_MODULE_NOTE_TYPE, GRAFT_MODULE_NOTE_OWNER };

/* Check that a file is a shared library for the processor of this library, whose own header serves as the example. */
static int32_t check_header(const ElfW(Ehdr) * header, graft_error *error)
{
    const ElfW(Ehdr) * own;
    Dl_info info;

    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return gr_fail(error, GRAFT_ERR_MODULE, "not a shared library");
    if (dladdr((void *)(uintptr_t)&gr_module_note_read, &info) == 0) return GRAFT_OK;
    own = info.dli_fbase;
    if (memcmp(header->e_ident, own->e_ident, EI_DATA + 1) != 0 || header->e_machine != own->e_machine)
        return gr_fail(error, GRAFT_ERR_MODULE,
                       "it is for another processor: %s bits and ELF machine %u, this library has %d bits and %u",
                       header->e_ident[EI_CLASS] == ELFCLASS64 ? "64" : "32", header->e_machine,
                       (int)sizeof(void *) * 8, own->e_machine);
    return header->e_type == ET_DYN ? GRAFT_OK : gr_fail(error, GRAFT_ERR_MODULE, "not a shared library");
}

static int text_ends(const char *text, size_t capacity)
{
    return text[0] != '\0' && memchr(text, '\0', capacity) != NULL;
}

/* Check the values of a note. \return 1; ERR_MODULE */
static int32_t check_note(const graft_module_note *note, graft_error *error)
{
    if (note->size < GRAFT_HAS(graft_module_note, name) || note->abi_min > note->abi_max ||
        !text_ends(note->kind, sizeof note->kind) || !text_ends(note->name, sizeof note->name))
        return gr_fail(error, GRAFT_ERR_MODULE, "its note is damaged");
    return 1;
}

/* Read a file in pieces and search each. Pieces overlap, so that every note is complete in one of them. */
static int32_t search_file(const struct gr_file *file, graft_module_note *note, graft_error *error)
{
    const int64_t             whole = sizeof note_mark + sizeof *note;
    _Alignas(ElfW(Ehdr)) char piece[PIECE] = { 0 };
    int32_t                   rc = 0;

    for (int64_t at = 0; rc == 0 && at < SEARCHED_MOST && at <= file->size; at += PIECE - whole) {
        const int64_t bytes = file->size - at < PIECE ? file->size - at : PIECE;
        const char   *mark;

        GR_TRY_DONE(gr_file_read(file, at, piece, bytes, error));
        if (at == 0) GR_TRY_DONE(check_header((const void *)piece, error));
        mark = memmem(piece, (size_t)bytes, &note_mark, sizeof note_mark);
        if (mark == NULL || mark - piece > bytes - whole) continue;
        memcpy(note, mark + sizeof note_mark, sizeof *note);
        rc = check_note(note, error);
    }
done:
    return rc;
}

int32_t gr_module_note_read(const char *path, graft_module_note *note, graft_error *error)
{
    const char    *slash = strrchr(path, '/');
    struct gr_file file;
    int32_t        rc;

    GR_TRY_DONE(gr_file_open(&file, AT_FDCWD, path, slash != NULL ? slash + 1 : path, error));
    GR_TRY_DONE(search_file(&file, note, error));
done:
    gr_file_close(&file);
    if (rc < 0) error->code = rc = GRAFT_ERR_MODULE;
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
