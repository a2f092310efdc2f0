#!/bin/busybox sh
# PID 1 of the guest. The way: mounts -> modules -> "up" -> for each line on port 1 a command -> power off.
# Port 1 carries lines and answers, ports 2 and 3 what commands write. Port 1 ends when the host goes away: the guest
# with it, unless it is lent to one after the other.
# /etc/testbed is written for each boot: modules, share, network, shell, lent, console, user_space.
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm /dev/pts
# What a test put there would be hidden.
[ -n "$(ls -A /tmp 2>/dev/null)" ] || mount -t tmpfs tmp /tmp
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
mount -t devpts pts /dev/pts
export PATH=/payload:/bin:/usr/bin HOME=/tmp LC_ALL=C
. /etc/testbed
# The kernel asks this program for templates (ctr, gcm, authenc, cryptd).
echo /bin/modprobe > /proc/sys/kernel/modprobe
if [ -n "$user_space" ]; then
    # Before the kernel's own driver is there to take it.
    echo vfio-pci > /sys/bus/pci/devices/$user_space/driver_override
    modules="vfio_iommu_type1 vfio-pci $modules"
fi
for module in $modules; do
    modprobe "$module" || echo "testbed: no kernel module $module" > /dev/kmsg
done
ip link set lo up
if [ -n "$network" ]; then
    # No route beyond 10.0.2.2, which is the host's loopback.
    ip link set eth0 up && ip addr add 10.0.2.15/24 dev eth0
fi
[ -z "$share" ] || { mkdir -p /share && mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 share /share; }
if [ -n "$shell" ]; then
    setsid sh -c "exec sh -l < /dev/$console > /dev/$console 2>&1"
    poweroff -f
fi

# Which number the device gets differs from boot to boot.
tries=0
until [ -e /dev/vport*p3 ] || [ $tries = 500 ]; do usleep 10000; tries=$((tries + 1)); done
port=$(echo /dev/vport*p3)
port=${port%3}
exec 3<>${port}1 4>${port}2 5>${port}3
if [ -n "$user_space" ] && [ ! -e /sys/bus/pci/drivers/vfio-pci/$user_space ]; then
    echo "vfio-pci has not taken $user_space" >&3
    poweroff -f
fi
read -r now rest < /proc/uptime
echo "up $now" >&3

while :; do
    if ! read -r word rest <&3; then
        [ -n "$lent" ] || break
        usleep 20000
        continue
    fi
    [ "$word" = run ] || break
    echo "$rest" | base64 -d > /run/command
    rm -rf /run/answer
    mkdir -p /run/answer/out
    read -r before rest < /proc/uptime
    sh /run/command < /dev/null >&4 2>&5 3>&- 4>&- 5>&-
    status=$?
    read -r after rest < /proc/uptime
    dmesg -r > /run/answer/kernel.log
    (cd /run/answer && find . | cpio -o -H newc 2>/dev/null) > /run/answer.cpio
    echo "done $status $before $after $(stat -c %s /run/answer.cpio)" >&3
    cat /run/answer.cpio >&3
done
sync
poweroff -f
