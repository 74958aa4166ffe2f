#!/usr/bin/env bash
# Builds the container image from the packages of Debian and npm: no other registry, no daemon.
# Needs mmdebstrap, buildah, and Node 24 with npm. Writes dist/container/portico.oci.tar, or with --root only the folder
# dist/container/root, for a chroot or another builder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=dist/container
root=$work/root

node scripts/with-node.cjs scripts/release.ts dist
mkdir -p "$work"
rm -rf "$root"
# No package manager, no compiler and no setuid program is needed to run.
mmdebstrap --quiet --variant=essential --include=ca-certificates,libstdc++6,tzdata \
  --customize-hook='find "$1" -xdev -perm /6000 -type f -exec chmod a-s {} +' \
  --customize-hook='rm -rf "$1"/usr/share/doc/* "$1"/usr/share/man/* "$1"/usr/share/locale/*' \
  bookworm "$root"
echo 'portico:x:10001:10001::/data:/usr/sbin/nologin' >> "$root/etc/passwd"
echo 'portico:x:10001:' >> "$root/etc/group"
install -d -m 0700 -o 10001 -g 10001 "$root/data"

node_package=node-linux-$(node -p process.arch)
node_version=$(node -p "require('./package.json').optionalDependencies['$node_package']")
npm install --prefix "$root/opt/portico" --no-audit --no-fund --loglevel=error \
  "$PWD"/dist/portico-[0-9]*.tgz "$node_package@$node_version"
rm -rf "$root/opt/portico/node_modules/$node_package"/{include,share}
ln -s "../../opt/portico/node_modules/$node_package/bin/node" "$root/usr/bin/node"
ln -s ../../opt/portico/node_modules/.bin/portico "$root/usr/bin/portico"
if [ "${1:-}" = --root ]; then exit; fi

buildah build --isolation chroot --file ops/container/Containerfile --tag portico "$root"
buildah push portico "oci-archive:$work/portico.oci.tar:portico"
