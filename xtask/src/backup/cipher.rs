//! Locking a backup with age, so that a copy of it elsewhere tells nobody anything: for recipients, of whom each can open it with an
//! identity file of their own, or with a passphrase. What age's own program writes can be read here, and the other way round.

use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};

use age::secrecy::SecretString;
use age::x25519::Recipient;
use age::{DecryptError, Decryptor, Encryptor, Identity, IdentityFile, scrypt};
use anyhow::{Context, Result, anyhow, ensure};
use memory::settings;

use super::name::Locking;
use crate::files;
use crate::output::{HintExt, hinted};

/// How new backups are locked.
pub(super) enum Lock {
    Open,
    Recipients(Vec<Recipient>),
    Passphrase(SecretString),
}

/// Where the key to a backup is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeySource {
    /// A file with age identities (`AGE-SECRET-KEY-...`).
    pub identity: Option<PathBuf>,
    pub passphrase_file: Option<PathBuf>,
}

/// What opens a backup; nothing is needed for one that is not locked.
pub struct Key(Vec<Box<dyn Identity + Send + Sync>>);

impl Lock {
    /// As the settings say.
    pub(super) fn of(settings: &settings::Backup) -> Result<Self> {
        let has_passphrase = !settings.passphrase_file.as_os_str().is_empty();
        if has_passphrase && !settings.recipients.is_empty() {
            let error = anyhow!("settings.toml sets both `backup.recipients` and `backup.passphrase_file`");
            return Err(hinted(error, "keep one of them: age locks a file in one way or the other"));
        }
        if has_passphrase {
            return Ok(Self::Passphrase(passphrase(&settings.passphrase_file)?));
        }
        if settings.recipients.is_empty() {
            return Ok(Self::Open);
        }
        let parse = |text: &String| {
            let recipient = text.trim().parse::<Recipient>();
            let recipient = recipient.map_err(|why| anyhow!("`{text}` in `backup.recipients` is no public key: {why}"));
            recipient.hint("a public key begins with `age1`; `age-keygen` makes one and prints it")
        };
        Ok(Self::Recipients(settings.recipients.iter().map(parse).collect::<Result<_>>()?))
    }

    pub(super) const fn locking(&self) -> Locking {
        match self {
            Self::Open => Locking::Plain,
            Self::Recipients(_) | Self::Passphrase(_) => Locking::Encrypted,
        }
    }

    /// What locks all that is written through it; `None` where nothing is to be locked.
    pub(super) fn encryptor(self) -> Result<Option<Encryptor>> {
        match self {
            Self::Open => Ok(None),
            Self::Recipients(recipients) => {
                let recipients = recipients.iter().map(|recipient| recipient as &dyn age::Recipient);
                Ok(Some(Encryptor::with_recipients(recipients).context("cannot encrypt for these recipients")?))
            }
            Self::Passphrase(passphrase) => Ok(Some(Encryptor::with_user_passphrase(passphrase))),
        }
    }
}

impl KeySource {
    /// The key that was named, else the passphrase that the settings name.
    pub fn key(&self, settings: &settings::Backup) -> Result<Key> {
        let mut identities: Vec<Box<dyn Identity + Send + Sync>> = Vec::new();
        if let Some(path) = &self.identity {
            let reading = || format!("cannot read identities from `{}`", path.display());
            let file = std::fs::File::open(path).with_context(reading)?;
            let file = IdentityFile::from_buffer(io::BufReader::new(file)).with_context(reading);
            let file = file.hint("it holds lines that begin with `AGE-SECRET-KEY-`, as `age-keygen` writes them")?;
            identities.extend(file.into_identities().map_err(|error| anyhow!("{error}")).with_context(reading)?);
            ensure!(!identities.is_empty(), "`{}` holds no identity", path.display());
        }
        let named = self.passphrase_file.as_deref();
        let set = Some(settings.passphrase_file.as_path()).filter(|path| !path.as_os_str().is_empty());
        if let Some(path) = named.or(set.filter(|path| path.exists())) {
            identities.push(Box::new(scrypt::Identity::new(passphrase(path)?)));
        }
        Ok(Key(identities))
    }
}

impl Key {
    /// Reads what was locked.
    pub(super) fn open<'a>(&self, locked: impl BufRead + Send + 'a) -> Result<Box<dyn Read + Send + 'a>> {
        let decryptor = Decryptor::new_buffered(locked).map_err(|error| told(&error))?;
        if self.0.is_empty() {
            let hint = if decryptor.is_scrypt() {
                "give its passphrase: `--passphrase-file FILE`"
            } else {
                "give the secret key of one of its recipients: `--identity FILE`"
            };
            return Err(hinted(anyhow!("the backup is encrypted"), hint));
        }
        let identities = self.0.iter().map(|identity| identity.as_ref() as &dyn Identity);
        Ok(Box::new(decryptor.decrypt(identities).map_err(|error| told(&error))?))
    }
}

fn told(error: &DecryptError) -> anyhow::Error {
    let hint = match error {
        DecryptError::NoMatchingKeys | DecryptError::DecryptionFailed => {
            "it was encrypted for another key: `--identity FILE` or `--passphrase-file FILE` names the right one"
        }
        _ => "the file is damaged, or no age file; `cargo xtask backup list` shows the others",
    };
    hinted(anyhow!("{error}").context("the backup cannot be decrypted"), hint)
}

/// The first line of a file that nobody else may read.
fn passphrase(path: &Path) -> Result<SecretString> {
    let text =
        files::read_if_there(path)?.with_context(|| format!("there is no passphrase file `{}`", path.display()))?;
    let line = text.lines().next().unwrap_or_default().trim();
    ensure!(!line.is_empty(), "the passphrase file `{}` is empty", path.display());
    Ok(SecretString::from(line.to_owned()))
}

/// Writes that go through age or not.
pub(super) enum Locked<W: Write> {
    Plain(W),
    Encrypted(age::stream::StreamWriter<W>),
}

impl<W: Write> Locked<W> {
    pub(super) fn around(inner: W, encryptor: Option<Encryptor>) -> io::Result<Self> {
        Ok(match encryptor {
            None => Self::Plain(inner),
            Some(encryptor) => Self::Encrypted(encryptor.wrap_output(inner)?),
        })
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(inner) => inner.write_all(bytes),
            Self::Encrypted(inner) => inner.write_all(bytes),
        }
    }

    /// Writes what is left; without it the end is missing, and age refuses the file.
    pub(super) fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(inner) => Ok(inner),
            Self::Encrypted(inner) => inner.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use age::secrecy::ExposeSecret;

    use super::*;

    fn locked(settings: &settings::Backup) -> Vec<u8> {
        let encryptor = Lock::of(settings).unwrap().encryptor().unwrap();
        let mut locked = Locked::around(Vec::new(), encryptor).unwrap();
        locked.write_all(b"the journal").unwrap();
        locked.finish().unwrap()
    }

    fn opened(key: &Key, locked: &[u8]) -> Result<String> {
        let mut text = String::new();
        key.open(locked)?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn what_is_locked_for_a_recipient_opens_with_their_identity_only() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (age::x25519::Identity::generate(), age::x25519::Identity::generate());
        let source = |identity: &age::x25519::Identity, name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("# a comment\n{}\n", identity.to_string().expose_secret())).unwrap();
            KeySource { identity: Some(path), passphrase_file: None }
        };
        let settings = settings::Backup { recipients: vec![one.to_public().to_string()], ..Default::default() };
        let locked = locked(&settings);
        assert!(!locked.windows(11).any(|bytes| bytes == b"the journal"));
        assert_eq!(opened(&source(&one, "one").key(&settings).unwrap(), &locked).unwrap(), "the journal");
        let refused = opened(&source(&other, "other").key(&settings).unwrap(), &locked).unwrap_err();
        assert!(crate::output::report(&refused).contains("hint: it was encrypted for another key"));
        let without = opened(&KeySource::default().key(&settings).unwrap(), &locked).unwrap_err();
        assert!(crate::output::report(&without).contains("--identity"));
        assert!(opened(&source(&one, "one").key(&settings).unwrap(), &locked[..locked.len() - 1]).is_err());
    }

    #[test]
    fn a_passphrase_of_the_settings_opens_what_it_locked() {
        let folder = tempfile::tempdir().unwrap();
        let passphrase_file = folder.path().join("passphrase");
        std::fs::write(&passphrase_file, "correct horse\n").unwrap();
        let settings = settings::Backup { passphrase_file, ..Default::default() };
        let locked = locked(&settings);
        assert_eq!(opened(&KeySource::default().key(&settings).unwrap(), &locked).unwrap(), "the journal");
        let other = folder.path().join("other");
        std::fs::write(&other, "wrong\n").unwrap();
        let source = KeySource { identity: None, passphrase_file: Some(other) };
        assert!(opened(&source.key(&settings).unwrap(), &locked).is_err());
    }

    #[test]
    fn refuses_a_key_that_is_none_and_two_ways_at_once() {
        let told = |settings| crate::output::report(&Lock::of(&settings).err().unwrap());
        let recipients = vec!["ssh-ed25519 AAAA".to_owned()];
        assert!(told(settings::Backup { recipients: recipients.clone(), ..Default::default() }).contains("age-keygen"));
        assert!(
            told(settings::Backup { recipients, passphrase_file: "/p".into(), ..Default::default() }).contains("both")
        );
        assert!(
            told(settings::Backup { passphrase_file: "/no/such".into(), ..Default::default() }).contains("/no/such")
        );
    }
}
