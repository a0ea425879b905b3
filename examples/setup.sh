# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Set-up shared by examples/quickstart.sh and tests/run.sh, which source it: Debian packages, then the build.

graft_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
graft_build=$graft_root/build

say() { printf '%s\n' "$*"; }
complain() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# Run a command, and show its output only if it failed.
quietly() {
    local log rc=0
    log=$(mktemp)
    "$@" >"$log" 2>&1 </dev/null || rc=$?
    [ "$rc" -eq 0 ] || cat "$log" >&2
    rm -f "$log"
    return "$rc"
}

# The packages that packages.txt lists in the given sections, one per line.
listed_packages() {
    awk -v wanted=" $* " '
        { sub(/#.*/, "") }
        /^\[/ { section = $1; gsub(/[][]/, "", section); next }
        NF && index(wanted, " " section " ") { print $1 }' "$graft_root/examples/packages.txt"
}

missing_packages() {
    local installed package
    installed=$(dpkg-query --show --showformat '${db:Status-Status} ${Package}\n')
    for package in $(listed_packages "$@"); do
        grep -qxF "installed $package" <<<"$installed" || printf '%s\n' "$package"
    done
}

# List the files in which apt stores the contents of the archive, one per line. There are none before the first 'apt-get
# update'.
package_lists() {
    # shellcheck disable=SC2016 # apt is to expand it
    ! command -v apt-get >/dev/null || apt-get indextargets --format '$(FILENAME)' 'Created-By: Packages'
}

# Set as_root to the command prefix that is needed to run as root. It asks for a password only at a terminal.
find_root() {
    as_root=(env)
    [ "$(id -u)" -ne 0 ] || return 0
    command -v sudo >/dev/null || return 1
    as_root=(sudo -n env)
    sudo -n true 2>/dev/null && return 0
    as_root=(sudo env)
    [ -t 0 ] && say "Installing packages needs root:" && sudo -v
}

apt_get() { quietly "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"; }

lacking_tools() {
    local tool
    for tool in cc meson ninja pkg-config python3; do
        command -v "$tool" >/dev/null || printf '%s ' "$tool"
    done
}

# Without apt nothing can be installed. Meson names the tools that are missing and that cannot be checked here.
check_tools() {
    local lacking
    lacking=$(lacking_tools)
    [ -z "$lacking" ] && return 0
    complain "this is not a Debian system, and there is no ${lacking% } here." \
        "Install what corresponds to the packages listed in examples/packages.txt, then run this again."
    return 1
}

# setup_packages [--with-lists] SECTION...: install missing packages. With --with-lists apt's package lists must exist
# too, because the example reads them.
setup_packages() {
    local lists=no missing as_root
    if [ "$1" = --with-lists ]; then
        lists=yes
        shift
    fi
    if ! command -v apt-get >/dev/null; then
        check_tools
        return
    fi
    mapfile -t missing < <(missing_packages "$@")
    if [ ${#missing[@]} -eq 0 ] && { [ "$lists" = no ] || [ -n "$(package_lists)" ]; }; then return 0; fi

    local update=(apt-get update) install=(install -y --no-install-recommends "${missing[@]}") text
    text="${update[*]}"
    [ ${#missing[@]} -eq 0 ] || text+=" && apt-get ${install[*]}"
    if ! find_root; then
        complain "packages are missing. Run this as root, then start again:"
        printf '\n    %s\n\n' "$text" >&2
        return 1
    fi
    say "Reading the lists of the Debian archive ..."
    apt_get update || { complain "'apt-get update' failed, see above"; return 1; }
    [ ${#missing[@]} -eq 0 ] && return 0
    say "Installing ${#missing[@]} packages: ${missing[*]} ..."
    apt_get "${install[@]}" || { complain "'apt-get install' failed, see above"; return 1; }
}

# The named program as it is found in PATH, if it works and is new enough; otherwise Debian's own.
find_tool() {
    local name=$1 least=$2 version
    version=$("$name" --version 2>/dev/null) || version=
    if [ -n "$version" ] && printf '%s\n' "$least" "$version" | sort -V -C; then
        command -v "$name"
    elif [ -x "/usr/bin/$name" ]; then
        printf '%s\n' "/usr/bin/$name"
    else
        complain "$name $least or newer is needed, found ${version:-none}"
        return 1
    fi
}

# Reconfigure the build of an older checkout if there are new options.
learn_options() {
    [ "$graft_root/meson_options.txt" -nt "$graft_build/build.ninja" ] || return 0
    quietly "$meson" setup --reconfigure "$graft_build" "$graft_root"
}

# Whether Debian packages were installed or removed since the build was configured.
have_packages_changed() { [ /var/lib/dpkg/status -nt "$graft_build/build.ninja" ]; }

# shellcheck disable=SC2120 # one caller gives options, the other none
# setup_build [MESON-OPTION...]: configure and compile into build/. Sets `meson` for later calls.
setup_build() {
    local ninja
    meson=$(find_tool meson 1.0) && ninja=$(find_tool ninja 1.8) || return 1
    export NINJA=$ninja
    say "Building in ${graft_build} ..."
    if [ ! -f "$graft_build/build.ninja" ]; then
        quietly "$meson" setup "$@" "$graft_build" "$graft_root" || return 1
    # --clearcache: Meson remembers what it did not find, but the packages may be installed by now.
    elif { [ $# -gt 0 ] || have_packages_changed; } &&
        ! { learn_options && quietly "$meson" configure --clearcache "$graft_build" "$@"; }; then
        complain "cannot configure $graft_build again, see above. If nothing else helps, remove that folder."
        return 1
    fi
    quietly "$ninja" -C "$graft_build" || { complain "the build failed, see above"; return 1; }
}
