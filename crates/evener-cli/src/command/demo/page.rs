//! The page: one file, no script, pictures inside.

/// A heading and what stands below it.
#[derive(Default)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) parts: Vec<Part>,
}

pub(super) enum Part {
    Sentence(String),
    /// What a terminal showed.
    Screen(String),
    Table {
        head: Vec<&'static str>,
        rows: Vec<Vec<String>>,
    },
    /// SVG, as it is.
    Picture {
        svg: String,
        caption: String,
    },
}

impl Section {
    pub(super) fn new(title: &str) -> Self {
        Self { title: title.to_owned(), parts: Vec::new() }
    }
}

/// The whole page: `head` first.
pub(super) fn html<'s>(head: &'s Section, sections: impl Iterator<Item = &'s Section>) -> String {
    let title = escaped(&head.title);
    let body: String = std::iter::once(head)
        .chain(sections)
        .enumerate()
        .map(|(at, section)| section.html(if at == 0 { "h1" } else { "h2" }))
        .collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}

impl Section {
    fn html(&self, level: &str) -> String {
        let parts: String = self.parts.iter().map(Part::html).collect();
        format!("<{level}>{}</{level}>\n{parts}", escaped(&self.title))
    }
}

impl Part {
    fn html(&self) -> String {
        match self {
            Self::Sentence(text) => format!("<p>{}</p>\n", escaped(text)),
            Self::Screen(text) => format!("<pre>{}</pre>\n", escaped(text.trim_end())),
            Self::Table { head, rows } => {
                let body: String =
                    rows.iter().map(|texts| row("td", texts.iter().map(String::as_str))).collect();
                format!("<table>\n{}{body}</table>\n", row("th", head.iter().copied()))
            }
            Self::Picture { svg, caption } => {
                format!("<figure>\n{svg}\n<figcaption>{}</figcaption>\n</figure>\n", escaped(caption))
            }
        }
    }
}

fn row<'t>(cell: &str, texts: impl Iterator<Item = &'t str>) -> String {
    let cells: String = texts.map(|text| format!("<{cell}>{}</{cell}>", escaped(text))).collect();
    format!("<tr>{cells}</tr>\n")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

const STYLE: &str = "body{max-width:60rem;margin:2rem auto;padding:0 1rem;font:1rem/1.5 sans-serif;color:#222;background:#fff}\
    pre{overflow-x:auto;background:#f4f4f4;padding:.6rem;font-size:.8rem;line-height:1.3}\
    table{border-collapse:collapse}th,td{text-align:left;padding:.2rem 1rem .2rem 0;border-bottom:1px solid #ddd}\
    figure{margin:1rem 0}svg{max-width:100%;height:auto}figcaption{font-size:.9rem}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_said_is_text_and_no_markup_and_a_picture_stays_one() {
        let mut section = Section::new("a < b");
        section.parts.push(Part::Screen("<script>alert(1)</script> & more".to_owned()));
        section.parts.push(Part::Table { head: vec!["x"], rows: vec![vec!["<b>".to_owned()]] });
        section.parts.push(Part::Picture { svg: "<svg></svg>".to_owned(), caption: "c".to_owned() });
        let page = html(&Section::new("head"), [&section].into_iter());
        assert!(!page.contains("<script") && !page.contains("<b>") && page.contains("&amp; more"), "{page}");
        assert!(page.contains("<svg></svg>") && page.contains("<h2>a &lt; b</h2>"), "{page}");
        assert!(page.ends_with("</html>\n"), "{page}");
    }
}
