//! The files of the page (`bench/web`), which are part of the program: nothing is fetched from anywhere.

/// A file as the server sends it.
pub(super) struct Asset {
    pub(super) path: &'static str,
    pub(super) kind: &'static str,
    pub(super) bytes: &'static [u8],
}

macro_rules! assets {
    ($($path:literal $kind:literal $file:literal;)*) => {
        [$(Asset { path: $path, kind: $kind, bytes: include_bytes!(concat!("../../web/", $file)) }),*]
    };
}

/// All of them, the page itself first.
pub(super) const ASSETS: [Asset; 8] = assets! {
    "/" "text/html; charset=utf-8" "index.html";
    "/page.js" "text/javascript; charset=utf-8" "page.js";
    "/measure.js" "text/javascript; charset=utf-8" "measure.js";
    "/form.html" "text/html; charset=utf-8" "form.html";
    "/form.js" "text/javascript; charset=utf-8" "form.js";
    "/page.css" "text/css; charset=utf-8" "page.css";
    "/uplot.js" "text/javascript; charset=utf-8" "vendor/uplot/uPlot.iife.min.js";
    "/uplot.css" "text/css; charset=utf-8" "vendor/uplot/uPlot.min.css";
};

/// The page that answers a form, which reads its own Navigation Timing.
pub(super) const FORM: &str = "/form.html";

pub(super) fn asset(path: &str) -> Option<&'static Asset> {
    const EVERY: &[Asset] = &ASSETS;
    EVERY.iter().find(|asset| asset.path == path)
}
