// SPDX-License-Identifier: Apache-2.0
//! Makes an expression fit for the evaluator.
//!
//! - A field after `.?` becomes an optional index, which knows what to do when it is absent; so does every field behind.
//! - Any other field becomes an index: the evaluator takes a field of what has no fields for `false`, where the real
//!   server fails. A field of an object that is not there is a missing key.
//! - `dyn(x)` is `x`, `cel.bind` and `optMap` become what they stand for.
//! - A `JSONPatch` becomes a map.
//! - A loop over a map goes through its keys in order, so that the same input always gives the same output.
//!
//! What is left that the evaluator cannot do is named, so that it can be refused.

use std::sync::Arc;

use kube_cel::cel::{
    Context, ExecutionError, IdedExpr, ResolveResult, Value as Cel,
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, ListExpr, LiteralValue, MapEntryExpr, MapExpr,
        operators,
    },
};

const ORDERED: &str = "@ordered";
const ABSENT: &str = "@absent";

/// Variables that a request may leave without a value.
const NULLABLE: [&str; 4] = ["object", "oldObject", "params", "namespaceObject"];

/// Things that the real server evaluates and we do not.
const UNKNOWN: [&str; 5] = ["sortBy", "transformList", "transformMap", "transformMapEntry", "optFlatMap"];

/// The key and the value of each entry of a map.
pub fn entries(map: &MapExpr) -> impl Iterator<Item = (&IdedExpr, &IdedExpr)> {
    map.entries.iter().filter_map(|entry| match &entry.expr {
        EntryExpr::MapEntry(entry) => Some((&entry.key, &entry.value)),
        EntryExpr::StructField(_) => None,
    })
}

pub fn register(root: &mut Context<'static>) {
    root.add_function(ORDERED, |value: Cel| -> ResolveResult {
        let Cel::Map(map) = value else { return Ok(value) };
        let mut keys: Vec<Cel> = map.map.keys().map(Cel::from).collect();
        keys.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        Ok(Cel::List(Arc::new(keys)))
    });
    root.add_function(ABSENT, |field: Arc<String>| -> ResolveResult { Err(ExecutionError::NoSuchKey(field)) });
}

/// Rewrites the tree in place. The error names what cannot be evaluated.
pub fn fit(tree: &mut IdedExpr) -> Result<(), String> {
    match &mut tree.expr {
        Expr::Call(call) => {
            if let Some(target) = &mut call.target {
                fit(target)?;
            }
            call.args.iter_mut().try_for_each(fit)?;
            refuse(call)?;
        }
        Expr::Select(select) => fit(&mut select.operand)?,
        Expr::List(list) => list.elements.iter_mut().try_for_each(fit)?,
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    fit(&mut entry.key)?;
                    fit(&mut entry.value)?;
                }
            }
        }
        Expr::Struct(object) => {
            if object.type_name != "JSONPatch" {
                return Err(format!("objects of type {}", object.type_name));
            }
            for entry in &mut object.entries {
                if let EntryExpr::StructField(field) = &mut entry.expr {
                    fit(&mut field.value)?;
                }
            }
        }
        Expr::Comprehension(loop_) => {
            let parts = [
                &mut loop_.iter_range,
                &mut loop_.accu_init,
                &mut loop_.loop_cond,
                &mut loop_.loop_step,
                &mut loop_.result,
            ];
            parts.into_iter().try_for_each(fit)?;
        }
        _ => {}
    }
    tree.expr = replaced(std::mem::take(&mut tree.expr))?;
    Ok(())
}

fn refuse(call: &CallExpr) -> Result<(), String> {
    let name = call.func_name.as_str();
    // With two arguments the parser has made a loop of them.
    let two_variables = matches!(name, "all" | "exists" | "existsOne" | "exists_one") && call.args.len() == 3;
    if UNKNOWN.contains(&name) || two_variables {
        let what = if two_variables { " with two variables" } else { "" };
        return Err(format!("{name}{what}"));
    }
    Ok(())
}

fn literal(text: &str) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::String(text.into())) }
}

fn node(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn call(name: &str, args: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args })
}

/// Whether the value of an expression is one that may be absent.
fn is_optional(tree: &IdedExpr) -> bool {
    match &tree.expr {
        Expr::Call(call) if call.func_name == operators::OPT_INDEX => true,
        Expr::Call(call) if call.func_name == operators::INDEX => call.args.first().is_some_and(is_optional),
        _ => false,
    }
}

fn replaced(expr: Expr) -> Result<Expr, String> {
    Ok(match expr {
        Expr::Call(mut of) if of.func_name == operators::OPT_SELECT => {
            of.func_name = operators::OPT_INDEX.to_owned();
            Expr::Call(of)
        }
        Expr::Select(select) if is_optional(&select.operand) => {
            if select.test {
                return Err("has() of a field behind .?".to_owned());
            }
            call(operators::OPT_INDEX, vec![*select.operand, literal(&select.field)])
        }
        Expr::Select(select) if matches!(&select.operand.expr, Expr::Ident(name) if name == "authorizer") => {
            Expr::Ident(format!("authorizer.{}", select.field))
        }
        Expr::Select(select) if !select.test => {
            let field = literal(&select.field);
            let may_be_null = matches!(&select.operand.expr, Expr::Ident(name) if NULLABLE.contains(&name.as_str()));
            let get = call(operators::INDEX, vec![*select.operand.clone(), field.clone()]);
            if !may_be_null {
                return Ok(get);
            }
            let null = node(Expr::Literal(LiteralValue::Null));
            let is_null = node(call(operators::EQUALS, vec![*select.operand, null]));
            call(operators::CONDITIONAL, vec![is_null, node(call(ABSENT, vec![field])), node(get)])
        }
        Expr::Call(of) if of.func_name == "dyn" && of.target.is_none() && of.args.len() == 1 => {
            of.args.into_iter().next().map(|one| one.expr).unwrap_or_default()
        }
        Expr::Call(of) if of.func_name == "bind" && is_named(of.target.as_deref(), "cel") => bind(of.args)?,
        Expr::Call(of) if of.func_name == "optMap" => opt_map(of)?,
        Expr::Struct(object) => Expr::Map(MapExpr {
            entries: object
                .entries
                .into_iter()
                .filter_map(|entry| match entry.expr {
                    EntryExpr::StructField(field) => Some(IdedEntryExpr {
                        id: entry.id,
                        expr: EntryExpr::MapEntry(MapEntryExpr {
                            key: literal(&field.field),
                            value: field.value,
                            optional: field.optional,
                        }),
                    }),
                    EntryExpr::MapEntry(_) => None,
                })
                .collect(),
        }),
        Expr::Comprehension(mut loop_) => {
            let range = std::mem::take(&mut loop_.iter_range);
            loop_.iter_range = node(call(ORDERED, vec![range]));
            Expr::Comprehension(loop_)
        }
        other => other,
    })
}

fn is_named(tree: Option<&IdedExpr>, name: &str) -> bool {
    matches!(tree.map(|tree| &tree.expr), Some(Expr::Ident(found)) if found == name)
}

/// A loop over nothing, whose result is the expression: the variable is what the loop starts with.
fn bind(args: Vec<IdedExpr>) -> Result<Expr, String> {
    let Ok([variable, init, result]) = <[IdedExpr; 3]>::try_from(args) else {
        return Err("cel.bind with other than three arguments".to_owned());
    };
    let Expr::Ident(variable) = variable.expr else { return Err("cel.bind without a variable".to_owned()) };
    Ok(with(variable, init, result))
}

fn with(variable: String, init: IdedExpr, result: IdedExpr) -> Expr {
    Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: node(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "@unused".to_owned(),
        iter_var2: None,
        accu_init: init,
        loop_cond: node(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: node(Expr::Ident(variable.clone())),
        accu_var: variable,
        result,
    }))
}

/// `x.optMap(v, f)` is what `f` makes of the value, if there is one.
fn opt_map(of: CallExpr) -> Result<Expr, String> {
    let (Some(target), Ok([variable, body])) = (of.target, <[IdedExpr; 2]>::try_from(of.args)) else {
        return Err("optMap with other than two arguments".to_owned());
    };
    let Expr::Ident(variable) = variable.expr else { return Err("optMap without a variable".to_owned()) };
    let method = |name: &str| {
        node(Expr::Call(CallExpr { func_name: name.to_owned(), target: Some(target.clone()), args: Vec::new() }))
    };
    let some = node(call("optional.of", vec![node(with(variable, method("value"), body))]));
    Ok(call(operators::CONDITIONAL, vec![method("hasValue"), some, node(call("optional.none", Vec::new()))]))
}
