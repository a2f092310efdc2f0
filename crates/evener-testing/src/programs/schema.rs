//! As much of JSON Schema as the schemas in `docs` use.

use serde_json::Value;

/// What in `value` does not fit the schema in `docs/{name}`, with its place; empty where all does.
pub fn misfits(name: &str, value: &Value) -> Vec<String> {
    let path = format!("{}/../../docs/reference/schemas/{name}", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut found = Vec::new();
    check(&schema, &schema, value, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).expect(reference);
        return check(root, target, value, place, found);
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect::<Vec<_>>(),
    };
    if !types.is_empty() && !types.iter().any(|name| is_a(name, value)) {
        found.push(format!("{place} is no {types:?}: {value}"));
    }
    if schema["enum"].as_array().is_some_and(|known| !known.contains(value)) {
        found.push(format!("{place} is not among {}: {value}", schema["enum"]));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(root, &schema["items"], item, &format!("{place}/{index}"), found);
    }
    if let Some(object) = value.as_object() {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        found.extend(
            required.filter(|key| !object.contains_key(*key)).map(|key| format!("{place}/{key} is missing")),
        );
        for (key, item) in object {
            match schema["properties"].get(key) {
                Some(schema) => check(root, schema, item, &format!("{place}/{key}"), found),
                None => found.push(format!("{place}/{key} is not described")),
            }
        }
    }
}

fn is_a(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the schemas do not use {other}"),
    }
}
