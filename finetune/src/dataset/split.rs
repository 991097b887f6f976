//! Which rows are trained on, which choose the best checkpoint, and which are sealed for the final comparison. A session is never
//! in two of them, and within a repository the later sessions are the held-out ones, as they will be when the model is in use.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::settings::SplitShares;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    Train,
    Validation,
    Test,
}

impl Split {
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

/// How many rows a session has, and of which project it is. Sessions of a project stand together, in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionRows {
    pub project: u32,
    pub rows: usize,
}

/// The split of each session. A session cannot be parted: one is held out if that brings its set nearer to its share. No project loses
/// its last session to the held-out sets, and none of them stays empty if there is a session to spare.
pub(super) fn split(sessions: &[SessionRows], shares: &SplitShares) -> Vec<Split> {
    let mut splits = vec![Split::Train; sessions.len()];
    let projects = projects(sessions);
    // What the sets should have by now, less what they have: projects that are too small to give to a set leave it to the next.
    let (mut test, mut validation) = (0.0, 0.0);
    for project in &projects {
        let rows: usize = sessions[project.clone()].iter().map(|session| session.rows).sum();
        test += rows as f64 * shares.test;
        validation += rows as f64 * shares.validation;
        let mut place = project.end;
        for (owed, set) in [(&mut test, Split::Test), (&mut validation, Split::Validation)] {
            while place > project.start + 1 && (sessions[place - 1].rows as f64) < 2.0 * *owed {
                place -= 1;
                splits[place] = set;
                *owed -= sessions[place].rows as f64;
            }
        }
    }
    for (set, other, share) in
        [(Split::Test, Split::Validation, shares.test), (Split::Validation, Split::Test, shares.validation)]
    {
        if share > 0.0 && !splits.contains(&set) {
            // One of the other set's, if it has several.
            let mut held_out = (0..splits.len()).filter(|place| splits[*place] == other);
            if let (Some(first), Some(_)) = (held_out.next(), held_out.next()) {
                splits[first] = set;
                continue;
            }
            // Else the latest session of a project that is left with others; the smallest of them.
            let latest = projects.iter().filter_map(|project| {
                let mut trained = project.clone().filter(|place| splits[*place] == Split::Train);
                let last = trained.next_back()?;
                trained.next().map(|_| last)
            });
            if let Some(place) = latest.min_by_key(|place| sessions[*place].rows) {
                splits[place] = set;
            }
        }
    }
    splits
}

/// Which sessions are of one project.
fn projects(sessions: &[SessionRows]) -> Vec<Range<usize>> {
    let mut projects = Vec::new();
    let mut start = 0;
    while start < sessions.len() {
        let end = start + sessions[start..].iter().take_while(|other| other.project == sessions[start].project).count();
        projects.push(start..end);
        start = end;
    }
    projects
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sessions(rows: &[(u32, usize)]) -> Vec<SessionRows> {
        rows.iter().map(|(project, rows)| SessionRows { project: *project, rows: *rows }).collect()
    }

    #[test]
    fn holds_out_the_latest_sessions() {
        let splits = split(&sessions(&[(1, 5); 40]), &SplitShares::default());
        assert_eq!(splits.iter().filter(|split| **split == Split::Train).count(), 36);
        assert_eq!(splits[36..], [Split::Validation, Split::Validation, Split::Test, Split::Test]);
    }

    #[test]
    fn leaves_every_project_something_to_train_on() {
        let splits = split(&sessions(&[(1, 50), (2, 1), (2, 1), (2, 1)]), &SplitShares::default());
        assert_eq!(splits, [Split::Train, Split::Train, Split::Validation, Split::Test]);
        assert_eq!(split(&sessions(&[(1, 50)]), &SplitShares::default()), [Split::Train]);
        assert!(split(&[], &SplitShares::default()).is_empty());
    }

    #[test]
    fn holds_out_no_session_that_is_most_of_the_journal() {
        let splits =
            split(&sessions(&[(1, 10), (1, 10), (1, 1_000), (2, 30), (2, 30), (2, 30)]), &SplitShares::default());
        assert_eq!(splits[2], Split::Train);
        assert!(splits.contains(&Split::Test) && splits.contains(&Split::Validation));
    }

    #[test]
    fn leaves_no_set_empty_if_there_is_a_session_to_spare() {
        let splits = split(&sessions(&[(1, 10), (1, 10), (1, 10)]), &SplitShares::default());
        assert_eq!(splits, [Split::Train, Split::Validation, Split::Test]);
    }

    proptest! {
        #[test]
        fn comes_near_the_shares_and_trains_on_every_project(
            projects in proptest::collection::vec(proptest::collection::vec(1_usize..30, 1..30), 1..8),
        ) {
            let all: Vec<_> = projects
                .iter()
                .enumerate()
                .flat_map(|(project, rows)| rows.iter().map(move |rows| (project as u32, *rows)))
                .collect();
            let splits = split(&sessions(&all), &SplitShares::default());
            let total: usize = all.iter().map(|(_, rows)| rows).sum();
            for set in [Split::Validation, Split::Test] {
                let rows: usize = all.iter().zip(&splits).filter(|(_, split)| **split == set).map(|((_, rows), _)| rows).sum();
                // Twice what was owed at most, or the one session that a set has at least.
                let sessions = splits.iter().filter(|split| **split == set).count();
                prop_assert!(rows as f64 <= total as f64 * 0.10 || sessions == 1);
            }
            for project in 0..projects.len() as u32 {
                prop_assert!(all.iter().zip(&splits).any(|((of, _), split)| *of == project && *split == Split::Train));
            }
            // Within a project, later is never trained on when earlier is held out.
            for ((one, next), pair) in all.iter().zip(&all[1..]).zip(splits.windows(2)) {
                prop_assert!(one.0 != next.0 || pair[0] == Split::Train || pair[1] != Split::Train);
            }
        }
    }
}
