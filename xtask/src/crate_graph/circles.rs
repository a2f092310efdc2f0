//! Circles: files of which each leads to each (Tarjan's strongly connected components, SIAM J. Comput. 1 (1972)).

use std::collections::BTreeMap;

use super::arrows::Arrow;

/// The circles of these arrows, each with its files in order.
pub(crate) fn circles(arrows: &[Arrow]) -> Vec<Vec<String>> {
    let mut search = Search::default();
    for arrow in arrows {
        search.next.entry(&arrow.from).or_default().push(&arrow.to);
    }
    let starts: Vec<&str> = search.next.keys().copied().collect();
    for start in starts {
        if !search.visited.contains_key(start) {
            search.visit(start);
        }
    }
    search.found
}

#[derive(Default)]
struct Search<'a> {
    next: BTreeMap<&'a str, Vec<&'a str>>,
    /// Number of each file, and the least that it leads to.
    visited: BTreeMap<&'a str, (usize, usize)>,
    open: Vec<&'a str>,
    found: Vec<Vec<String>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, file: &'a str) {
        let number = self.visited.len();
        self.visited.insert(file, (number, number));
        self.open.push(file);
        for to in self.next.get(file).cloned().unwrap_or_default() {
            let reached = match self.visited.get(to) {
                None => {
                    self.visit(to);
                    self.visited[to].1
                }
                Some(&(number, _)) if self.open.contains(&to) => number,
                Some(_) => continue,
            };
            let least = &mut self.visited.get_mut(file).expect("it was just put there").1;
            *least = (*least).min(reached);
        }
        if self.visited[file].1 == number {
            let at = self.open.iter().rposition(|&open| open == file).expect("it is open");
            let mut circle: Vec<String> = self.open.drain(at..).map(str::to_owned).collect();
            circle.sort();
            if circle.len() > 1 {
                self.found.push(circle);
            }
        }
    }
}
