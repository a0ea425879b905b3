# SPDX-License-Identifier: Apache-2.0
"""Reads the contract in abi/ as lines of text that can be compared. One list has the offsets of fields; the other
has what does not depend on the processor, such as types, enum values, macros, tags of calls and options. headers.py
reads the headers, and compilers measure the offsets and confirm what it has read."""
import os
import re
import tempfile

import compilers
import headers

ANSWER = re.compile(r'^\s*\.ascii\s+"->(\S+) ([-\d ]+)"', re.MULTILINE)
ENUM = re.compile(r"\benum\s*\{([^}]*)\}")
ENUMERATOR = re.compile(r"(?:^|,)\s*(GRAFT_\w+)")
MACRO = re.compile(r"^#(define|undef) (GRAFT_\w+)(\([^)]*\))?[ \t]*(.*)$", re.MULTILINE)
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PLUGIN = os.path.join(ROOT, "plugin")
OPTION_PROGRAM = """
#include "base/option_row.h"
#include <stdio.h>
extern const struct gr_option_list gr_all_options;
int main(void) {
    static const char *const types[] = { "choice", "integer", "number", "widths", "text", "pair", "form" };
    static const char *const scopes[] = { "same", "each", "root" };
    for (int32_t t = 0; t < gr_all_options.n_tables; t++) {
        const struct gr_option_table *table = gr_all_options.tables[t].table;
        for (const struct gr_option_row *row = table->rows; row < table->rows + table->count; row++) {
            printf("option %s: %s, %s\\n", row->key, types[row->type], scopes[row->scope]);
            if (row->flags & GR_LIVE) printf("option %s: live\\n", row->key);
            if (row->type == GR_TYPE_CHOICE || row->type == GR_TYPE_PAIR || row->type == GR_TYPE_FORM)
                printf("words %s: %s\\n", row->key, row->domain);
        }
    }
    return 0;
}
"""


class Refused(Exception):
    """The error that a compiler does not accept the headers, with its message."""


def source(found, lines):
    return "\n".join([f'#include "{header.name}"' for header in found] + list(lines) + [""])


def compile_text(compiler, language, folder, text, *options):
    good, said = compilers.run([compiler, "-w", "-I", folder, "-x", language, *options, "-o", "-", "-"], text)
    if not good:
        raise Refused(said[-2000:])
    return said


def ask(compiler, language, folder, found, questions):
    """Let a compiler compute the expressions of each question. The numbers are read from its assembler output, so
    that nothing has to run and a cross compiler can be used."""
    lines = [f'__asm__ volatile(".ascii \\"->{name} {" ".join(f"%c{i}" for i in range(len(values)))}\\"" :: '
             + ", ".join(f'"i"((long)({value}))' for value in values) + ");" for name, *values in questions]
    said = compile_text(compiler, language, folder, source(found, ["void ask(void) {", *lines, "}"]), "-S")
    answers = [[name, *numbers.split()] for name, numbers in ANSWER.findall(said)]
    if [answer[0] for answer in answers] != [question[0] for question in questions]:
        raise Refused(f"{compiler} answered {len(answers)} of {len(questions)} questions")
    return answers


def layout_questions(found):
    for header in found:
        for struct, fields in header.structs.items():
            yield struct, "0", f"sizeof({struct})"
            for field in fields:
                yield (f"{struct}.{field.name}", f"offsetof({struct}, {field.name})",
                       f"sizeof((({struct} *)0)->{field.name})")


def layout(compiler, language, folder):
    """The list [NAME, OFFSET, SIZE] of all structs, each followed by its fields."""
    found = headers.read_all(folder)
    return ask(compiler, language, folder, found, list(layout_questions(found)))


def named(meaning, name):
    """A declaration with a name; the inverse of without_name() in headers.py."""
    if "(*)" in meaning:
        return meaning.replace("(*)", f"(*{name})", 1)
    base, bracket, dimension = meaning.partition("[")
    return f"{base} {name}{bracket}{dimension}"


def check_types(compiler, folder):
    """Let a C compiler compare every type with what was read from the headers."""
    found = headers.read_all(folder)
    things = [(f"(({field.struct} *)0)->{field.name}", field.whole) for header in found
              for fields in header.structs.values() for field in fields]
    things += [(f"*(({name} *)0)", meaning) for header in found for name, meaning in header.types.items()
               if not meaning.startswith("struct ")]
    lines = [f"typedef {named(meaning, f't{i}')};\n_Static_assert(_Generic(&({thing}), t{i} *: 1, default: 0), "
             f'"{thing} is no {meaning}");' for i, (thing, meaning) in enumerate(things)]
    lines += [f"_Static_assert(_Generic(&{function.name}, {function.whole}: 1, default: 0), "
              f'"{function.name} is no {function.whole}");' for header in found for function in header.functions]
    lines += [f"typedef struct {name} *s_{name};\n_Static_assert(_Generic(({name} *)0, s_{name}: 1, default: 0), "
              f'"{name}");' for header in found for name, meaning in header.types.items()
              if meaning.startswith("struct ")]
    compile_text(compiler, "c", folder, source(found, lines), "-S")
    return len(lines)


def type_lines(found):
    for header in found:
        for name, meaning in header.types.items():
            yield f"type {name}: {meaning}"
        for owner in [header.functions, *header.structs.values()]:
            for field in owner:
                name = f"{field.struct}.{field.name}".lstrip(".")
                yield f"{'call' if field.is_function else 'field'} {name}: {field.whole}"
                if field.is_function and field.tags():
                    yield f"tags {name}: {field.tags()}"


def macro_lines(text):
    macros = {}
    for kind, name, parameters, value in MACRO.findall(text):
        macros.pop(name, None)
        if kind == "define" and (parameters or value):
            macros[name] = f"({parameters[1:-1]})" if parameters else value
    yield from (f"macro {name}: {value}" for name, value in macros.items())


def enumerators(text):
    return [name for body in ENUM.findall(re.sub(r"^#.*$", "", text, flags=re.MULTILINE))
            for name in ENUMERATOR.findall(body)]


def option_files(name):
    """The paths of the files options.h or options.c of all rooms, relative to plugin/."""
    return sorted(os.path.join(room, name) for room in os.listdir(PLUGIN)
                  if os.path.isfile(os.path.join(PLUGIN, room, name)))


def options(folder, changed=None):
    """The lines about options: name, type and scope, one more line if an option is live, and one for every word that
    it accepts. `changed` maps a file of plugin/ to the text that replaces it. Functions of the library are neither
    linked nor called."""
    with tempfile.TemporaryDirectory(prefix="graft-options-") as work:
        binary = os.path.join(work, "options")
        for name, text in (changed or {}).items():
            os.makedirs(os.path.join(work, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(work, name), "w", encoding="utf-8") as file:
                file.write(text)
        files = [os.path.join(PLUGIN, name) for name in option_files("options.c")]
        good, said = compilers.run(["cc", "-w", "-D_GNU_SOURCE", "-I", work, "-I", folder, "-I", PLUGIN,
                                    "-ffunction-sections", "-Wl,--gc-sections", *files, "-x", "c", "-", "-o", binary],
                                   OPTION_PROGRAM)
        good, said = compilers.run([binary]) if good else (False, said)
    if not good:
        raise Refused(said[-2000:])
    return list(option_lines(said))


def option_lines(text):
    for line in text.splitlines():
        kind, _, words = line.partition(": ")
        if kind.startswith("words "):
            yield from (f"word {kind[6:]}={word}: legal" for word in words.split("|"))
        else:
            yield line if words != "live" else line.replace("option", "live", 1).replace(": live", ": yes")


def layout_and_promises(folder):
    """The layout() by compiler cc, and the lines of all headers. The lines of options are made by options()."""
    found = headers.read_all(folder)
    text = compile_text("cc", "c", folder, source(found, []), "-E", "-dD")
    questions, names = list(layout_questions(found)), enumerators(text)
    answers = ask("cc", "c", folder, found, questions + [(name, name) for name in names])
    values = [f"value {name}: {value}" for name, value in answers[len(questions):]]
    return answers[:len(questions)], [*type_lines(found), *macro_lines(text), *values]


def promises(folder):
    return layout_and_promises(folder)[1]


def split(line):
    return line.partition(": ")[::2]


def layout_changes(before, after):
    """Yield (whether the change is additive, sentence) for each field that a struct has lost, gained, or has at
    another offset."""
    old, new = ({row[0]: row[1:] for row in rows} for rows in (before, after))
    for name, row in old.items():
        if name not in new:
            yield False, name, "is gone"
        elif "." not in name and int(new[name][1]) > int(row[1]):
            yield True, name, f"grew from {row[1]} to {new[name][1]} bytes"
        elif new[name] != row:
            yield False, name, f"had offset and size {' '.join(row)}, and now {' '.join(new[name])}"
    for name in new:
        struct = name.split(".")[0]
        if name not in old:
            inside = struct in old and int(new[name][0]) < int(old[struct][1])
            yield not inside, name, "is new" + (" inside of a struct" if inside else "")
    if [name for name in old if name in new] != [name for name in new if name in old]:
        yield False, "the file", "has its structs or fields in another order"


def promise_changes(before, after):
    old, new = (dict(split(line) for line in lines) for lines in (before, after))
    for name, value in old.items():
        if name not in new:
            yield False, name, "is gone"
        elif new[name] != value:
            yield False, name, f"was '{value}', and is now '{new[name]}'"
    yield from ((True, name, "is new") for name in new if name not in old)
