//! Asks a stage's server over HTTP, as an agent's client would.

use anyhow::{Context as _, Result, ensure};
use memory::home::Home;
use reqwest::Client;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::stage::Stage;

pub(crate) struct Asker {
    address: String,
    token: String,
    client: Client,
}

impl Asker {
    /// Asks the stage's first server.
    pub(crate) fn of(stage: &Stage) -> Result<Self> {
        let home: &Home = stage.home();
        let token = home.token().context("the token is not there")?;
        Ok(Self { address: stage.addresses()?[0].to_string(), token, client: Client::new() })
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Vec<u8>> {
        let answer = self
            .client
            .post(format!("http://{}{path}", self.address))
            .bearer_auth(&self.token)
            .json(body)
            .send()
            .await
            .context("the server does not answer")?;
        let status = answer.status();
        let body = answer.bytes().await.context("the server broke off its answer")?;
        ensure!(status.is_success(), "the server answered {status}: {}", String::from_utf8_lossy(&body));
        Ok(body.to_vec())
    }

    /// Posts, and reads the answer.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T> {
        serde_json::from_slice(&self.post(path, body).await?).context("cannot read the server's answer")
    }
}
