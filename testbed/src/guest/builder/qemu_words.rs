//! A guest as words for QEMU's command line.

use std::path::Path;

use super::{Builder, Icount, Module, USER_SPACE_MODULE};
use crate::error::{Error, at};
use crate::guest::qmp::Throttle;
use crate::guest::shared_guest;
use crate::image::kernel;
use crate::profile::{Facts, WithIommu};

impl Builder {
    /// The machine with an IOMMU, where this guest needs one.
    pub(super) fn iommu(&self) -> Result<Option<&'static WithIommu>, Error> {
        let Facts { name: profile, with_iommu, .. } = *self.profile.facts();
        match (self.user_space_module, with_iommu) {
            (false, _) => Ok(None),
            (true, Some(machine)) => Ok(Some(machine)),
            (true, None) => Err(Error::NotOfProfile { what: "module for user space", profile }),
        }
    }

    /// All of QEMU's arguments for a guest without a terminal; names of files are relative to the boot's folder.
    pub(super) fn arguments(&self) -> Result<Vec<String>, Error> {
        let mut words = self.machine()?;
        let listens = if self.is_lent { ",server=on,wait=off" } else { "" };
        let more = format!(
            "-serial file:console -qmp unix:qmp.sock,server=on,wait=off -device virtio-serial-pci \
            -chardev socket,id=control,path={}{listens} -device virtserialport,chardev=control,nr=1 \
            -chardev file,id=stdout,path=stdout -device virtserialport,chardev=stdout,nr=2 \
            -chardev file,id=stderr,path=stderr -device virtserialport,chardev=stderr,nr=3",
            shared_guest::CONTROL
        );
        words.extend(more.split_whitespace().map(str::to_owned));
        Ok(words)
    }

    /// Machine, kernel, module, share and network.
    pub(super) fn machine(&self) -> Result<Vec<String>, Error> {
        let facts = self.profile.facts();
        let iommu = self.iommu()?;
        let machine = iommu.map_or(facts.machine, |with| with.machine);
        let mut words: Vec<String> = machine.iter().map(|&word| word.to_owned()).collect();
        let mut add = |text: String| words.extend(text.split(' ').map(str::to_owned));
        add(format!("-accel tcg -smp {} -m {}", self.vcpus, self.memory_mib));
        add("-nodefaults -no-user-config -display none -no-reboot -initrd initrd".to_owned());
        match &self.module {
            Module::BuiltIn(throttle) => {
                add(format!(
                    "-object cryptodev-backend-builtin,id=cryptodev0,queues=1{}",
                    throttled(*throttle)
                ));
                add("-device virtio-crypto-pci,id=crypto0,cryptodev=cryptodev0".to_owned());
            }
            Module::VhostUser { event_idx, .. } => {
                // The module reads and writes the guest's memory, which must be a shared file.
                add(format!("-object memory-backend-memfd,id=ram0,size={}M,share=on", self.memory_mib));
                add("-machine memory-backend=ram0 -object cryptodev-vhost-user,id=cryptodev0,chardev=module"
                    .to_owned());
                let event_idx = if *event_idx { "on" } else { "off" };
                add(format!(
                    "-device virtio-crypto-pci,id=crypto0,cryptodev=cryptodev0,event_idx={event_idx}"
                ));
            }
            Module::None => {}
        }
        if iommu.is_some() {
            add(user_space_words());
        }
        if let Some(Icount { shift, sleep }) = self.icount {
            add(format!("-icount shift={shift},sleep={}", if sleep { "on" } else { "off" }));
        }
        if self.network {
            add("-netdev user,id=net0,ipv6=off -device virtio-net-pci,netdev=net0,romfile=".to_owned());
        }
        // Paths may hold spaces, so they are words of their own; QEMU wants commas doubled.
        let path = |path: &Path| {
            Ok::<_, Error>(
                path.canonicalize()
                    .map_err(|error| at(path, error))?
                    .display()
                    .to_string()
                    .replace(',', ",,"),
            )
        };
        if let Some(folder) = &self.share {
            let share =
                format!("local,path={},mount_tag=share,security_model=none,multidevs=remap", path(folder)?);
            words.extend(["-virtfs".to_owned(), share]);
        }
        if let Module::VhostUser { socket, .. } = &self.module {
            words.extend(["-chardev".to_owned(), format!("socket,id=module,path={}", path(socket)?)]);
        }
        let more = iommu.map_or_else(String::new, |with| format!(" {}", with.kernel_words));
        words.extend(["-kernel".to_owned(), kernel::image(self.profile)?.display().to_string()]);
        words.extend([
            "-append".to_owned(),
            format!("console={} quiet panic=-1 {}{more}", facts.console, facts.kernel_words),
        ]);
        Ok(words)
    }
}

/// The second module. Without `iommu_platform` QEMU would let it reach all of the guest's memory, past the IOMMU.
fn user_space_words() -> String {
    let slot = USER_SPACE_MODULE.trim_start_matches("0000:00:");
    format!(
        "-object cryptodev-backend-builtin,id=cryptodev1,queues=1 \
        -device virtio-crypto-pci,id=crypto1,cryptodev=cryptodev1,iommu_platform=on,disable-legacy=on,addr={slot}"
    )
}

fn throttled(throttle: Throttle) -> String {
    let word = |name, value: u64| if value == 0 { String::new() } else { format!(",{name}={value}") };
    word("throttle-bps", throttle.bytes_per_s) + &word("throttle-ops", throttle.ops_per_s)
}
