//! What models write, and what is made of it.

use serde_json::json;

use super::*;

fn parsed<T: OfTool>(arguments: Value) -> Result<T, ToolError> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    read(arguments)
}

fn search(arguments: Value) -> SearchArguments {
    parsed(arguments).unwrap()
}

fn ids(given: impl Into<Value>) -> Result<Vec<String>, String> {
    parsed::<GetObservationsArguments>(json!({ "ids": given.into() }))
        .and_then(|arguments| arguments.ids())
        .map(|ids| ids.iter().map(ToString::to_string).collect())
        .map_err(|error| error.to_string())
}

#[test]
fn fills_in_what_is_left_out() {
    let arguments = search(json!({"query": "x"}));
    assert_eq!(arguments.limit().unwrap(), 10);
    assert!(arguments.kinds().unwrap().is_empty());
    assert_eq!(arguments.period().unwrap(), Period { from: None, until: None });
}

#[test]
fn takes_types_as_text_list_or_with_commas() {
    for kinds in
        [json!("prompt,call"), json!(["prompt", "call"]), json!("Prompt, Call"), json!("[\"prompt\",\"call\"]")]
    {
        let read = search(json!({"query": "x", "type": kinds})).kinds().unwrap();
        assert_eq!(read, [DocumentKind::Prompt, DocumentKind::Call], "{kinds}");
    }
    let error = search(json!({"query": "x", "type": "file"})).kinds().unwrap_err();
    assert_eq!(error.to_string(), "`file` cannot be used as `type`");
}

#[test]
fn takes_a_number_as_text_and_refuses_one_out_of_range() {
    assert_eq!(search(json!({"query": "x", "limit": "7"})).limit().unwrap(), 7);
    for limit in [json!(0), json!(-1), json!(101)] {
        assert!(search(json!({"query": "x", "limit": limit})).limit().is_err(), "{limit}");
    }
}

#[test]
fn names_the_argument_that_is_wrong() {
    let message = |arguments| parsed::<SearchArguments>(arguments).unwrap_err().to_string();
    assert!(message(json!({"query": "x", "limit": {}})).contains("limit: expected a whole number, got an object"));
    assert!(message(json!({"query": 5})).contains("query: invalid type"));
    assert!(message(json!({})).contains("missing field `query`"));
    assert!(message(json!({"query": "x", "dateFrom": "2027-01-01"})).contains("unknown field `dateFrom`"));
}

#[test]
fn takes_the_end_date_as_the_end_of_its_day() {
    let arguments = search(json!({"query": "x", "dateStart": "2027-05-01", "dateEnd": "2027-05-01"}));
    let Period { from, until } = arguments.period().unwrap();
    assert_eq!((until.unwrap() - from.unwrap()).num_seconds(), 86_399);
}

#[test]
fn refuses_a_period_that_ends_before_it_starts() {
    let arguments = search(json!({"query": "x", "dateStart": "2027-05-02", "dateEnd": "2027-05-01"}));
    assert!(arguments.period().is_err());
    let arguments = search(json!({"query": "x", "dateStart": "last week"}));
    assert_eq!(arguments.period().unwrap_err().to_string(), "`last week` cannot be used as `dateStart`");
}

#[test]
fn takes_ids_in_every_form_and_each_once() {
    assert_eq!(ids(json!(["call-1", "prompt-2", "call-1"])).unwrap(), ["call-1", "prompt-2"]);
    assert_eq!(ids(json!([7, "8"])).unwrap(), ["note-7", "note-8"]);
    assert_eq!(ids(json!("call-1, note-2")).unwrap(), ["call-1", "note-2"]);
    assert_eq!(ids(json!("[\"call-1\", 3]")).unwrap(), ["call-1", "note-3"]);
}

#[test]
fn refuses_what_is_no_id() {
    assert_eq!(ids(json!(["call-0"])).unwrap_err(), "`call-0` cannot be used as `ids`");
    assert_eq!(ids(json!([-3])).unwrap_err(), "`-3` cannot be used as `ids`");
    assert!(ids(json!([])).is_err());
    assert!(ids(json!((1..=51).collect::<Vec<_>>())).is_err());
    assert!(ids(json!({"id": 1})).unwrap_err().contains("ids: invalid type: an object"));
}

#[test]
fn takes_an_id_a_number_or_a_moment_as_anchor() {
    let around = |arguments| parsed::<TimelineArguments>(arguments).and_then(|arguments| arguments.around());
    let document = |around| match around {
        Ok(Around::Anchor(Anchor::Document(id))) => id.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(document(around(json!({"anchor": "call-3", "query": " "}))), "call-3");
    assert_eq!(document(around(json!({"anchor": 3}))), "note-3");
    let moment = around(json!({"anchor": "2027-05-01T12:00:00Z"}));
    assert!(matches!(moment, Ok(Around::Anchor(Anchor::Moment(_)))));
    assert!(matches!(around(json!({"anchor": "", "query": "x"})), Ok(Around::BestHitOf(_))));
    for wrong in [json!({}), json!({"anchor": "call-3", "query": "x"}), json!({"anchor": "there"})] {
        assert!(around(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn removes_by_ids_alone_and_only_when_told_to() {
    let doomed = |arguments| parsed::<ForgetArguments>(arguments).and_then(|arguments| arguments.doomed());
    let call = || vec!["call-3".parse().unwrap()];
    assert_eq!(doomed(json!({"ids": ["call-3"]})).unwrap(), Doomed::Shown(call()));
    assert_eq!(doomed(json!({"id": "call-3", "dry_run": "true"})).unwrap(), Doomed::Shown(call()));
    assert_eq!(doomed(json!({"ids": "call-3", "dry_run": "False"})).unwrap(), Doomed::Removed(call()));
    assert_eq!(doomed(json!({"query": "x"})).unwrap(), Doomed::Found("x".to_owned()));
    for wrong in [
        json!({"query": "x", "dry_run": false}),
        json!({"ids": ["call-3"], "query": "x"}),
        json!({}),
        json!({"ids": ["call-3"], "dry_run": "perhaps"}),
    ] {
        assert!(doomed(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn updates_notes_alone_and_something_of_them() {
    let update = |arguments| parsed::<UpdateMemoryArguments>(arguments).unwrap();
    assert_eq!(update(json!({"id": 7, "text": "x"})).note().unwrap(), 7);
    assert_eq!(update(json!({"id": "note-7", "text": "x"})).note().unwrap(), 7);
    assert!(update(json!({"id": "call-7", "text": "x"})).note().is_err());
    assert!(update(json!({"id": "note-7", "text": " "})).changes().is_err());
}

#[test]
fn takes_a_budget_within_its_bounds() {
    assert_eq!(search(json!({"query": "x"})).max_tokens().unwrap(), 6_000);
    assert_eq!(search(json!({"query": "x", "max_tokens": "500"})).max_tokens().unwrap(), 500);
    assert!(search(json!({"query": "x", "max_tokens": 10})).max_tokens().is_err());
}
