#!/bin/sh
# Builds conset's C library and installs it below PREFIX:
#
#   install.sh PREFIX [--mpi] [--profile PROFILE] [-- CARGO ARGUMENTS]
#
#   include/conset.h                 the interface
#   lib/libconset.so.X.Y.Z           the shared library, with links libconset.so.X and libconset.so
#   lib/libconset.a                  the static library (beside a METIS of the program's own, too)
#   lib/pkgconfig/conset.pc          flags for both (pkg-config --cflags --libs [--static] conset)
#   share/conset/conset.f90          the Fortran module, to be compiled with one's own compiler
#
# --mpi takes MPI as a transport along; MPICC names the MPI library's compiler, mpicc unless set.
# --profile names a profile of cargo's, release unless given. Behind `--` is another command of cargo's
# that builds the library, in place of `build -p conset-c`.
set -eu

usage() {
    sed -n '2,4p' "$0" >&2
    exit 2
}

prefix= features= profile=release
while [ $# -gt 0 ]; do
    case $1 in
    --mpi) features=mpi ;;
    --profile) [ $# -gt 1 ] || usage; shift; profile=$1 ;;
    --) shift; break ;;
    -*) usage ;;
    *) [ -z "$prefix" ] || usage; prefix=$1 ;;
    esac
    shift
done
[ -n "$prefix" ] || usage
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig" "$prefix/share/conset"
prefix=$(cd "$prefix" && pwd)

here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
# Cargo's messages say where the libraries are, and which system libraries the static one needs.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
[ $# -gt 0 ] || set -- build -p conset-c
cargo "$@" --locked --profile "$profile" --features "$features" \
    --message-format=json-render-diagnostics >"$log"
built() {
    grep '"name":"conset_c"' "$log" | grep -o "\"[^\"]*/libconset_c$1\"" | tail -n 1 | tr -d '"'
}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' ../../Cargo.toml | head -n 1)
major=${version%%.*}

install -m 644 include/conset.h "$prefix/include/conset.h"
(cd fortran && cat types.f90 setup.f90 cells.f90 unknown.f90 halos.f90 conset.f90) >"$prefix/share/conset/conset.f90"
install -m 644 "$(built .a)" "$prefix/lib/libconset.a"
shared=$(built .so)
if [ -n "$shared" ]; then
    library=libconset.so.$version
    install -m 755 "$shared" "$prefix/lib/$library"
    ln -sf "$library" "$prefix/lib/libconset.so.$major"
    ln -sf "libconset.so.$major" "$prefix/lib/libconset.so"
else
    shared=$(built .dylib)
    library=libconset.$major.dylib
    install -m 755 "$shared" "$prefix/lib/$library"
    ln -sf "$library" "$prefix/lib/libconset.dylib"
fi

# The release profile keeps lines for backtraces, which are most of the libraries' bytes.
if [ "$profile" = release ] && command -v strip >/dev/null; then
    strip -S "$prefix/lib/libconset.a" "$prefix/lib/$library"
fi

# METIS is part of the static library, and programs may have one of their own: the names of C objects
# that are not conset's are changed, in all members alike.
if [ "$(uname)" != Darwin ] && command -v nm >/dev/null && command -v objcopy >/dev/null; then
    nm -A -g --defined-only "$prefix/lib/libconset.a" 2>/dev/null |
        awk '!/\.rcgu\.o:/ && NF == 3 && $3 !~ /^(conset_|__)/ { print $3, "conset_c_" $3 }' |
        sort -u >"$log"
    objcopy --redefine-syms="$log" "$prefix/lib/libconset.a"
fi

private="-lpthread -ldl -lm -lgcc_s"
if [ "$features" = mpi ]; then
    private="$private $("${MPICC:-mpicc}" -show | tr ' ' '\n' | grep '^-[Ll]' | tr '\n' ' ')"
fi
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" -e "s|@PRIVATE@|$private|" \
    conset.pc.in >"$prefix/lib/pkgconfig/conset.pc"
echo "installed conset $version below $prefix"
