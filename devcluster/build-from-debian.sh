#!/bin/sh
# Builds the local control plane from Debian 12's own packages into DEST:
#   etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl (Kubernetes 1.20.2).
#
# Usage: build-from-debian.sh DEST
#
# Progress goes to stdout, one line a step. apt verifies every checksum against the signed package
# index. Only the build tools are installed on the system; etcd is unpacked, never installed, so no
# service starts. DEST appears whole or not at all; the build tree beside it (DEST.work) is removed.
# One at a time for a DEST: build-once.sh sees to that.
set -eu

case $1 in
  /*) dest=$1 ;;
  *) dest=$PWD/$1 ;;
esac
tools='golang-go jq rsync make dpkg-dev ca-certificates'

say() { printf '%s\n' "$*"; }
fail() { printf '%s\n' "$*" >&2; exit 1; }

. /etc/os-release
[ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 12 ] ||
  fail "this machine is ${PRETTY_NAME:-unknown}; the build is known to work on Debian 12. Set KUBEBUILDER_ASSETS to a directory with etcd and kube-apiserver instead."

if [ "$(id -u)" = 0 ]; then
  as_root=
elif sudo -n true 2>/dev/null; then
  as_root='sudo -n'
else
  fail "building needs the packages: $tools. Run as root: apt-get update && apt-get install -y $tools — or set KUBEBUILDER_ASSETS to a directory with etcd and kube-apiserver."
fi

work=$dest.work
# Go marks its module cache read-only; chmod first so that nothing stays behind.
clean() { chmod -R u+w "$work" 2>/dev/null || true; rm -rf "$work" "$dest.partial"; }
# A builder that was killed has left its tree: under a fixed name, so that it is found.
clean
trap clean EXIT
trap 'exit 130' INT TERM HUP
mkdir -p "$work"
logged() { "$@" >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; fail "failed: $*"; }; }

say 'step 1/6 installing build tools (go, jq, rsync, make)'
export DEBIAN_FRONTEND=noninteractive
logged $as_root apt-get -qq -o DPkg::Lock::Timeout=120 update
logged $as_root apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends $tools

say 'step 2/6 fetching the kubernetes source package'
mirror=$(apt-get indextargets --format '$(CREATED_BY) $(CODENAME) $(COMPONENT) $(REPO_URI)' |
  awk -v codename="$VERSION_CODENAME" '$1 == "Packages" && $2 == codename && $3 == "main" { print $4; exit }')
[ -n "$mirror" ] || fail "no apt source offers $VERSION_CODENAME main; add one, or set KUBEBUILDER_ASSETS."
# A sources list of our own: the system's has no deb-src line, and it stays as it is.
mkdir -p "$work/lists/partial" "$work/packages" "$work/src"
printf 'deb-src %s %s main\n' "$mirror" "$VERSION_CODENAME" >"$work/sources.list"
own_sources="-o Dir::Etc::sourcelist=$work/sources.list -o Dir::Etc::sourceparts=/dev/null -o Dir::State::Lists=$work/lists -o APT::Sandbox::User=root"
cd "$work/packages"
logged apt-get -qq $own_sources update
logged apt-get -qq $own_sources source --download-only kubernetes
logged apt-get -qq -o APT::Sandbox::User=root download etcd-server golang-github-modern-go-reflect2-dev

say 'step 3/6 unpacking'
logged dpkg-source --no-check -x "$work"/packages/kubernetes_*.dsc "$work/src/kubernetes"
for deb in "$work"/packages/*.deb; do dpkg-deb -x "$deb" "$work/unpacked"; done

# reflect2 1.0.1 faults in map iteration when built with Go 1.18 or later; Debian's 1.0.2 does not.
vendored="$work/src/kubernetes/vendor/github.com/modern-go/reflect2"
rm -rf "$vendored"
cp -r "$work/unpacked/usr/share/gocode/src/github.com/modern-go/reflect2" "$vendored"

# The schema validator tells nil from a value by comparing reflect.Value structs. With Go 1.18 or later that calls the empty
# string nil, and the API server refuses every custom resource that has one.
validator="$work/src/kubernetes/vendor/k8s.io/kube-openapi/pkg/validation/validate/type.go"
sed -i 's/if data == nil || reflect\.DeepEqual(reflect\.Zero(.*)), reflect\.ValueOf(data)) {/if data == nil {/' "$validator"
grep -q 'if data == nil {' "$validator" || fail "the validator's source is not as expected: $validator"

cat >"$work/version.sh" <<'VERSION'
KUBE_GIT_COMMIT='faecb196815e248d3ecfb03c680a4507229c2a56'
KUBE_GIT_TREE_STATE='archive'
KUBE_GIT_VERSION='v1.20.2'
KUBE_GIT_MAJOR='1'
KUBE_GIT_MINOR='20'
VERSION

say 'step 4/6 compiling kube-apiserver, kube-controller-manager, kube-scheduler and kubectl (about four minutes on two cores)'
cd "$work/src/kubernetes"
logged env GO111MODULE=off GOCACHE="$work/go-cache" GOFLAGS=-trimpath GOLDFLAGS='-s -w' KUBE_GIT_VERSION_FILE="$work/version.sh" \
  make WHAT='cmd/kube-apiserver cmd/kube-controller-manager cmd/kube-scheduler cmd/kubectl'

say 'step 5/6 checking that the binaries run'
mkdir -p "$dest.partial"
for binary in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
  cp "$work/src/kubernetes/_output/local/bin/linux/$(dpkg --print-architecture)/$binary" "$dest.partial/"
done
cp "$work/unpacked/usr/bin/etcd" "$dest.partial/"
"$dest.partial/kube-apiserver" --version
"$dest.partial/etcd" --version | head -n 1

say 'step 6/6 moving into the cache'
mv -T "$dest.partial" "$dest"
