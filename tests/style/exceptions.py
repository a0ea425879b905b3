# SPDX-License-Identifier: Apache-2.0
"""Known exceptions from the rules of style, which exceptions.txt lists. A check passes only if it finds exactly the
exceptions of its kind. Something new fails, and so does a line that is no longer needed; the list therefore only
gets shorter."""
import os

import tap

LIST = os.path.join(os.path.dirname(__file__), "exceptions.txt")


def of_kind(kind):
    """The names that follow `kind` in the list."""
    with open(LIST, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return [words[1] for words in lines if words[0] == kind]


def differences(found, known):
    """Sentences about the differences between {name: fault} and the exceptions in `known`."""
    new = [fault for name, fault in sorted(found.items()) if name not in known]
    return new + [f"{name} is within the limit now: remove its line from exceptions.txt" for name in known
                  if name not in found]


def check(kind, found, rule):
    """Make one check of {name: fault}. The names are compared with the exceptions of this kind."""
    faults = differences(found, of_kind(kind))
    tap.ok(not faults, f"{rule}, but for {len(of_kind(kind))} known", *faults)
    tap.ok(len(differences({"new": "too long"}, ["old"])) == 2 and not differences({"old": "too long"}, ["old"]),
           f"{kind}: what is new is found, and an exception that nothing needs")
