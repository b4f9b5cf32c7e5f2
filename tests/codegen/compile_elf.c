/* compile_elf.c - see compile_elf.h. */
#include "compile_elf.h"

#include <elf.h>

/* A file that grows; sections are entered as their content is written. */
typedef struct writer {
    unsigned char *bytes;
    size_t n;
    Elf64_Shdr sections[16];
    uint16_t n_sections;
    char names[512];
    size_t names_bytes;
} writer;

static void put(writer *w, const void *bytes, size_t n) {
    if (w->n + n > COMPILE_ELF_BYTES) abort();
    memcpy(w->bytes + w->n, bytes, n);
    w->n += n;
}

static Elf64_Shdr *add_section(writer *w, const char *name, uint32_t type, const void *bytes, size_t n) {
    Elf64_Shdr *s = &w->sections[w->n_sections++];
    *s = (Elf64_Shdr){.sh_name = (uint32_t)w->names_bytes, .sh_type = type, .sh_offset = w->n, .sh_size = n};
    w->names_bytes += (size_t)snprintf(w->names + w->names_bytes, sizeof w->names - w->names_bytes, "%s", name) + 1;
    if (type != SHT_NOBITS && n > 0) put(w, bytes, n);
    return s;
}

/* Records of another function, and in other formats, lie between those that count. */
static size_t make_info(const compile_elf *e, unsigned char *info) {
    const struct {
        uint8_t attribute;
        uint32_t value;
    } facts[] = {{0x2f, e->registers}, {0x11, e->frame_bytes}, {0x12, e->stack_bytes}};
    size_t n = 0;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const uint32_t other[] = {0x00080004 | (uint32_t)facts[i].attribute << 8, 1, 99};
        const uint32_t own[] = {0x00080004 | (uint32_t)facts[i].attribute << 8, 2, facts[i].value};
        const uint32_t value_only = 0x00ff1b03, longer[] = {0x000c1704, 2, 7, 7};
        memcpy(info + n, other, sizeof other);
        n += sizeof other;
        memcpy(info + n, &value_only, sizeof value_only);
        n += sizeof value_only;
        memcpy(info + n, longer, sizeof longer);
        n += sizeof longer;
        if (facts[i].value == UINT32_MAX) continue;
        memcpy(info + n, own, sizeof own);
        n += sizeof own;
    }
    return n;
}

size_t compile_elf_write(const compile_elf *e, unsigned char bytes[COMPILE_ELF_BYTES]) {
    static const unsigned char code[1024];
    writer w = {.bytes = bytes};
    Elf64_Ehdr header = {.e_type = ET_EXEC, .e_machine = 190, .e_shentsize = sizeof(Elf64_Shdr)};
    char strings[128] = "", name[128];
    unsigned char info[256];
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    put(&w, &header, sizeof header);
    add_section(&w, "", SHT_NULL, NULL, 0);

    const size_t strings_bytes = 1 + (size_t)snprintf(strings + 1, sizeof strings - 1, "other%c%s", 0, e->function) + 1;
    add_section(&w, ".strtab", SHT_STRTAB, strings, strings_bytes);
    snprintf(name, sizeof name, ".text.%s", e->function);
    add_section(&w, name, SHT_PROGBITS, code, e->code_bytes);
    const Elf64_Sym symbols[] = {
        {0},
        {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 2},
        {.st_name = 7, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 2},
    };
    add_section(&w, ".symtab", SHT_SYMTAB, symbols, sizeof symbols)->sh_link = 1;
    add_section(&w, ".nv.info", 0x70000000, info, make_info(e, info) - e->info_cut);
    snprintf(name, sizeof name, ".nv.shared.%s", e->function);
    if (e->shared_bytes != UINT32_MAX) add_section(&w, name, SHT_NOBITS, NULL, e->shared_bytes);
    if (e->reserved) add_section(&w, ".nv.shared.reserved.0", SHT_NOBITS, NULL, 0);
    header.e_shstrndx = w.n_sections;
    Elf64_Shdr *names = add_section(&w, ".shstrtab", SHT_STRTAB, NULL, 0);
    names->sh_size = w.names_bytes;
    const size_t table_bytes = w.n_sections * sizeof *w.sections;
    if (e->names_last) names->sh_offset += table_bytes;
    header.e_shoff = w.n + (e->names_last ? 0 : w.names_bytes);
    header.e_shnum = w.n_sections;
    if (e->names_last) put(&w, w.sections, table_bytes);
    put(&w, w.names, w.names_bytes);
    if (!e->names_last) put(&w, w.sections, table_bytes);
    memcpy(bytes, &header, sizeof header);
    return w.n;
}
