/* cubin.c - reads a kernel's registers, local and shared memory and code size from a CUBIN.
 *
 * A CUBIN is an ELF file (System V ABI, chapters "Object Files" and "Sections"; /usr/include/elf.h declares its records). For kernel K,
 * section .text.K has the code, section .nv.shared.K has the size of the static shared memory, and .nv.info has facts about all functions,
 * as a list of records
 *
 *     u8 format, u8 attribute, u16 size or value; with format 4 the payload, `size` bytes, follows
 *
 * where payloads of 8 bytes are {u32 symbol, u32 value}. NVIDIA does not document the records; the numbers here are those that CUDA 11 to
 * 13 write. The file may be damaged: every offset is checked before it is followed, and records are copied, so that they need not be
 * aligned. */
#include "codegen/compile.h"

#include <elf.h>

enum {
    CUDA_MACHINE = 190, /* value of e_machine in an ELF file with code for a GPU (EM_CUDA) */
    INFO_FORMAT_SIZED = 4,
    INFO_FRAME_SIZE = 0x11,
    INFO_STACK_SIZE = 0x12, /* number of the record with the stack size of the deepest chain of calls */
    INFO_REGISTERS = 0x2f,
    RESERVED_SHARED_BYTES = 1024 /* the system's own bytes: CUDA C++ Programming Guide, "Shared Memory" of 9.x */
};
#define INFO_SECTION_TYPE 0x70000000u

/* An ELF file in memory, and its section and symbol tables. */
typedef struct elf {
    const unsigned char *bytes;
    uint64_t size;
    uint64_t sections; /* offset of the section table */
    uint32_t n_sections;
    Elf64_Shdr names, symbols, symbol_names;
} elf;

/* Copies `bytes` bytes at offset `at` of the file to *record. Returns false if they are not entirely inside the file. */
static bool fetch(const elf *e, uint64_t at, void *record, size_t bytes) {
    if (at > e->size || e->size - at < bytes) return false;
    memcpy(record, e->bytes + at, bytes);
    return true;
}

static bool fetch_section(const elf *e, uint32_t i, Elf64_Shdr *s) {
    return i < e->n_sections && fetch(e, e->sections + (uint64_t)i * sizeof *s, s, sizeof *s);
}

static bool lies_inside(const elf *e, const Elf64_Shdr *s) {
    return s->sh_offset <= e->size && s->sh_size <= e->size - s->sh_offset;
}

/* Returns whether the zero-terminated text at offset `at` of a string table is `prefix` followed by `rest`. */
static bool text_is(const elf *e, const Elf64_Shdr *table, uint64_t at, const char *prefix, const char *rest) {
    const size_t first = strlen(prefix), second = strlen(rest);
    if (at > table->sh_size || table->sh_size - at <= first + second) return false;
    const unsigned char *text = e->bytes + table->sh_offset + at;
    return memcmp(text, prefix, first) == 0 && memcmp(text + first, rest, second) == 0 && text[first + second] == 0;
}

/* Finds the section with the name `prefix` followed by `rest` and this type (0: any). Returns false if there is none. */
static bool find_section(const elf *e, const char *prefix, const char *rest, uint32_t type, Elf64_Shdr *s) {
    for (uint32_t i = 0; fetch_section(e, i, s); i++) {
        if ((type == 0 || s->sh_type == type) && text_is(e, &e->names, s->sh_name, prefix, rest)) return true;
    }
    return false;
}

static vpps_status fail_format(const char *what) { return vpps_fail(VPPS_FORMAT, "CUBIN: %s", what); }

static vpps_status open_elf(elf *e, const void *bytes, size_t size) {
    Elf64_Ehdr header;
    *e = (elf){.bytes = bytes, .size = size};
    if (!fetch(e, 0, &header, sizeof header)) return fail_format("is shorter than its header");
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != CUDA_MACHINE)
        return fail_format("is not a 64-bit CUDA ELF file");
    if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > size ||
        (size - header.e_shoff) / sizeof(Elf64_Shdr) < header.e_shnum)
        return fail_format("its table of sections does not lie in it");
    e->sections = header.e_shoff;
    e->n_sections = header.e_shnum;
    if (!fetch_section(e, header.e_shstrndx, &e->names) || !lies_inside(e, &e->names))
        return fail_format("the names of its sections do not lie in it");
    if (!find_section(e, ".symtab", "", SHT_SYMTAB, &e->symbols) || !lies_inside(e, &e->symbols) ||
        !fetch_section(e, e->symbols.sh_link, &e->symbol_names) || !lies_inside(e, &e->symbol_names))
        return fail_format("has no table of symbols");
    return VPPS_OK;
}

/* Finds the number of a function's symbol, and the section with its code. */
static vpps_status find_function(const elf *e, const char *name, uint32_t *symbol, Elf64_Shdr *code) {
    const uint64_t n = e->symbols.sh_size / sizeof(Elf64_Sym);
    for (uint64_t i = 0; i < n && i <= UINT32_MAX; i++) {
        Elf64_Sym s;
        if (!fetch(e, e->symbols.sh_offset + i * sizeof s, &s, sizeof s)) break;
        if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || !text_is(e, &e->symbol_names, s.st_name, name, "")) continue;
        if (!fetch_section(e, s.st_shndx, code) || !lies_inside(e, code) || code->sh_size > UINT32_MAX)
            return fail_format("its code does not lie in it");
        *symbol = (uint32_t)i;
        return VPPS_OK;
    }
    return vpps_fail(VPPS_FORMAT, "CUBIN: has no function '%.100s'", name);
}

static vpps_status read_info(const elf *e, uint32_t symbol, vpps_cubin_report *report) {
    Elf64_Shdr s;
    bool counted = false;
    if (!find_section(e, ".nv.info", "", INFO_SECTION_TYPE, &s) || !lies_inside(e, &s))
        return fail_format("has no section .nv.info");
    const uint64_t end = s.sh_offset + s.sh_size;
    for (uint64_t at = s.sh_offset; at < end;) {
        struct {
            uint8_t format, attribute;
            uint16_t size;
        } head;
        uint32_t payload[2];
        if (end - at < sizeof head || !fetch(e, at, &head, sizeof head)) return fail_format("its .nv.info is cut");
        at += sizeof head;
        if (head.format != INFO_FORMAT_SIZED) continue;
        if (end - at < head.size) return fail_format("its .nv.info is cut");
        if (head.size == sizeof payload && fetch(e, at, payload, sizeof payload) && payload[0] == symbol) {
            if (head.attribute == INFO_REGISTERS) {
                report->registers = payload[1];
                counted = true;
            } else if (head.attribute == INFO_FRAME_SIZE || head.attribute == INFO_STACK_SIZE) {
                report->frame_bytes = vpps_max_u32(report->frame_bytes, payload[1]);
            }
        }
        at += head.size;
    }
    return counted ? VPPS_OK : fail_format("does not say how many registers the function needs");
}

/* Reads the size of the function's static shared memory. From sm_90 on, the section includes the bytes that the system reserves if a
 * section for reserved bytes exists. */
static vpps_status read_shared(const elf *e, const char *entry, vpps_cubin_report *report) {
    Elf64_Shdr s, reserved;
    report->shared_bytes = 0;
    if (!find_section(e, ".nv.shared.", entry, 0, &s)) return VPPS_OK;
    if (s.sh_size > UINT32_MAX) return fail_format("its shared memory is larger than any");
    report->shared_bytes = (uint32_t)s.sh_size;
    if (report->shared_bytes >= RESERVED_SHARED_BYTES && find_section(e, ".nv.shared.reserved.0", "", 0, &reserved))
        report->shared_bytes -= RESERVED_SHARED_BYTES;
    return VPPS_OK;
}

vpps_status vpps_cubin_inspect(const void *cubin, size_t bytes, const char *entry, vpps_cubin_report *report) {
    elf e;
    uint32_t symbol = 0;
    Elf64_Shdr code = {0};
    vpps_cubin_report found = *report; /* *report changes only on success */
    found.registers = found.frame_bytes = 0;
    VPPS_TRY(open_elf(&e, cubin, bytes));
    VPPS_TRY(find_function(&e, entry, &symbol, &code));
    VPPS_TRY(read_info(&e, symbol, &found));
    VPPS_TRY(read_shared(&e, entry, &found));
    found.code_bytes = (uint32_t)code.sh_size;
    *report = found;
    return VPPS_OK;
}
