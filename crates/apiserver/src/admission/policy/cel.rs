// SPDX-License-Identifier: Apache-2.0
//! Expressions of policies: read, made fit for the evaluator, and evaluated.
//!
//! The evaluator is `cel` with the functions of `kube-cel`. A few things that it lacks or does otherwise than the real
//! server are rewritten when an expression is read: see [`super::rewrite`].

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, IdedExpr, Value as Cel,
        common::ast::{CallExpr, Expr, LiteralValue, operators},
        objects::{Key, Map},
        parser::Parser,
    },
};
use serde_json::Value;

use super::{authorizer, rewrite};

/// All functions, and no variables.
static ROOT: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut root = Context::default().with_all();
    authorizer::register(&mut root);
    rewrite::register(&mut root);
    crate::registry::rules::values::register(&mut root);
    root
});

/// The fields of `request`.
const REQUEST: [&str; 13] = [
    "dryRun",
    "kind",
    "name",
    "namespace",
    "operation",
    "options",
    "requestKind",
    "requestResource",
    "requestSubResource",
    "resource",
    "subResource",
    "uid",
    "userInfo",
];

/// An expression that can be evaluated.
#[derive(Debug)]
pub struct Expression {
    pub source: String,
    tree: IdedExpr,
}

/// The variables of an evaluation.
pub struct Variables(Context<'static>);

impl Expression {
    /// Reads an expression that may use these variables. The error is in the words of the real server, except where we
    /// cannot evaluate what it can.
    pub fn compile(source: &str, variables: &[&str]) -> Result<Self, String> {
        let parsed = Parser::new().enable_optional_syntax(true).parse(source);
        let mut tree = parsed.map_err(|errors| {
            let first = errors.errors.first();
            let (line, column) = first.map(|error| error.pos).unwrap_or((1, 1));
            let message = first.map(|error| error.msg.clone()).unwrap_or_default();
            failed(source, line, column.max(1), &message)
        })?;
        rewrite::fit(&mut tree)
            .map_err(|what| format!("this server cannot evaluate {what}: write it in another way"))?;
        let mut bound: Vec<String> = variables.iter().map(|name| (*name).to_owned()).collect();
        check(&tree, source, &mut bound)?;
        Ok(Self { source: source.to_owned(), tree })
    }

    /// The type of its value, where the expression alone tells.
    pub fn kind(&self) -> Option<&'static str> {
        kind(&self.tree)
    }

    pub fn evaluate(&self, variables: &Variables) -> Result<Cel, String> {
        Cel::resolve(&self.tree, &variables.0).map_err(|error| words(&error))
    }
}

impl Variables {
    pub fn new() -> Self {
        Self(ROOT.new_inner_scope())
    }

    pub fn set(&mut self, name: &str, value: Cel) {
        self.0.add_variable_from_value(name, value);
    }
}

fn failed(source: &str, line: isize, column: isize, why: &str) -> String {
    let at = usize::try_from(line - 1).unwrap_or_default();
    let text = source.lines().nth(at).unwrap_or_default();
    let dots = ".".repeat(usize::try_from(column - 1).unwrap_or_default());
    format!("compilation failed: ERROR: <input>:{line}:{column}: {why}\n | {text}\n | {dots}^")
}

/// Refuses names that nobody declares.
fn check(tree: &IdedExpr, source: &str, bound: &mut Vec<String>) -> Result<(), String> {
    match &tree.expr {
        Expr::Ident(name) if !bound.contains(name) && !is_type(name) => Err(undeclared(source, name, 0)),
        Expr::Call(call) => {
            let prefix = match call.target.as_deref().map(|target| &target.expr) {
                Some(Expr::Ident(prefix)) if !bound.contains(prefix) => Some(prefix),
                _ => None,
            };
            let qualified = prefix.map(|prefix| format!("{prefix}.{}", call.func_name));
            let known = qualified.as_deref().is_some_and(is_function) || is_function(&call.func_name);
            if !known && !is_operator(&call.func_name) {
                return Err(undeclared(source, &call.func_name, call.func_name.len()));
            }
            check_request(call, source)?;
            if let (None, Some(target)) = (prefix, &call.target) {
                check(target, source, bound)?;
            }
            call.args.iter().try_for_each(|one| check(one, source, bound))
        }
        Expr::List(list) => list.elements.iter().try_for_each(|one| check(one, source, bound)),
        Expr::Map(map) => rewrite::entries(map).try_for_each(|(key, value)| {
            check(key, source, bound)?;
            check(value, source, bound)
        }),
        Expr::Comprehension(loop_) => {
            check(&loop_.iter_range, source, bound)?;
            check(&loop_.accu_init, source, bound)?;
            let before = bound.len();
            bound.extend([loop_.iter_var.clone(), loop_.accu_var.clone()]);
            let inner = [&loop_.loop_cond, &loop_.loop_step, &loop_.result];
            let outcome = inner.into_iter().try_for_each(|one| check(one, source, bound));
            bound.truncate(before);
            outcome
        }
        _ => Ok(()),
    }
}

/// Refuses fields that a request never has.
fn check_request(call: &CallExpr, source: &str) -> Result<(), String> {
    let [of, field] = call.args.as_slice() else { return Ok(()) };
    let (Expr::Ident(of), Expr::Literal(LiteralValue::String(field))) = (&of.expr, &field.expr) else { return Ok(()) };
    let field = field.inner();
    if call.func_name != operators::INDEX || of != "request" || REQUEST.contains(&field) {
        return Ok(());
    }
    let at = source.find(&format!("request.{field}")).unwrap_or_default() + "request".len();
    Err(at_offset(source, at, &format!("undefined field '{field}'")))
}

fn kind(tree: &IdedExpr) -> Option<&'static str> {
    match &tree.expr {
        Expr::Literal(literal) => Some(match literal {
            LiteralValue::Boolean(_) => "bool",
            LiteralValue::Bytes(_) => "bytes",
            LiteralValue::Double(_) => "double",
            LiteralValue::Int(_) => "int",
            LiteralValue::Null => "null_type",
            LiteralValue::String(_) => "string",
            LiteralValue::UInt(_) => "uint",
        }),
        Expr::Call(call) => match call.func_name.as_str() {
            operators::CONDITIONAL => call.args.get(1).and_then(kind),
            operators::ADD => call.args.first().and_then(kind).or_else(|| call.args.get(1).and_then(kind)),
            operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT => Some("bool"),
            operators::EQUALS | operators::NOT_EQUALS | operators::IN => Some("bool"),
            operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS => Some("bool"),
            "startsWith" | "endsWith" | "contains" | "matches" | "allowed" | "hasValue" => Some("bool"),
            "size" | "int" => Some("int"),
            "string" => Some("string"),
            _ => None,
        },
        _ => None,
    }
}

fn is_type(name: &str) -> bool {
    ["string", "int", "uint", "double", "bool", "bytes", "list", "map", "null_type", "type"].contains(&name)
}

fn is_operator(name: &str) -> bool {
    name.contains('_') || name.starts_with('!') || name.starts_with('-') || name.starts_with('@')
}

/// Whether the evaluator has a function of this name. It does not tell, so we call it and see.
fn is_function(name: &str) -> bool {
    let call = CallExpr { func_name: name.to_owned(), target: None, args: Vec::new() };
    let outcome = Cel::resolve(&IdedExpr { id: 0, expr: Expr::Call(call) }, &ROOT);
    !matches!(outcome, Err(ExecutionError::UndeclaredReference(found)) if *found == name)
}

/// A name that stands for nothing. The real server points at it, or at the arguments of a function.
fn undeclared(source: &str, name: &str, skip: usize) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let found = source.match_indices(name).find(|(at, _)| {
        let before = source.get(..*at).and_then(|text| text.chars().last());
        let after = source.get(at + name.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    });
    let at = found.map(|(at, _)| at + skip).unwrap_or_default();
    at_offset(source, at, &format!("undeclared reference to '{name}' (in container '')"))
}

pub fn at_offset(source: &str, at: usize, why: &str) -> String {
    let before = source.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |end| end + 1) + 1;
    let number = |value: usize| isize::try_from(value).unwrap_or(1);
    failed(source, number(line), number(column), why)
}

fn words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::NoSuchOverload => "no such overload".to_owned(),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// JSON as expressions see it.
pub fn from_json(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Cel::Int(value),
            (None, Some(value)) => Cel::UInt(value),
            _ => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(list) => Cel::List(Arc::new(list.iter().map(from_json).collect())),
        Value::Object(map) => {
            let map: HashMap<Key, Cel> =
                map.iter().map(|(key, value)| (Key::String(Arc::new(key.clone())), from_json(value))).collect();
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}

/// What an expression gave, as JSON.
pub fn to_json(value: &Cel) -> Option<Value> {
    Some(match value {
        Cel::Null => Value::Null,
        Cel::Bool(value) => (*value).into(),
        Cel::Int(value) => (*value).into(),
        Cel::UInt(value) => (*value).into(),
        Cel::Float(value) => (*value).into(),
        Cel::String(text) => text.as_str().into(),
        Cel::List(list) => Value::Array(list.iter().map(to_json).collect::<Option<_>>()?),
        Cel::Map(map) => {
            let entries = map.map.iter().map(|(key, value)| Some((key.to_string(), to_json(value)?)));
            Value::Object(entries.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}
