//! The document at `/api/openapi.json` (OpenAPI 3.1), made of the table of routes and of the tools' own schemas: what is not in it is not
//! served.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use axum::{Extension, Json};
use mcp::{Question, ToolForm, Tools};
use serde_json::{Map, Value, json};

use crate::auth::Needs;
use crate::router::{Form, Route};

/// Where the document keeps schemas that others refer to.
const SCHEMAS: &str = "#/components/schemas/";
/// Where a schema by itself keeps them.
const OWN: &str = "#/$defs/";

pub(crate) async fn give(Extension(document): Extension<Arc<Value>>) -> Json<Value> {
    Json(Value::clone(&document))
}

pub(crate) fn document(table: &[Route], tools: &Tools) -> Value {
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for route in table {
        let described = operation(route, tools, &mut schemas);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = described;
    }
    schemas.insert("Error".to_owned(), error_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "agent-memory",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The memory that coding agents keep. Errors are `{code, message, hint}`.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Route, tools: &Tools, schemas: &mut Map<String, Value>) -> Value {
    let parts = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = parts.map(|part| parameter(part, "path", &json!({ "type": "string" }))).collect();
    let mut operation = json!({ "operationId": id_of(route), "summary": route.about });
    let mut reply = json!({});
    match route.form {
        Form::Nothing | Form::Text => {}
        Form::Json => operation["requestBody"] = body(&json!({ "type": "object" })),
        Form::Tool(question) => {
            let (arguments, given) = described(&mut operation, tools.form(question), schemas);
            operation["requestBody"] = body(&arguments);
            reply = given;
        }
        Form::ToolQuery(question) => {
            let (arguments, given) = described(&mut operation, tools.form(question), schemas);
            let in_path = |name: &str| route.path.contains(&format!("{{{name}}}"));
            let properties = arguments["properties"].as_object().into_iter().flatten();
            parameters.extend(
                properties.filter(|(name, _)| !in_path(name)).map(|(name, schema)| parameter(name, "query", schema)),
            );
            reply = given;
        }
    }
    operation["parameters"] = json!(parameters);
    operation["security"] = match route.needs {
        Needs::NoToken => json!([]),
        Needs::AnyToken => json!([{ "token": [] }]),
        Needs::Scope(scope) => json!([{ "token": [scope.as_str()] }]),
    };
    let kind = if route.form == Form::Text { "text/plain" } else { "application/json" };
    operation["responses"] = json!({
        success(route).as_str(): { "description": "Done", "content": { kind: { "schema": reply } } },
        "default": {
            "description": "Refused, with the reason and what to do",
            "content": { "application/json": { "schema": { "$ref": format!("{SCHEMAS}Error") } } },
        },
    });
    operation
}

/// Takes over what a tool says of itself; gives the schemas of its arguments and its reply.
fn described(operation: &mut Value, form: ToolForm, schemas: &mut Map<String, Value>) -> (Value, Value) {
    operation["summary"] = form.title.into();
    operation["description"] = form.description.into();
    (hoisted(form.arguments, schemas), hoisted(form.reply, schemas))
}

/// A schema whose own definitions are the document's: in it a reference starts at the document's root.
fn hoisted(mut schema: Map<String, Value>, schemas: &mut Map<String, Value>) -> Value {
    schema.remove("$schema");
    if let Some(Value::Object(own)) = schema.remove("$defs") {
        for (name, mut definition) in own {
            point_to_document(&mut definition);
            schemas.insert(name, definition);
        }
    }
    let mut schema = Value::Object(schema);
    point_to_document(&mut schema);
    schema
}

fn point_to_document(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(OWN)
            {
                *reference = format!("{SCHEMAS}{name}");
            }
            members.values_mut().for_each(point_to_document);
        }
        Value::Array(values) => values.iter_mut().for_each(point_to_document),
        _ => {}
    }
}

fn body(schema: &Value) -> Value {
    json!({ "required": true, "content": { "application/json": { "schema": schema } } })
}

fn parameter(name: &str, place: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": place, "required": place == "path", "schema": schema })
}

fn success(route: &Route) -> StatusCode {
    let makes = matches!(route.form, Form::Tool(Question::SaveMemory | Question::CreateLesson));
    match (&route.method, route.path) {
        (&Method::POST, "/api/admin/tokens") => StatusCode::CREATED,
        (&Method::DELETE, _) => StatusCode::NO_CONTENT,
        _ if makes => StatusCode::CREATED,
        _ => StatusCode::OK,
    }
}

/// `post_observations_search`: a name for clients that are made from the document.
fn id_of(route: &Route) -> String {
    let parts = route.path.split(['/', '{', '}', '.']).filter(|part| !part.is_empty() && *part != "api");
    std::iter::once(route.method.as_str().to_ascii_lowercase())
        .chain(parts.map(str::to_owned))
        .collect::<Vec<_>>()
        .join("_")
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": {
            "code": { "type": "string", "description": "For programs; it stays" },
            "message": { "type": "string", "description": "For people: what happened" },
            "hint": { "type": "string", "description": "What to do about it" },
        },
    })
}
