#[tokio::main]
async fn main() {
    let home = memory::home::Home::locate().unwrap();
    let db = memory::store::connect_lazily(&home.database_url().unwrap()).unwrap();
    let tools = mcp::Tools::new(db, memory::embed::Embedder::over(home.models()));
    let routes = axum::Router::new().nest_service("/mcp", mcp::http_service(tools, Default::default()));
    axum::serve(tokio::net::TcpListener::bind("127.0.0.1:3398").await.unwrap(), routes).await.unwrap();
}
