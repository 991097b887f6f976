//! Flags that have a short and a long form, of the programs whose mistakes cost most. What is not listed stays as it was written.

/// What a short flag is called in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flag {
    pub(super) long: &'static str,
    /// Whether what follows is its value: the rest of the word, or the next one.
    pub(super) has_value: bool,
}

/// By program, with its subcommand where the flags are that one's: `f:force` is a flag, `m=message` one with a value.
const KNOWN: [(&str, &str); 37] = [
    ("rm", "r:recursive R:recursive f:force i:interactive d:dir v:verbose"),
    ("cp", "r:recursive R:recursive a:archive f:force n:no-clobber v:verbose"),
    ("mv", "f:force n:no-clobber v:verbose"),
    ("ln", "s:symbolic f:force"),
    ("mkdir", "p:parents"),
    ("chmod", "R:recursive v:verbose"),
    ("chown", "R:recursive v:verbose"),
    (
        "curl",
        "k:insecure s:silent S:show-error L:location f:fail X=request d=data H=header o=output O:remote-name u=user",
    ),
    ("git push", "f:force d:delete u:set-upstream n:dry-run q:quiet"),
    ("git clean", "f:force d:directories x:ignored X:only-ignored n:dry-run q:quiet"),
    ("git commit", "a:all m=message n:no-verify s:signoff q:quiet F=file"),
    ("git branch", "D:delete-force d:delete f:force m:move M:move-force"),
    ("git checkout", "f:force b=branch B=branch-force q:quiet"),
    ("git switch", "f:discard-changes c=create C=force-create"),
    ("git add", "A:all f:force u:update p:patch"),
    ("git tag", "d:delete f:force a:annotate m=message"),
    ("git stash", "u:include-untracked a:all"),
    ("git rebase", "i:interactive"),
    ("git fetch", "f:force p:prune"),
    ("git restore", "S:staged W:worktree s=source"),
    ("docker rm", "f:force v:volumes"),
    ("docker rmi", "f:force"),
    ("docker system prune", "a:all f:force"),
    ("docker volume rm", "f:force"),
    ("docker volume prune", "a:all f:force"),
    ("docker compose down", "v:volumes"),
    ("docker compose up", "d:detach"),
    ("kubectl delete", "n=namespace f=filename A:all-namespaces l=selector"),
    ("kubectl apply", "n=namespace f=filename"),
    ("npm install", "g:global D:save-dev f:force"),
    ("pnpm add", "g:global D:save-dev w:workspace-root"),
    ("pip install", "U:upgrade r=requirement e=editable"),
    ("apt install", "y:yes"),
    ("apt-get install", "y:yes"),
    ("cargo publish", "p=package"),
    ("cargo test", "p=package r:release"),
    ("psql", "c=command f=file d=dbname h=host U=username"),
];

/// Other names of subcommands.
const SUBCOMMANDS: [(&str, &str, &str); 6] = [
    ("npm", "i", "install"),
    ("npm", "add", "install"),
    ("npm", "un", "uninstall"),
    ("npm", "remove", "uninstall"),
    ("pnpm", "i", "install"),
    ("cargo", "t", "test"),
];

/// The flag that this letter stands for.
pub(super) fn of_letter(program: &str, letter: char) -> Option<Flag> {
    let (_, flags) = KNOWN.iter().find(|(name, _)| *name == program)?;
    flags.split(' ').find_map(|flag| {
        let long = flag.strip_prefix(letter)?;
        long.strip_prefix(':').map(|long| Flag { long, has_value: false }).or_else(|| {
            let long = long.strip_prefix('=')?;
            Some(Flag { long, has_value: true })
        })
    })
}

/// The usual name of a subcommand.
pub(super) fn subcommand<'a>(program: &str, name: &'a str) -> &'a str {
    SUBCOMMANDS.iter().find(|(of, other, _)| *of == program && *other == name).map_or(name, |(.., usual)| usual)
}
