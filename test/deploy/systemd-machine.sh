#!/bin/sh
# Runs systemd as process 1, as on a machine of its own: in new namespaces, with its own network, and on a copy of the files of
# this machine that is kept in memory. Needs root.
# $1: a new cgroup for it. $2: a directory that it has as /root/callnumber.
set -eu
if [ $$ != 1 ]; then
  echo $$ > "$1/cgroup.procs"
  exec unshare --mount --cgroup --pid --net --uts --ipc --fork --kill-child sh "$0" "$@"
fi
root=/mnt/root
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work $root
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay $root
mkdir -p $root/root/callnumber $root/outside
mount --bind "$2" $root/root/callnumber
mount -t proc proc $root/proc
mount -t sysfs -o ro sysfs $root/sys
mount -t cgroup2 none $root/sys/fs/cgroup
for directory in run tmp dev; do mount -t tmpfs none $root/$directory; done
mkdir $root/dev/shm $root/dev/pts $root/dev/mqueue $root/dev/hugepages
mount -t tmpfs -o mode=1777 none $root/dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 none $root/dev/pts
ln -s pts/ptmx $root/dev/ptmx
while read -r name major minor; do mknod -m 666 "$root/dev/$name" c "$major" "$minor"; done << DEVICES
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
DEVICES
# Nothing of this machine is started.
rm -rf $root/etc/systemd/system/* $root/etc/fstab $root/usr/lib/systemd/system/*.wants
cd $root
pivot_root . outside
umount -l /outside
mount --make-rshared /
exec env -i container=other PATH=/usr/sbin:/usr/bin /lib/systemd/systemd --system --unit=basic.target --show-status=no
