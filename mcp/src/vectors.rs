//! Where the vector of a query comes from: the model of this process, or the server's, so that ten open sessions do not hold
//! ten models. Without a vector a search goes by words alone and says so.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use memory::embed::{Embedder, QueryVector};
use memory::home::HomeError;
use serde_json::json;

use crate::Installation;
use crate::timing::{RECALL_HEADER, Untold, written};

/// The server answers in milliseconds when its model is loaded, and loads it in less than a second.
const SERVER_DEADLINE: Duration = Duration::from_secs(2);
/// A model of our own may have to be loaded from a cold disk, or be busy with the worker's documents.
const OWN_DEADLINE: Duration = Duration::from_secs(5);

/// A source of query vectors. Cheap to clone.
#[derive(Clone)]
pub enum QueryVectors {
    /// The model of this process, loaded when first needed.
    Own(Embedder),
    /// The server's, with one of our own for when the server is away.
    Server(ServerVectors),
}

impl From<Embedder> for QueryVectors {
    fn from(embedder: Embedder) -> Self {
        Self::Own(embedder)
    }
}

impl QueryVectors {
    /// The query's vector, or why there is none.
    pub(crate) async fn of(&self, query: &str) -> Result<QueryVector, String> {
        match self {
            Self::Own(embedder) => own(embedder, query).await,
            Self::Server(server) => server.vector(query).await,
        }
    }
}

async fn own(embedder: &Embedder, query: &str) -> Result<QueryVector, String> {
    match tokio::time::timeout(OWN_DEADLINE, embedder.embed_query(query)).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no vectors: the embedding model did not answer within {} s", OWN_DEADLINE.as_secs())),
    }
}

/// Asks the installed server; holds nothing until it is first asked.
#[derive(Clone)]
pub struct ServerVectors {
    installation: Arc<Installation>,
    client: Arc<OnceLock<reqwest::Client>>,
    own: Arc<OnceLock<Embedder>>,
    untold: Arc<Untold>,
}

#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("the server's address or token cannot be read: {0}")]
    Home(#[from] HomeError),
    #[error("the server did not answer: {0}")]
    Http(#[from] reqwest::Error),
    #[error("the server answered {status}: {message}")]
    Refused { status: u16, message: String },
}

impl ServerVectors {
    pub fn new(installation: Arc<Installation>) -> Self {
        Self { installation, client: Arc::default(), own: Arc::default(), untold: Arc::default() }
    }

    /// Keeps how long answers took, until the server is next asked.
    pub(crate) fn untold(&self) -> Arc<Untold> {
        Arc::clone(&self.untold)
    }

    async fn vector(&self, query: &str) -> Result<QueryVector, String> {
        let asked = match self.ask(query).await {
            Ok(vector) => return Ok(vector),
            Err(error) => error,
        };
        tracing::info!(error = %asked, "the server gave no vector, asking a model of our own");
        let home = self.installation.home().map_err(|error| error.to_string())?;
        let embedder = self.own.get_or_init(|| Embedder::over(home.models()));
        own(embedder, query).await.map_err(|error| format!("{error}; and {asked}"))
    }

    async fn ask(&self, query: &str) -> Result<QueryVector, AskError> {
        let home = self.installation.home().map_err(|_| HomeError::Unknown)?;
        let url = format!("http://{}/api/embed", home.address()?);
        let mut request = self.client()?.post(url).bearer_auth(home.token()?).json(&json!({ "text": query }));
        let told = self.untold.take();
        if let Some(times) = &told {
            request = request.header(RECALL_HEADER, written(times));
        }
        let sent = request.send().await;
        // A server without a model has heard it too.
        if !sent.as_ref().is_ok_and(|response| !response.status().is_client_error()) {
            self.untold.put_back(told.into_iter().flatten());
        }
        let response = sent?;
        let status = response.status();
        if !status.is_success() {
            let body: serde_json::Value = response.json().await.unwrap_or_default();
            let message = body["message"].as_str().unwrap_or("no reason given").to_owned();
            return Err(AskError::Refused { status: status.as_u16(), message });
        }
        Ok(response.json().await?)
    }

    /// The server is on this machine, so no proxy is asked.
    fn client(&self) -> reqwest::Result<&reqwest::Client> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = reqwest::Client::builder().no_proxy().timeout(SERVER_DEADLINE).build()?;
        Ok(self.client.get_or_init(|| client))
    }
}

#[cfg(test)]
mod tests {
    use memory::home::Home;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// An installation whose server gives one answer to one request; the task returns the request.
    async fn installed(answer: &'static str) -> (tempfile::TempDir, ServerVectors, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("address"), listener.local_addr().unwrap().to_string()).unwrap();
        std::fs::write(folder.path().join("token"), "secret\n").unwrap();
        let request = tokio::spawn(async move {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"}") {
                assert_ne!(connection.read_buf(&mut request).await.unwrap(), 0);
            }
            connection.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(request).unwrap()
        });
        let vectors = ServerVectors::new(Arc::new(Installation::at(Home::at(folder.path()))));
        (folder, vectors, request)
    }

    #[tokio::test]
    async fn takes_the_vector_that_the_server_made() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 34\r\n\r\n\
                      {\"model\":\"mini\",\"vector\":[0.5,-1]} ";
        let (_folder, vectors, request) = installed(answer).await;
        let vector = vectors.vector("where is it").await.unwrap();
        assert_eq!(vector, QueryVector { model: "mini".to_owned(), vector: vec![0.5, -1.0] });
        let request = request.await.unwrap();
        assert!(request.starts_with("POST /api/embed HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("authorization: Bearer secret"), "{request}");
        assert!(request.ends_with(r#"{"text":"where is it"}"#), "{request}");
    }

    #[tokio::test]
    async fn says_both_reasons_when_neither_the_server_nor_a_model_is_there() {
        let answer = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 26\r\n\r\n\
                      {\"message\":\"model missing\"}";
        let (_folder, vectors, _) = installed(answer).await;
        let reason = vectors.vector("x").await.unwrap_err();
        assert!(reason.contains("is missing in"), "{reason}");
        assert!(reason.contains("answered 503"), "{reason}");
    }

    #[tokio::test]
    async fn says_that_the_server_is_away() {
        let folder = tempfile::tempdir().unwrap();
        // Port 1 is nobody's.
        std::fs::write(folder.path().join("address"), "127.0.0.1:1").unwrap();
        std::fs::write(folder.path().join("token"), "secret").unwrap();
        let vectors = ServerVectors::new(Arc::new(Installation::at(Home::at(folder.path()))));
        assert!(vectors.vector("x").await.unwrap_err().contains("the server did not answer"));
    }
}
