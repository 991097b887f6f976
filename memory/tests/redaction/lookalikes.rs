//! What only looks like a secret: hashes, identifiers, images, checksums, code and prose that speak of secrets.

use memory::redact::clean;

use crate::canaries::{ALPHANUMERIC, BASE64, BASE64_URL, Dice, LOWER_HEX};

const MAX_TOUCHED_SHARE: f64 = 0.02;

#[test]
fn leaves_alone_what_only_looks_like_a_secret() {
    let all = lookalikes(42);
    assert!(all.len() >= 300, "only {}", all.len());
    let touched: Vec<_> = all.iter().filter(|text| clean(text) != text.as_str()).collect();
    let share = touched.len() as f64 / all.len() as f64;
    println!("{} of {} look-alikes are touched ({:.2} %)", touched.len(), all.len(), share * 100.0);
    let shown: Vec<_> = touched.iter().map(|text| format!("{:.300}\n -> {:.300}", text, clean(text))).collect();
    assert!(share <= MAX_TOUCHED_SHARE, "{} of {}: {shown:#?}", touched.len(), all.len());
    for text in &shown {
        println!("{text}");
    }
}

fn lookalikes(seed: u64) -> Vec<String> {
    let dice = &mut Dice::of(seed);
    let mut all: Vec<_> = CODE.iter().chain(&PROSE).map(|text| (*text).to_owned()).collect();
    for _ in 0..4 {
        all.extend(generated(dice));
    }
    all
}

fn generated(dice: &mut Dice) -> Vec<String> {
    let mut hex = |length| dice.text(LOWER_HEX, length);
    let (commit, digest, short) = (hex(40), hex(64), hex(8));
    let id = dice.uuid();
    let name = dice.text(ALPHANUMERIC, 21);
    let sha512 = format!("{}==", dice.text(BASE64, 86));
    let sum = format!("{}=", dice.text(BASE64, 43));
    let image = dice.text(BASE64, 3000);
    let certificate: Vec<_> = (0..12).map(|_| dice.text(BASE64, 64)).collect();
    let certificate = certificate.join("\n");
    let url_id = dice.text(BASE64_URL, 11);
    let public = dice.text(BASE64, 68);
    vec![
        format!("commit {commit}\nAuthor: Ada <ada@example.com>\n    Add tokens to the parser"),
        format!("{short} Move the password field\n{commit} Rename the secret store"),
        format!("index {short}..{} 100644\n--- a/src/token.rs", &commit[..8]),
        format!("git checkout {commit} && git log --oneline"),
        format!("HEAD is now at {short} keep the session key"),
        format!("sha256:{digest}  image.tar.gz"),
        format!("FROM debian@sha256:{digest}"),
        format!("{digest}  ./dist/agent-memory.tar.gz"),
        format!("\"integrity\": \"sha512-{sha512}\","),
        format!("  integrity sha512-{sha512}\n  dependencies:\n    js-tokens \"^4.0.0\""),
        format!("    resolution: {{integrity: sha512-{sha512}}}\n    engines: {{node: '>=18'}}"),
        format!("[[package]]\nname = \"secrecy\"\nversion = \"0.10.3\"\nchecksum = \"{digest}\""),
        format!("github.com/golang-jwt/jwt/v5 v5.2.1 h1:{sum}\ngithub.com/golang-jwt/jwt/v5 v5.2.1/go.mod h1:{sum}"),
        format!("--hash=sha256:{digest} \\\n    --hash=sha256:{digest}"),
        format!("id: {id}"),
        format!(
            "{{\"sessionId\": \"{id}\", \"session_id\": \"{id}\", \"prompt_id\": \"{id}\", \"request_id\": \"req_{name}\"}}"
        ),
        format!("{{\"tool_use_id\": \"toolu_01{name}\", \"key\": \"{digest}\", \"parent_id\": \"{id}\"}}"),
        format!("GET /api/items/{id}/keys?limit=10 200 31ms"),
        format!("<img src=\"data:image/png;base64,{image}\" alt=\"the token\">"),
        format!("background: url(data:font/woff2;base64,{image}) format('woff2');"),
        format!(
            "{{\"type\": \"image\", \"source\": {{\"type\": \"base64\", \"media_type\": \"image/png\", \"data\": \"{image}\"}}}}"
        ),
        format!("-----BEGIN CERTIFICATE-----\n{certificate}\n-----END CERTIFICATE-----"),
        format!("-----BEGIN {} KEY-----\n{certificate}\n-----END {} KEY-----", "PUBLIC", "PUBLIC"),
        format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{public} dev@example.com"),
        format!("ssh-rsa AAAAB3NzaC1yc2E{image} dev@example.com"),
        format!("SHA256:{} dev@example.com (ED25519)", &sum[..43]),
        format!("<script src=\"/assets/token-form-{short}.js\"></script>"),
        format!("dist/assets/index-{url_id}.css   14.2 kB"),
        format!("/nix/store/{}-openssl-3.0.13/lib/libssl.so", &dice.text("0123456789abcdfghijklmnpqrsvwxyz", 32)),
        format!("https://www.youtube.com/watch?v={url_id}"),
        format!("https://example.com/docs/{id}#the-password-field"),
        format!(
            "!function(e,t){{var n=e.token,r=t.key;n={short};return{{token:n,key:r,password:e.password}}}}({short});"
        ),
        format!(".key{{color:#{};background:#{}}}.token{{margin:0}}", &commit[..6], &commit[6..12]),
        format!("test tests::{name}::rejects_a_wrong_token ... ok"),
        format!("const REQUEST_ID = \"{id}\";"),
        format!("etag: W/\"{digest}\"\nx-request-id: {id}"),
        format!("trace_id={} span_id={}", &digest[..32], &digest[32..48]),
        format!("container {} is healthy", &digest[..12]),
        format!("{}=={} [build]", "cache-key: linux-x64-node-modules", short),
        format!("cache_key = \"{digest}\""),
        format!("0x{}", &digest[..40]),
        format!("arn:aws:iam::123456789012:role/deploy-{short}"),
        format!("//# sourceMappingURL=app.{short}.js.map"),
        format!(
            "{{\"version\":3,\"mappings\":\"{}\"}}",
            dice.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop,;", 400)
        ),
        format!(
            "price_{} prod_{} acct_{}",
            dice.text(ALPHANUMERIC, 24),
            dice.text(ALPHANUMERIC, 14),
            dice.text(ALPHANUMERIC, 16)
        ),
        format!("https://{short}.ingest.example.com:8080/api/@scope/pkg"),
        format!("postgres://localhost:5432/widgets_{short}"),
        format!("docker run -u 1000:1000 -p 8080:80 -v /srv:/srv image:{short}"),
    ]
}

const CODE: [&str; 94] = [
    "    env.PWD = cwd;",
    "GLOBAL_API_KEY = Symbol.for(\"library.js.api.\" + major);",
    "password: String,",
    "pub password: Option<String>,",
    "let password = read_password()?;",
    "let token = get_token().await?;",
    "token = response.token",
    "const token = response.data.accessToken;",
    "this.token = token;",
    "self.password = password",
    "if password == other.password {",
    "password = os.environ[\"DB_PASSWORD\"]",
    "password = os.getenv('DB_PASSWORD')",
    "const apiKey = process.env.OPENAI_API_KEY;",
    "api_key=os.environ.get(\"ANTHROPIC_API_KEY\"),",
    "secret: ${{ secrets.GITHUB_TOKEN }}",
    "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}",
    "PASSWORD=$(openssl rand -hex 16)",
    "PASSWORD=${PASSWORD:-}",
    "TOKEN=\"$(cat token.txt)\"",
    "export PGPASSWORD=\"$DB_PASSWORD\"",
    "--password \"$PASSWORD\"",
    "mysql -u root -p widgets",
    "mysql -u root -p\"$MYSQL_PASSWORD\" widgets",
    "curl -u \"$USER:$PASS\" https://example.com",
    "curl -H \"Authorization: Bearer $TOKEN\" https://example.com",
    "headers: { Authorization: `Bearer ${token}` }",
    "headers = {\"Authorization\": f\"Bearer {token}\"}",
    "Authorization: Bearer <token>",
    "request.bearer_auth(&self.token)",
    "fn is_secret(value: &str, form: Form, key: Key) -> bool {",
    "def login(user: str, password: str) -> Token:",
    "function getToken() { return store.getToken(); }",
    "interface Props { token: string; secretKey?: string; }",
    "type Credentials = { password: string, key: Uint8Array };",
    "key: Uint8Array, token: Utf8String, password: Base64String",
    "keys.map(key => key.token)",
    "for key, value in tokens.items():",
    "<input type=\"password\" name=\"password\" id=\"password\" autocomplete=\"current-password\">",
    "<label for=\"password\">Password:</label>",
    "<li key=\"item-12-of-list\">{token.text}</li>",
    "#[serde(rename = \"token\")]",
    "export const SET_TOKEN = \"auth/SET_TOKEN\";",
    "const PASSWORD_FIELD = \"password\";",
    "\"password\": \"string\",",
    "\"password\": {\"type\": \"string\", \"minLength\": 8},",
    "password: Joi.string().min(8).required(),",
    "'password' => 'required|min:8|confirmed',",
    "password_hash = bcrypt.hash(password, 12)",
    "token_type: \"Bearer\"",
    "\"jsonwebtoken\": \"^9.0.2\",",
    "\"@aws-sdk/credential-providers\": \"^3.600.0\",",
    "\"node_modules/path-key\": {\"version\": \"3.1.1\"}",
    "max_tokens: 4096, tokens_per_minute: 90000",
    "let tokens = tokenizer.encode(text)?;",
    "Token::Ident(name) => self.parse(name),",
    "match token { Token::Key => 1, _ => 2 }",
    "eos_token = \"</s>\", pad_token = \"<pad>\"",
    "cancellationToken: CancellationToken.None",
    "CancellationToken::new()",
    "password = \"\"",
    "password: null",
    "\"secret\": null, \"token\": true",
    "secretName: widgets-tls",
    "secretKeyRef:\n  name: widgets\n  key: database-url",
    "imagePullSecrets:\n  - name: registry",
    "PasswordAuthentication no",
    "PASSWORD_MIN_LENGTH=12",
    "TOKEN_EXPIRY_SECONDS=3600",
    "DB_PASSWORD_FILE=/run/secrets/db_password",
    "SECRET_KEY_FILE=/run/secrets/key",
    "SSH_AUTH_SOCK=/tmp/ssh-XXXX/agent.1234",
    "SSH_KEY=~/.ssh/id_ed25519",
    "PWD=/home/dev/widgets OLDPWD=/home/dev",
    "key=value",
    "primary_key=True, foreign_key=\"users.id\"",
    "partition_key: \"user#2024-01-01\"",
    "sort_key: created_at_v2",
    "localStorage.getItem('token')",
    "setToken(null)",
    "csrf_token: csrfToken(),",
    "throw new Error('password: too short')",
    "log.debug(\"token: {}\", token)",
    "printf(\"password: %s\\n\", password);",
    "https://user:password@example.com/",
    "postgres://user:pass@localhost/db",
    "postgres://{user}:{password}@{host}/{db}",
    "postgres://$USER:$PASSWORD@db/widgets",
    "http://localhost:8080/path?email=ada@example.com",
    "git@github.com:acme/widgets.git",
    "ssh://git@example.com:22/acme/widgets.git",
    "mkdir -p src/token && cp -a secret.rs src/",
    "grep -rn 'password' src | sort -u",
    "psql -U postgres -p 5432 -w",
];

const PROSE: [&str; 40] = [
    "The password: it must be at least 8 characters long.",
    "Use the --password flag or the --token option to log in.",
    "Rename getToken() to readToken() and keep the password field.",
    "Authorization: required",
    "Authorization is by role; authentication by token.",
    "Bearer authentication is described below.",
    "Basic authentication-and-authorisation is enough here.",
    "Please fix the failing test in tests/token_test.py::test_password",
    "The key to success is testing; the secret is patience.",
    "Secret: none. Token: none. Password: none.",
    "password: ********",
    "api_key: xxxxxxxxxxxxxxxxxxxx",
    "OPENAI_API_KEY=sk-...",
    "ANTHROPIC_API_KEY=<your key>",
    "token: your-token-here",
    "API_KEY=your_api_key",
    "PASSWORD=changeme",
    "password: ${DB_PASSWORD}",
    "The cookie: it is set by the server and read by the browser.",
    "Set-Cookie is not sent for cross-site requests.",
    "cookie = document.cookie",
    "Enter password for user dev:",
    "dev@example.com's password:",
    "error: invalid token: expected `;`, found `}`",
    "warning: unused variable: `token`",
    "error[E0425]: cannot find value `secret_key` in this scope",
    "SyntaxError: Unexpected token } in JSON at position 42",
    "KeyError: 'password'",
    "fatal: Authentication failed for 'https://example.com/acme/widgets.git/'",
    "Compiling secrecy v0.10.3\nCompiling keyring v3.6.1\nCompiling jsonwebtoken v9.3.0",
    "  Downloaded aws-credential-types v1.2.0",
    "| password | string | The user's password |",
    "- [ ] rotate the signing key\n- [x] revoke the token",
    "key: up, key: down, key: ctrl+shift+p",
    "Press any key: Enter, Space2Continue",
    "author: Ada, authors: 12, authority: example.com:443",
    "sk-button sk-circle task-list-item-checkbox risk-assessment-2024",
    "hf_hub_download and npm_config_registry are no tokens",
    "pypi-publish, glpat-tools and xoxb-like names",
    "AKIA is how access key ids begin; AIza those of Google.",
];
