//! Engines of systems on a chip: how each is recognised, and what its driver is called.
//!
//! Names are those of the kernel's sources (drivers/crypto, their Kconfig files and tables of compatible devices). What stands on
//! the page about boards (docs/guide/boards.md) has a row here, and a test compares.

use super::driver_list::DriverList;
use super::kernel::{Kernel, Part};
use super::system_root::SystemRoot;
use super::{DevicePath, Kind, Obstacle};

/// An engine with a driver in Linux.
pub(super) struct Engine {
    /// What people call it.
    pub(super) name: &'static str,
    /// Where it is built in.
    pub(super) chips: &'static str,
    /// What stands in the names of its drivers in `/proc/crypto`.
    marks: &'static [&'static str],
    /// What the device tree calls it, in the front or whole.
    compatible: &'static [&'static str],
    /// The option of its driver, without `CONFIG_`.
    pub(super) option: &'static str,
    /// The driver as a module.
    pub(super) module: &'static str,
}

impl Engine {
    /// Whose a driver is.
    pub(super) fn of_driver(driver: &str) -> Option<&'static Self> {
        ENGINES.iter().find(|engine| engine.marks.iter().any(|mark| driver.contains(mark)))
    }

    fn of_compatible(name: &str) -> Option<&'static Self> {
        ENGINES.iter().find(|engine| engine.compatible.iter().any(|front| name.starts_with(front)))
    }
}

const fn engine(
    (name, chips): (&'static str, &'static str),
    marks: &'static [&'static str],
    compatible: &'static [&'static str],
    (option, module): (&'static str, &'static str),
) -> Engine {
    Engine { name, chips, marks, compatible, option, module }
}

/// Those of boards and routers that people have.
pub(super) const ENGINES: &[Engine] = &[
    engine(
        ("omap-aes", "TI AM335x, AM437x, DRA7"),
        &["aes-omap"],
        &["ti,omap2-aes", "ti,omap3-aes", "ti,omap4-aes"],
        ("CRYPTO_DEV_OMAP_AES", "omap-aes-driver"),
    ),
    engine(
        ("omap-sham", "TI AM335x, AM437x, DRA7"),
        &["omap-sha", "omap-hmac", "omap-md5"],
        &["ti,omap2-sham", "ti,omap3-sham", "ti,omap4-sham", "ti,omap5-sham"],
        ("CRYPTO_DEV_OMAP_SHAM", "omap-sham"),
    ),
    engine(
        ("sa2ul", "TI AM65x, J721E, AM64x, AM62x"),
        &["-sa2ul"],
        &["ti,j721e-sa2ul", "ti,am654-sa2ul", "ti,am64-sa2ul", "ti,am62-sa3ul"],
        ("CRYPTO_DEV_SA2UL", "sa2ul"),
    ),
    engine(
        ("cesa", "Marvell Kirkwood, Dove, Armada 370, XP, 375, 38x"),
        &["mv-cbc-", "mv-ecb-", "mv-sha", "mv-md5", "mv-hmac"],
        &[
            "marvell,orion-crypto",
            "marvell,kirkwood-crypto",
            "marvell,dove-crypto",
            "marvell,armada-370-crypto",
            "marvell,armada-xp-crypto",
            "marvell,armada-375-crypto",
            "marvell,armada-38x-crypto",
        ],
        ("CRYPTO_DEV_MARVELL_CESA", "marvell-cesa"),
    ),
    engine(
        ("safexcel", "Marvell Armada 3700, 7K, 8K; MediaTek MT7623, MT7986"),
        &["safexcel-"],
        &["inside-secure,safexcel-eip97", "inside-secure,safexcel-eip197", "mediatek,mt7986-crypto"],
        ("CRYPTO_DEV_SAFEXCEL", "crypto_safexcel"),
    ),
    engine(
        ("eip93", "MediaTek MT7621, Airoha EN7581"),
        &["eip93"],
        &["inside-secure,safexcel-eip93", "mediatek,mtk-eip93"],
        ("CRYPTO_DEV_EIP93", "crypto-hw-eip93"),
    ),
    engine(
        ("qce", "Qualcomm IPQ40xx, IPQ806x, MSM8996, SM8150 and later"),
        &["-qce"],
        &["qcom,crypto-v5", "qcom,ipq4019-qce", "qcom,sm8150-qce", "qcom,qce"],
        ("CRYPTO_DEV_QCE", "qcrypto"),
    ),
    engine(
        ("rk", "Rockchip RK3288, RK3328, RK3399"),
        &["aes-rk", "rk-sha", "rk-md5"],
        &["rockchip,rk3288-crypto", "rockchip,rk3328-crypto", "rockchip,rk3399-crypto"],
        ("CRYPTO_DEV_ROCKCHIP", "rk_crypto"),
    ),
    engine(
        ("caam", "NXP i.MX6, 7, 8M, LS10xx, QorIQ"),
        &["-caam"],
        &["fsl,sec-v4.0", "fsl,sec-v5.0", "fsl,sec-v5.4"],
        ("CRYPTO_DEV_FSL_CAAM_JR", "caam_jr"),
    ),
    engine(
        ("dcp", "NXP i.MX23, 28, 6SLL, 6ULL"),
        &["-dcp"],
        &["fsl,imx23-dcp", "fsl,imx28-dcp"],
        ("CRYPTO_DEV_MXS_DCP", "mxs-dcp"),
    ),
    engine(
        ("sun8i-ce", "Allwinner H3, H5, H6, H616, A64, R40, D1"),
        &["sun8i-ce"],
        &[
            "allwinner,sun8i-h3-crypto",
            "allwinner,sun8i-r40-crypto",
            "allwinner,sun50i-a64-crypto",
            "allwinner,sun50i-h5-crypto",
            "allwinner,sun50i-h6-crypto",
            "allwinner,sun50i-h616-crypto",
            "allwinner,sun20i-d1-crypto",
        ],
        ("CRYPTO_DEV_SUN8I_CE", "sun8i-ce"),
    ),
    engine(
        ("sun8i-ss", "Allwinner A80, A83T"),
        &["sun8i-ss"],
        &["allwinner,sun8i-a83t-crypto", "allwinner,sun9i-a80-crypto"],
        ("CRYPTO_DEV_SUN8I_SS", "sun8i-ss"),
    ),
    engine(
        ("sun4i-ss", "Allwinner A10, A13, A20, A31, A33"),
        &["sun4i-ss"],
        &["allwinner,sun4i-a10-crypto", "allwinner,sun8i-a33-crypto"],
        ("CRYPTO_DEV_SUN4I_SS", "sun4i-ss"),
    ),
    engine(
        ("atmel-aes", "Microchip SAMA5D2, D3, D4, SAM9X60"),
        &["atmel-cbc-aes", "atmel-ecb-aes", "atmel-ctr-aes", "atmel-gcm-aes", "atmel-xts-aes"],
        &["atmel,at91sam9g46-aes"],
        ("CRYPTO_DEV_ATMEL_AES", "atmel-aes"),
    ),
    engine(
        ("atmel-sha", "Microchip SAMA5D2, D3, D4, SAM9X60"),
        &["atmel-sha", "atmel-hmac"],
        &["atmel,at91sam9g46-sha"],
        ("CRYPTO_DEV_ATMEL_SHA", "atmel-sha"),
    ),
    engine(
        ("stm32-cryp", "ST STM32MP15x, MP13x"),
        &["stm32-cbc", "stm32-ecb", "stm32-ctr", "stm32-gcm"],
        &["st,stm32f756-cryp", "st,stm32mp1-cryp"],
        ("CRYPTO_DEV_STM32_CRYP", "stm32-cryp"),
    ),
    engine(
        ("stm32-hash", "ST STM32MP15x, MP13x"),
        &["stm32-sha", "stm32-hmac", "stm32-md5"],
        &["st,stm32f456-hash", "st,stm32f756-hash", "st,stm32mp13-hash"],
        ("CRYPTO_DEV_STM32_HASH", "stm32-hash"),
    ),
    engine(
        ("ccree", "Arm CryptoCell 630P, 703, 710, 712, 713"),
        &["-ccree"],
        &["arm,cryptocell-"],
        ("CRYPTO_DEV_CCREE", "ccree"),
    ),
    engine(
        ("gxl", "Amlogic S905X, S905D, S912"),
        &["-gxl"],
        &["amlogic,gxl-crypto"],
        ("CRYPTO_DEV_AMLOGIC_GXL", "amlogic-gxl-crypto"),
    ),
    engine(
        ("s5p-sss", "Samsung S5PV210, Exynos 4 and 5"),
        &["-s5p", "exynos-sha", "exynos-md5"],
        &["samsung,s5pv210-secss", "samsung,exynos4210-secss", "samsung,exynos5433-slim-sss"],
        ("CRYPTO_DEV_S5P", "s5p-sss"),
    ),
    engine(
        ("virtio-crypto", "QEMU's virtual machines"),
        &["virtio_crypto_"],
        &[],
        ("CRYPTO_DEV_VIRTIO", "virtio_crypto"),
    ),
];

const PLATFORM: &str = "/sys/bus/platform/devices";
const VIRTIO: &str = "/sys/bus/virtio/devices";
/// A crypto device's number among virtio's, as the kernel writes it.
const VIRTIO_CRYPTO: u32 = 20;

/// Engines that are there and of which the kernel lists no driver.
pub(super) fn undriven(root: &SystemRoot, kernel: &Kernel, listed: &DriverList) -> Vec<DevicePath> {
    let mut paths: Vec<DevicePath> = Vec::new();
    for (engine, device, driver) in platform_devices(root).chain(virtio_devices(root)) {
        let is_listed = listed
            .hardware
            .iter()
            .any(|it| Engine::of_driver(&it.driver).is_some_and(|other| other.name == engine.name));
        if is_listed || paths.iter().any(|path| path.name == engine.name) {
            continue;
        }
        paths.push(DevicePath {
            name: engine.name.to_owned(),
            what: Some(format!("{}, {device}", engine.chips)),
            has_device: true,
            obstacle: Some(why_unlisted(kernel, engine, &device, driver)),
        });
    }
    paths
}

fn why_unlisted(kernel: &Kernel, engine: &Engine, device: &str, driver: Option<String>) -> Obstacle {
    let Engine { name, option, module, .. } = engine;
    let part = Part { option, module, is_for: "drives this engine", is_fetched: false };
    if let Some(driver) = driver {
        let fact = format!(
            "the driver {driver} has {device}, and the kernel lists nothing by {name} that Evener does"
        );
        let cure = format!(
            "`dmesg | grep -i {name}`: a self-test may have failed; `zgrep {option} /proc/config.gz` shows its ciphers"
        );
        return Obstacle::new(Kind::Driver, fact, cure);
    }
    kernel.part(&part).unwrap_or_else(|| {
        let fact = format!("no driver has taken {device}");
        let cure = format!("`modprobe {module}` as root, then `dmesg | grep -i {name}`");
        Obstacle::new(Kind::Driver, fact, cure)
    })
}

type Found = (&'static Engine, String, Option<String>);

/// Engines that the device tree names, with their driver.
fn platform_devices(root: &SystemRoot) -> impl Iterator<Item = Found> + '_ {
    root.names(PLATFORM).into_iter().filter_map(|device| {
        let about = root.text(&format!("{PLATFORM}/{device}/uevent"))?;
        let values = |key: &str| {
            let key = key.to_owned();
            about.lines().filter_map(move |line| {
                let (name, value) = line.split_once('=')?;
                name.starts_with(&key).then(|| value.to_owned())
            })
        };
        let engine = values("OF_COMPATIBLE_").find_map(|name| Engine::of_compatible(&name))?;
        let driver = values("DRIVER").next();
        Some((engine, device, driver))
    })
}

fn virtio_devices(root: &SystemRoot) -> impl Iterator<Item = Found> + '_ {
    let number = |text: String| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
    root.names(VIRTIO).into_iter().filter_map(move |device| {
        let is_one = number(root.text(&format!("{VIRTIO}/{device}/device"))?) == Some(VIRTIO_CRYPTO);
        let engine = is_one.then(|| Engine::of_driver("virtio_crypto_aes_cbc")).flatten()?;
        Some((engine, device.clone(), root.target(&format!("{VIRTIO}/{device}/driver"))))
    })
}
