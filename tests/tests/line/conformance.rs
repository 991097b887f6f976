//! The protocol's own conformance suite against `/mcp`.

use std::path::Path;

use anyhow::Result;
use tests::clients::conformance::Conformance;
use tests::stack::Stack;

#[tokio::test]
async fn the_protocols_own_suite_passes_but_for_what_cannot_apply() -> Result<()> {
    let Some(suite) = Conformance::find().await? else { return Ok(()) };
    let stack = Stack::running().await?;
    let baseline = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/baseline.yml");
    let verdict = suite.run(&stack, &baseline).await?;
    assert!(verdict.is_as_expected, "{}", verdict.summary);
    for scenario in ["server-initialize", "ping", "tools-list", "dns-rebinding-protection"] {
        let passed = verdict.summary.lines().any(|line| line.contains(scenario) && line.contains(" 0 failed"));
        assert!(passed, "{scenario} did not pass: {}", verdict.summary);
    }
    Ok(())
}
