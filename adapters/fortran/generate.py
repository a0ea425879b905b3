#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write graft.f90 from the headers of the contract and from graft.f90.in: generate.py ABI_FOLDER COMPILER...

The template is Fortran, with two additions:

    @constants, @types, @slots, @calls, @functions, @public    a line that stands for what the headers declare
    {key}   in a procedure, or in a line with bindings: repeat it for each value of the key in VARIANTS

Structs, functions and slots that the template does not name are left out. Calls in the template are compared with the
parameters that the headers declare."""
import itertools
import os
import re
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
import declarations  # noqa: E402

REALS = [{"r": "r8", "real": "real(real64)", "dtype": "GRAFT_F64", "bytes": "8", "format": "(es25.16e3)"},
         {"r": "r4", "real": "real(real32)", "dtype": "GRAFT_F32", "bytes": "4", "format": "(es16.8e2)"}]
INTEGERS = [{"i": "i4", "integer": "integer(int32)"}, {"i": "i8", "integer": "integer(int64)"}]
# Layouts of values on nodes: two orders of a two-dimensional array, or one component.
FIELDS = [{"a": "", "shape": ":, :", ", layout": "", "layout line": ""},
          {"a": "_as", "shape": ":, :", ", layout": ", layout",
           "layout line": "      type(graft_layout), intent(in) :: layout\n"},
          {"a": "_1", "shape": ":", ", layout": "", "layout line": ""}]
VECTORS = [{"v": "", "dims": ":, :"}, {"v": "_1", "dims": ":"}]
ADDRESSES = [{"t": name, "type": kind} for name, kind in [("i1", "integer(int8)"), ("i4", "integer(int32)"),
                                                          ("i8", "integer(int64)"), ("r4", "real(real32)"),
                                                          ("r8", "real(real64)")]]
PASSES = [{"pass": "begin", "is whole": ".false."}, {"pass": "run", "is whole": ".true."}]
MOVES = [{"move": "begin", "owned": "in", "halo": "inout", "flags": "0", "is whole": ".false."},
         {"move": "sum", "owned": "inout", "halo": "in", "flags": "GRAFT_HALO_SUM", "is whole": ".false."},
         {"move": "exchange", "owned": "in", "halo": "inout", "flags": "0", "is whole": ".true."}]
CHILDREN = [{"child": "halo", "parent": "graph", "ID": "GRAFT_HALO_ID", "slots": "halo_api"},
            {"child": "stream", "parent": "network", "ID": "GRAFT_STREAM_ID", "slots": "stream_api"}]
FINALS = [{"final": name, "type of": {"data": "dataset"}.get(name, name),
           "frees": {"context": "close"}.get(name, "destroy")}
          for name in "context ranks graph plan halo mesh network stream data trainer".split()]
VARIANTS = [REALS, INTEGERS, FIELDS, VECTORS, ADDRESSES, PASSES, MOVES, CHILDREN, FINALS]
NAMES = {"r", "i", "a", "v", "t", "pass", "move", "child", "final"}  # keys that select the variants of a procedure

# Procedures of the template that call the function of a slot, and the parameters that this function must have.
PASSED_ON = {"call_with": "run_ppp", "call_without": "run_pp", "call_with_path": "run_ppp",
             "call_with_field": "run_ppp", "call_with_number": "run_pipp", "explained": "run_pplp", "adopt": "free_p"}
KINDS = {"p": "type(c_ptr)", "i": "integer(c_int32_t)", "l": "integer(c_int64_t)", "d": "real(c_double)"}
PRIMITIVES = {"int32_t": "i", "uint32_t": "i", "int64_t": "l", "uint64_t": "l", "double": "d"}
RESULTS = {"run": "i", "get": "p", "count": "l"}


class Header:
    """The declarations of the headers, read by cffi."""

    def __init__(self, folder, compiler):
        import cffi
        self.text = declarations.declarations(folder, compiler)
        self.ids, _ = declarations.macros(folder, compiler)
        self.ffi = cffi.FFI()
        self.ffi.cdef(self.text)
        self.constants = self.ffi.dlopen(None)
        self.structs = {}
        for name in self.ffi.list_types()[0]:
            kind = self.ffi.typeof(name)
            if kind.kind == "struct" and kind.fields:
                self.structs[name] = kind

    def groups(self):
        """The constants of each enumeration as [[(constant, value)]], in the order of the headers."""
        for block in re.findall(r"\benum \{([^}]*)\}", self.text):
            yield [(name, getattr(self.constants, name)) for name in re.findall(r"\b(GRAFT_\w+) =", block)
                   if name != "GRAFT_STATUS_END"]

    def slots(self):
        """The slots of structs as {name: (number, signature)}. Slots are pointers, counted in words of eight bytes
        from 1."""
        found = {}
        for struct, kind in self.structs.items():
            prefix = struct.removeprefix("graft_")
            for name, field in kind.fields:
                if field.type.kind in ("pointer", "function"):
                    found[f"{prefix}_{name}"] = (field.offset // 8 + 1, signature(field.type))
        return found


def letter(kind):
    if kind.kind in ("pointer", "function"):
        return "p"
    return PRIMITIVES[kind.cname] if kind.kind == "primitive" else "i"


def signature(kind):
    """The signature of a function type, such as "run_ppp" for a function with a status and three pointers; "" for a
    pointer to data."""
    if kind.kind != "function":
        return ""
    result = "free" if kind.result.kind == "void" else {"i": "run", "p": "get", "l": "count"}[letter(kind.result)]
    return result + "_" + "".join(letter(one) for one in kind.args)


def wrapped(head, items, indent):
    """A statement with a list, in lines of at most 120 columns."""
    text = textwrap.fill(", ".join(item.replace(" ", "\0") for item in items), 118, initial_indent=indent + head,
                         subsequent_indent=indent + "   ", break_long_words=False)
    return text.replace("\n", " &\n").replace("\0", " ") + "\n"


def repeated(text):
    """Repeat the text for each combination of the variants that it names."""
    keys = set(re.findall(r"\{([^{}]+)\}", text))
    axes = [axis for axis in VARIANTS if keys & set(axis[0]) & NAMES]
    unknown = keys - {key for axis in axes for key in axis[0]}
    if unknown:
        raise SystemExit(f"graft.f90.in: {unknown} are in no variant")
    for chosen in itertools.product(*axes):
        values = {key: value for one in chosen for key, value in one.items()}
        yield re.sub(r"\{layout line\}\n", "{layout line}", text).format_map(values) if values else text


def bindings(line):
    """Expand a line `generic :: name => procedures ! comment`, and declare its procedures, which are private."""
    indent, head, name, comment = re.fullmatch(r"( *)(generic :: \w+ => )([^!]+?)( !.*)?\n", line).groups()
    names = [one for part in name.split(", ") for one in repeated(part)]
    text = wrapped(head, names, indent)
    if comment:
        fits = text.count("\n") == 1 and len(text) + len(comment) <= 121
        text = text[:-1] + comment + "\n" if fits else f"{indent}!{comment[2:]}\n{text}"
    return text + wrapped("procedure, private :: ", names, indent)


def declared(parts):
    """The names and declarations of the arguments of a @set or @call."""
    names, lines = [], []
    for part in parts:
        if part == "layout":
            part = "type(graft_layout), optional :: layout"
        kind, of = part.split(" :: ")
        names += [name.split("(")[0] for name in re.split(r", (?![^(]*\))", of)]
        lines.append(f"      {kind.replace(', optional', '')}, intent(in){', optional' if 'optional' in kind else ''}"
                     f" :: {of}\n")
    return names, "".join(lines)


IERR = "      integer, intent(out), optional :: ierr\n"


def setter(line, body):
    """Expand `@set NAME | TYPE | DECLARATION ...` and its statements to a procedure that stores its arguments in an
    object."""
    name, kind, *parts = line.split(" | ")
    names, lines = declared(parts)
    local = ""
    if kind == "graft_dataset":  # gfortran 12 cannot allocate components of a pointer in a polymorphic object
        local = "      type(data_arrays), pointer :: arrays\n\n      arrays => arrays_of(self)"
    return (f"   subroutine {name}({', '.join(['self', *names, 'ierr'])})\n      class({kind}), intent(inout) :: self\n"
            f"{lines}{IERR}{local}\n{body}      call succeed(ierr)\n   end subroutine\n\n")


def forwarder(line):
    """Expand `@call NAME | TYPE | SLOT | ARGUMENTS` to a procedure that calls a function of the library."""
    name, kind, slot, *parts = line.split(" | ")
    if parts == ["text"]:
        return (f"   function {name}(self) result(text)\n      class({kind}), intent(in) :: self\n"
                f"      character(len=:), allocatable :: text\n\n      text = explained(self, {slot})\n"
                "   end function\n\n")
    if parts == ["path"]:
        parts, how = ["character(len=*) :: path"], f"call_with_path(self, {slot}, path, ierr)"
    names, lines = declared(parts)
    lines = re.sub(r"(type\(\w+\)), intent\(in\)", r"\1, intent(inout), target", lines)
    if "path" not in names:
        how = ["call_without(self, {0}, ierr)", "call_with(self, {0}, c_loc({1}), ierr)",
               "call_with_number(self, {0}, {2}, c_loc({1}), ierr)"][len(names)].format(slot, *names)
    return (f"   subroutine {name}({', '.join(['self', *names, 'ierr'])})\n      class({kind}), intent(in) :: self\n"
            f"{lines}{IERR}\n      call {how}\n   end subroutine\n\n")


def members(kind):
    """Declare the fields of a struct. Their default is zero, except for the size."""
    lines, last = [], None
    for name, field in kind.fields:
        size, is_array = "", field.type.kind == "array"
        one = field.type.item if is_array else field.type
        if one.cname == "char":
            declared, zero = "character(kind=c_char)", "c_null_char"
        elif one.kind == "function":
            declared, zero = "type(c_funptr)", "c_null_funptr"
        else:
            declared, zero = KINDS[letter(one)], "c_null_ptr" if one.kind == "pointer" else "0"
        if is_array:
            size = f"({field.type.length})"
        if name == "size":
            zero = "@size"
        if declared != last:
            lines.append((f"      {declared} :: ", []))
            last = declared
        lines[-1][1].append(f"{name}{size} = {zero}")
    return "".join(wrapped(head.lstrip(), items, "      ") for head, items in lines)


def types(header, template):
    """Declare the structs that the template names, as graft_NAME if programs see them, otherwise as c_NAME."""
    text = ""
    for struct, kind in sorted(header.structs.items()):
        for name in struct, struct.replace("graft_", "c_", 1):
            is_own = re.search(rf"^ *type(?:, [\w()]+)* :: {name}$", template, re.MULTILINE)
            if re.search(rf"\b{name}\b", template) and not is_own and not (name == struct and struct not in PUBLIC):
                size = header.ffi.sizeof(kind)
                text += f"\n   type, bind(c) :: {name}\n" + members(kind).replace("@size", str(size)) + \
                    "   end type\n"
    return text


PUBLIC = ["graft_epoch", "graft_halo_info", "graft_mesh_info", "graft_metrics", "graft_network_info",
          "graft_network_step", "graft_stream_status"]


def parameters(letters):
    names = [chr(ord("a") + i) for i in range(len(letters))]
    return names, {kind: [n for n, one in zip(names, letters) if one == kind] for kind in KINDS}


def call(name):
    """The abstract interface of functions with this signature."""
    result, letters = name.split("_")
    names, by_kind = parameters(letters)
    what = f"{KINDS[RESULTS[result]]} function" if result in RESULTS else "subroutine"
    lines = [f"      {what} c_{name}({', '.join(names)}) bind(c)", "         import"]
    lines += [f"         {KINDS[kind]}, value :: {', '.join(of)}" for kind, of in by_kind.items() if of]
    return "\n".join(lines + [f"      end {what.split()[-1]}", ""])


def function(name):
    """The procedure that calls the function of a slot."""
    result, letters = name.split("_")
    names, by_kind = parameters(letters)
    what = f"{KINDS[RESULTS[result]]} function" if result in RESULTS else "subroutine"
    lines = ["", f"   {what} {name}(table, number, {', '.join(names)})"]
    lines += ["      type(c_ptr), intent(in) :: " + ", ".join(["table"] + by_kind["p"])]
    lines += [f"      {KINDS[kind]}, intent(in) :: {', '.join(by_kind[kind])}" for kind in "ild" if by_kind[kind]]
    lines += ["      integer, intent(in) :: number", f"      procedure(c_{name}), pointer :: function", "",
              "      call c_f_procpointer(slot(table, number), function)",
              f"      {name + ' =' if result in RESULTS else 'call'} function({', '.join(names)})",
              f"   end {what.split()[-1]}", ""]
    return "\n".join(lines)


def check(template, slots):
    """Check that each slot of a call has the parameters that the call passes."""
    for name, slot in re.findall(r"\b(\w+)\((?:[\w%]+|c_loc\([\w%]+\)), (\w+)(?=[,)])", template):
        if name == "pointer_in":
            continue
        if re.fullmatch(r"(run|get|free|count)_[pild]+", name):
            if slot in slots and slots[slot][1] != name:
                raise SystemExit(f"graft.f90.in: {slot} is called by {name}, and the headers say {slots[slot][1]}")
        elif slot in slots and PASSED_ON.get(name) != slots[slot][1]:
            raise SystemExit(f"graft.f90.in: {name} passes on {slot}, which is {slots[slot][1]}")

def expanded(template):
    """The template with all its procedures expanded."""
    text = re.sub(r"^   @set (.*)\n((?:      .*\n)+)", lambda match: setter(match[1], match[2]), template,
                  flags=re.MULTILINE)
    text = re.sub(r"^   @call (.*)\n", lambda match: forwarder(match[1]), text, flags=re.MULTILINE)
    text = "".join(bindings(line) if "generic :: " in line else line for line in text.splitlines(True))
    procedure = re.compile(r"^   (?:[\w() ]+ )?(?:subroutine|function) .*?^   end (?:subroutine|function)\n(\n?)",
                           re.MULTILINE | re.DOTALL)
    return re.sub(r"\n{3,}", "\n\n", procedure.sub(lambda match: "".join(repeated(match[0])), text))


def generated(header, template):
    text, slots = expanded(template), header.slots()
    check(text, slots)

    def is_used(name):
        return re.search(rf"\b{name}\b", text)
    names = sorted(set(re.findall(r"\b(?:c_)?((?:run|get|free|count)_[pild]+)\b", text)))
    groups = [[f"{name} = {value}" for name, value in group] for group in header.groups()]
    ids = [f"{name} = '{value}'" for name, value in sorted(header.ids.items()) if is_used(name)]
    exports = [name for group in header.groups() for name, _ in group] + [name for name in PUBLIC if is_used(name)]
    parts = {
        "@constants": "".join(wrapped("integer, parameter :: ", group, "   ") for group in groups) +
                      wrapped("character(len=*), parameter :: ", ids, "   "),
        "@types": types(header, text).lstrip("\n"),
        "@slots": wrapped("integer, parameter :: ", [f"{name} = {slots[name][0]}" for name in slots if is_used(name)],
                          "   "),
        "@calls": "".join(call(name) for name in names),
        "@functions": "".join(function(name) for name in names if is_used(name)).lstrip("\n"),
        "@public": wrapped("public :: ", exports, "   ")}
    return re.sub(r"^ *(@\w+)\n", lambda match: parts[match[1]], text, flags=re.MULTILINE)


def main(folder, *compiler):
    with open(os.path.join(HERE, "graft.f90.in"), encoding="utf-8") as file:
        sys.stdout.write(generated(Header(folder, compiler), file.read()))


if __name__ == "__main__":
    main(*sys.argv[1:])
