//! Invents secrets in the formats of their issuers, and texts that carry them: what must never be kept.
//!
//! Everything comes from a seed, so that a failure can be repeated, and nothing here is whole before it runs: neither a
//! person nor a scanner can take it for a real one. `memory`'s own tests include this file too, so it uses the standard
//! library only.

/// A secret and a text that carries it.
#[derive(Debug, Clone)]
pub struct Canary {
    pub kind: &'static str,
    pub secret: String,
    pub text: String,
}

pub const LOWER_HEX: &str = "0123456789abcdef";
pub const ALPHANUMERIC: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
pub const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub const BASE64_URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const DIGITS: &str = "0123456789";
/// What people put into passwords and neither shell, JSON nor URL minds.
const PASSWORD: &str = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789.+_~-";

/// Numbers that look random and are the same for the same seed (the generator splitmix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A text of that many letters of an alphabet.
    pub fn text(&mut self, alphabet: &str, length: usize) -> String {
        let letters = alphabet.as_bytes();
        (0..length).map(|_| char::from(letters[(self.draw() % letters.len() as u64) as usize])).collect()
    }

    pub fn uuid(&mut self) -> String {
        [8, 4, 4, 4, 12].map(|length| self.text(LOWER_HEX, length)).join("-")
    }

    /// A password that no one could take for a word: letters, digits and signs, never beginning or ending with a sign.
    pub fn password(&mut self) -> String {
        let length = 9 + self.draw() % 12;
        format!(
            "{}{}{}{}",
            self.text("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ", 2),
            self.text(DIGITS, 1),
            self.text(PASSWORD, length as usize),
            self.text(ALPHANUMERIC, 2)
        )
    }
}

/// Every kind of secret in every place in which it can stand: more than 300.
pub fn canaries(seed: u64) -> Vec<Canary> {
    let dice = &mut Dice::of(seed);
    let mut all = Vec::new();
    let kinds = tokens(dice).len();
    for round in 0..4 {
        for (place, (kind, secret)) in tokens(dice).into_iter().enumerate() {
            // Each token visits other places each round.
            let text = carry(&secret, place + round * (kinds / 4 + 1));
            all.push(Canary { kind, secret, text });
        }
    }
    for _ in 0..3 {
        all.extend(named_secrets(dice));
        all.extend(private_keys(dice));
    }
    all
}

/// Tokens that can be told by their own form, wherever they stand.
fn tokens(dice: &mut Dice) -> Vec<(&'static str, String)> {
    // The parts: fixed texts, and the lengths and alphabets of what is random.
    let mut make = |parts: &[(&str, &str, usize)]| -> String {
        parts.iter().flat_map(|(fixed, alphabet, length)| [(*fixed).to_owned(), dice.text(alphabet, *length)]).collect()
    };
    let hex = LOWER_HEX;
    let any = ALPHANUMERIC;
    let url = BASE64_URL;
    vec![
        ("aws-access-key", make(&[("AK", "I", 1), ("A", BASE32, 16)])),
        ("gcp-api-key", make(&[("AI", "z", 1), ("a", url, 35)])),
        ("google-oauth-token", make(&[("ya", "2", 1), ("9.", url, 60)])),
        ("google-client-secret", make(&[("GOC", "S", 1), ("PX-", url, 28)])),
        ("azure-client-secret", make(&[("", any, 3), ("8", "Q", 1), ("~", any, 34)])),
        ("digitalocean-token", make(&[("do", "p", 1), ("_v1_", hex, 64)])),
        ("cloudflare-origin-ca-key", make(&[("v1", ".", 1), ("0-", hex, 24), ("-", hex, 146)])),
        ("heroku-token", make(&[("HR", "K", 1), ("U-AA", url, 58)])),
        ("fly-token", make(&[("fm", "2", 1), ("_", any, 80)])),
        ("github-token", make(&[("gh", "p", 1), ("_", any, 36)])),
        ("github-app-token", make(&[("gh", "s", 1), ("_", any, 36)])),
        ("github-fine-grained-token", make(&[("github", "_", 1), ("pat_", any, 22), ("_", any, 59)])),
        ("gitlab-token", make(&[("gl", "p", 1), ("at-", url, 20)])),
        ("gitlab-deploy-token", make(&[("gl", "d", 1), ("t-", any, 24)])),
        ("bitbucket-token", make(&[("AT", "B", 2), ("", any, 32)])),
        ("atlassian-token", make(&[("ATA", "T", 2), ("3xFfG", "F", 1), ("F0", any, 120)])),
        ("circleci-token", make(&[("CC", "I", 1), ("PAT_", any, 22), ("_", hex, 40)])),
        ("sonar-token", make(&[("sq", "u", 1), ("_", hex, 40)])),
        ("slack-token", make(&[("xo", "x", 1), ("b-", DIGITS, 12), ("-", DIGITS, 12), ("-", any, 24)])),
        ("slack-app-token", make(&[("xa", "p", 2), ("-1-A", UPPER, 10), ("-", DIGITS, 13), ("-", hex, 64)])),
        ("telegram-bot-token", make(&[("", "123456789", 9), (":", "A", 2), ("", url, 33)])),
        ("stripe-key", make(&[("sk", "_", 1), ("live_", any, 24)])),
        ("stripe-webhook-secret", make(&[("wh", "s", 1), ("ec_", any, 32)])),
        ("square-token", make(&[("sq", "0", 1), ("atp-", url, 22)])),
        ("shopify-token", make(&[("sh", "p", 1), ("at_", hex, 32)])),
        ("twilio-key", make(&[("S", "K", 1), ("", hex, 32)])),
        ("sendgrid-key", make(&[("S", "G", 1), (".", url, 22), (".", url, 43)])),
        ("mailgun-key", make(&[("ke", "y", 1), ("-", hex, 32)])),
        ("mailchimp-key", make(&[("", hex, 32), ("-", "u", 1), ("s", "12", 1)])),
        ("brevo-key", make(&[("xkey", "s", 1), ("ib-", hex, 64), ("-", any, 16)])),
        ("npm-token", make(&[("np", "m", 1), ("_", any, 36)])),
        ("pypi-token", make(&[("pypi", "-", 1), ("AgEIcHlwaS5vcmc", url, 150)])),
        ("crates-io-token", make(&[("ci", "o", 1), ("", any, 32)])),
        ("nuget-key", make(&[("o", "y", 1), ("2", LOWER, 43)])),
        ("rubygems-key", make(&[("ruby", "g", 1), ("ems_", hex, 48)])),
        ("docker-hub-token", make(&[("dckr", "_", 1), ("pat_", url, 27)])),
        ("artifactory-token", make(&[("AK", "C", 1), ("p", any, 69)])),
        ("anthropic-key", make(&[("sk", "-", 1), ("ant-api03-", url, 93), ("", "A", 2)])),
        ("openai-key", make(&[("sk", "-", 1), ("proj-", url, 120)])),
        ("openai-legacy-key", make(&[("sk", "-", 1), ("", any, 20), ("T3Blbk", "F", 1), ("J", any, 20)])),
        ("hugging-face-token", make(&[("h", "f", 1), ("_", any, 34)])),
        ("groq-key", make(&[("gs", "k", 1), ("_", any, 52)])),
        ("replicate-token", make(&[("r", "8", 1), ("_", any, 37)])),
        ("newrelic-key", make(&[("NR", "A", 1), ("K-", UPPER, 27)])),
        ("dynatrace-token", make(&[("dt0", "c", 1), ("01.", UPPER, 24), (".", UPPER, 64)])),
        ("grafana-token", make(&[("gl", "s", 1), ("a_", any, 32), ("_", hex, 8)])),
        ("sentry-token", make(&[("snt", "r", 1), ("yu_", hex, 64)])),
        ("postman-key", make(&[("PM", "A", 1), ("K-", hex, 24), ("-", hex, 34)])),
        ("terraform-token", make(&[("", any, 14), (".atlas", "v", 1), ("1.", any, 67)])),
        ("vault-token", make(&[("hv", "s", 1), (".", url, 92)])),
        ("pulumi-token", make(&[("pu", "l", 1), ("-", hex, 40)])),
        ("doppler-token", make(&[("dp", ".", 1), ("pt.", any, 43)])),
        ("tailscale-key", make(&[("ts", "k", 1), ("ey-auth-", any, 16), ("-", any, 32)])),
        ("netlify-token", make(&[("nf", "p", 1), ("_", any, 36)])),
        ("vercel-token", make(&[("vc", "p", 1), ("_", any, 56)])),
        ("supabase-token", make(&[("sb", "p", 1), ("_", hex, 40)])),
        ("planetscale-secret", make(&[("psc", "a", 1), ("le_pw_", url, 43)])),
        ("databricks-token", make(&[("da", "p", 1), ("i", hex, 32)])),
        ("linear-key", make(&[("li", "n", 1), ("_api_", any, 40)])),
        ("notion-token", make(&[("nt", "n", 1), ("_", DIGITS, 11), ("", any, 35)])),
        ("airtable-token", make(&[("pa", "t", 1), ("", any, 14), (".", hex, 64)])),
        ("figma-token", make(&[("fi", "g", 1), ("d_", url, 40)])),
        ("age-secret-key", make(&[("AGE-SEC", "R", 1), ("ET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)])),
        ("minisign-secret-key", make(&[("RWR", "T", 1), ("Y0Iy", BASE64, 200)])),
        ("jwt", make(&[("ey", "J", 1), ("hbGciOiJIUzI1NiJ9.eyJ", url, 60), (".", url, 43)])),
    ]
}

/// Places that say nothing of what stands in them.
fn carry(secret: &str, place: usize) -> String {
    match place % 14 {
        0 => format!("Please use {secret} for the deployment, it is valid until Friday."),
        1 => format!("deploy --region eu --with {secret} --verbose && echo done"),
        2 => format!("2026-05-01T10:00:00Z INFO  client: connected with {secret} after 31 ms\nnext line"),
        3 => format!("{{\"outer\": {{\"items\": [{{\"id\": 7, \"note\": \"{secret}\"}}]}}}}"),
        4 => format!(r#"{{"body": "{{\"items\": [\"first\", \"{secret}\"]}}"}}"#),
        5 => format!("GET https://api.example.com/v1/items?page=2&access_token={secret}&sort=asc HTTP/1.1"),
        6 => format!("X-Custom-Header: {secret}\r\nAccept: */*"),
        7 => format!("DEBUG=1\nSERVICE_TOKEN={secret}\nPORT=8080\n"),
        8 => format!("service:\n  endpoint: https://example.com\n  value: {secret}\n  retries: 3\n"),
        9 => format!("const client = new Client('{secret}', {{ retries: 3 }});"),
        10 => format!(r"first line\n{secret}\nlast line of an escaped text"),
        11 => format!("\u{1b}[32m{secret}\u{1b}[0m was accepted"),
        12 => format!("git clone https://oauth2:{secret}@git.example.com/acme/widgets.git"),
        _ => format!("Grüße, 世界: „{secret}“ ist der Schlüssel\n+    12→{secret}"),
    }
}

/// Secrets that are told by what stands around them.
fn named_secrets(dice: &mut Dice) -> Vec<Canary> {
    let mut all = Vec::new();
    let mut add = |kind, secret: String, text: String| all.push(Canary { kind, secret, text });
    for template in PASSWORD_PLACES {
        let secret = dice.password();
        add("password", secret.clone(), template.replace("%%", &secret));
    }
    for template in TOKEN_PLACES {
        let secret = dice.text(ALPHANUMERIC, 32);
        add("named-token", secret.clone(), template.replace("%%", &secret));
    }
    for template in HEX_PLACES {
        let secret = dice.text(LOWER_HEX, 32);
        add("named-hex", secret.clone(), template.replace("%%", &secret));
    }
    let secret = dice.text(BASE64, 40);
    add("aws-secret-key", secret.clone(), format!("aws_secret_access_key = {secret}\nregion = eu-west-1"));
    let secret = dice.text(BASE64, 40);
    add("aws-secret-key", secret.clone(), format!("AK{}A{},{secret}", "I", dice.text(BASE32, 16)));
    let secret = format!("{}==", dice.text(BASE64, 86));
    let text =
        format!("DefaultEndpointsProtocol=https;AccountName=a;AccountKey={secret};EndpointSuffix=core.windows.net");
    add("azure-storage-key", secret, text);
    let secret = format!("{}=", dice.text(BASE64, 43));
    add("wireguard-private-key", secret.clone(), format!("[Interface]\nPrivateKey = {secret}\nAddress = 10.0.0.1/24"));
    let secret = dice.uuid();
    add("heroku-key", secret.clone(), format!("HEROKU_API_KEY={secret} heroku apps"));
    let secret =
        format!("M{}.{}.{}", dice.text(ALPHANUMERIC, 23), dice.text(ALPHANUMERIC, 6), dice.text(BASE64_URL, 38));
    add("discord-bot-token", secret.clone(), format!("discord login failed for {secret}"));
    let secret = dice.text(ALPHANUMERIC, 24);
    add(
        "slack-webhook",
        secret.clone(),
        format!("curl -d x https://hooks.slack.com/services/T0{0}/B0{0}/{secret}", "AB12CD34"),
    );
    let secret = dice.text(BASE64_URL, 68);
    add("discord-webhook", secret.clone(), format!("https://discord.com/api/webhooks/123456789012345678/{secret}"));
    all
}

const PASSWORD_PLACES: [&str; 41] = [
    "mysql -h db.example.com -u root -p%% widgets < dump.sql",
    "mysqldump -uroot -p'%%' --all-databases",
    "PGPASSWORD=%% psql -h db.example.com -U postgres",
    "curl -u admin:%% https://example.com/api",
    "curl -sS --user 'admin:%%' -X POST https://example.com",
    "sshpass -p %% ssh dev@example.com uptime",
    "sshpass -p '%%' scp a dev@example.com:",
    "docker login -u dev -p %% registry.example.com",
    "unzip -P %% archive.zip",
    "redis-cli -h cache.example.com -a %% ping",
    "mytool --user dev --password %% --verbose",
    "mytool --password=%% --verbose",
    "mytool --db-password \"%%\" run",
    "openssl rsa -in key.pem -passin pass:%% -out plain.pem",
    "echo %% | docker login --username dev --password-stdin",
    "echo '%%' | sudo -S apt-get update",
    "postgres://dev:%%@db.example.com:5432/widgets",
    "DATABASE_URL=mysql://root:%%@127.0.0.1/widgets?charset=utf8",
    "mongodb+srv://dev:%%@cluster0.example.net/widgets?retryWrites=true",
    "redis://:%%@cache.example.com:6379/0",
    "amqp://guest:%%@queue.example.com:5672/%2f",
    "ftp://dev:%%@files.example.com/pub",
    "https://dev:%%@git.example.com/acme/widgets.git",
    "dev:%%@tcp(db.example.com:3306)/widgets?parseTime=true",
    "Server=db;Database=widgets;User Id=sa;Password=%%;Encrypt=true",
    "machine git.example.com login dev password %%",
    "DB_PASSWORD=%%\nDB_HOST=localhost",
    "export ADMIN_PASSWORD='%%'",
    "spring.datasource.password=%%\n",
    "database:\n  username: dev\n  password: %%\n",
    "database:\n  password: \"%%\"\n",
    "{\"username\": \"dev\", \"password\": \"%%\"}",
    r#"{"body": "{\"user\":\"dev\",\"password\":\"%%\"}"}"#,
    r#""{\"a\": \"{\\\"passwd\\\": \\\"%%\\\"}\"}""#,
    "db.connect(user='dev', password='%%', timeout=3)",
    "const DB_PASSWORD: &str = \"%%\";",
    "<server><id>a</id><username>dev</username><password>%%</password></server>",
    "- name: DB_PASSWORD\n  value: \"%%\"\n",
    "config[\"password\"] = \"%%\"",
    "os.environ.setdefault(\"DB_PASSWORD\", \"%%\")",
    "The password: %% works on staging.",
];

const TOKEN_PLACES: [&str; 21] = [
    "Authorization: Bearer %%",
    "curl -H 'Authorization: Bearer %%' https://example.com",
    "curl -H \"authorization: token %%\" https://example.com",
    "{\"headers\": {\"Authorization\": \"Bearer %%\"}}",
    "Authorization: Basic %%==",
    "{\"Authorization\": \"%%\"}",
    "Cookie: theme=dark; sessionid=%%; lang=en",
    "Set-Cookie: connect.sid=%%; Path=/; HttpOnly",
    "curl -b 'PHPSESSID=%%' https://example.com",
    "API_TOKEN=%%",
    "export SIGNING_KEY=\"%%\"",
    "SESSION_SECRET=%%\n",
    "{\"access_token\": \"%%\", \"expires_in\": 3600}",
    "{\"api_key\": \"%%\"}",
    "{\"env\": [{\"name\": \"API_TOKEN\", \"value\": \"%%\"}]}",
    "mytool --token %% list",
    "mytool --api-key=%% list",
    "X-Api-Key: %%",
    "//registry.npmjs.org/:_authToken=%%",
    "https://example.com/callback?token=%%&state=1",
    "apiKey: '%%',",
];

const HEX_PLACES: [&str; 7] = [
    "DD_API_KEY=%% datadog-agent start",
    "TWILIO_AUTH_TOKEN=%%",
    "client_secret: %%",
    "CLOUDFLARE_API_KEY=%%",
    "{\"consumer_secret\": \"%%\"}",
    "https://public:%%@sentry.example.com/42",
    "secret_key_base: %%",
];

/// Keys in PEM armour. The secret is one line of the body, another one in each text.
fn private_keys(dice: &mut Dice) -> Vec<Canary> {
    let mut all = Vec::new();
    for (kind, line_end, closing) in [
        ("RSA ", "\n", true),
        ("", "\n", true),
        ("EC ", r"\n", true),
        ("OPENSSH ", r"\n", true),
        ("ENCRYPTED ", "\n    ", true),
        ("", "\n     7→", true),
        ("RSA ", "\n", false),
        ("", r"\n", false),
        ("DSA ", r"\\n", true),
    ] {
        let mut lines: Vec<_> = (0..5).map(|_| dice.text(BASE64, 64)).collect();
        lines.push(format!("{}=", dice.text(BASE64, 23)));
        let mark = |word: &str| format!("-----{word} {kind}PRIVATE {}-----", "KEY");
        let mut text = format!("{}{line_end}{}", mark("BEGIN"), lines.join(line_end));
        if closing {
            text = format!("{text}{line_end}{}{line_end}", mark("END"));
        }
        let secret = lines[(dice.draw() % 6) as usize].clone();
        let text = if line_end.starts_with('\\') {
            format!("{{\"private_key\": \"{text}\"}}")
        } else {
            format!("cat key.pem\n{text}")
        };
        all.push(Canary { kind: "private-key", secret, text });
    }
    all
}
