// SPDX-License-Identifier: Apache-2.0
//! A stand-in for Flux: brokers that really meet over TCP, with no scheduler behind them. It uses the standard library
//! only, so that one call of rustc makes a program that needs nothing else in its image.
//!
//! Like Flux it takes its rank from the host list, refuses a certificate that others can read, waits for the quorum, runs
//! the program on rank 0 and ends with its code; workers end with 0 when the lead says so, and with 1 when another lead
//! has come. Unlike Flux every rank is a child of rank 0, each job is one process on rank 0, and no signal is handled.
//!
//! `FLUX_HOSTS` names a file of lines `address name`: many brokers of one machine then have an address each.

mod jobs;

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs},
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    path::Path,
    process::ExitCode,
    sync::{Arc, Condvar, Mutex},
    thread,
    time::Duration,
};

use jobs::{batch, command, state, status, submit, wait};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const PAUSE: Duration = Duration::from_millis(50);

pub fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run(&words).map(ExitCode::from).unwrap_or_else(|error| {
        eprintln!("flux: {error}");
        ExitCode::FAILURE
    })
}

fn run(words: &[&str]) -> Result<u8> {
    match words {
        ["R", "encode", options @ ..] => encode(options)?,
        ["start" | "broker", words @ ..] => return Broker::read(words)?.run(),
        ["submit", words @ ..] => return submit(words),
        ["batch", words @ ..] => return batch(words),
        ["job", "wait", "--all"] => return wait(),
        ["jobs", "-a"] => print!("{}", fs::read_to_string(state().join("jobs")).unwrap_or_default()),
        ["proxy", uri, words @ ..] => return status(command(words)?.env("FLUX_URI", uri)),
        ["resource", "list"] => print!("{}", ask(&env::var("FLUX_URI")?)?),
        ["dump", file] => fs::write(file, "state\n")?,
        ["keygen", file] => {
            let key = "0".repeat(40);
            fs::write(file, format!("metadata\ncurve\n    public-key = \"{key}\"\n    secret-key = \"{key}\"\n"))?;
        }
        ["queue", "idle" | "stop"] | ["module", ..] => {}
        _ => return Err(format!("unknown words: {words:?}").into()),
    }
    Ok(0)
}

fn encode(options: &[&str]) -> Result<()> {
    let hosts = options.iter().find_map(|word| word.strip_prefix("--hosts=")).ok_or("--hosts is missing")?;
    let last = expand(hosts).len().saturating_sub(1);
    println!(
        "{{\"version\": 1, \"execution\": {{\"R_lite\": [{{\"rank\": \"0-{last}\", \"children\": {{\"core\": \"0\"}}}}], \
         \"starttime\": 0.0, \"expiration\": 0.0, \"nodelist\": [\"{hosts}\"]}}}}"
    );
    Ok(())
}

/// `a-[0-2],b` is `a-0`, `a-1`, `a-2`, `b`.
pub fn expand(hosts: &str) -> Vec<String> {
    let parts = hosts.split(',').map(|part| {
        let (name, range) = part.split_once('[').unwrap_or((part, ""));
        let range = range.trim_end_matches(']');
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        match (from.parse::<u32>(), to.parse::<u32>()) {
            (Ok(from), Ok(to)) => (from..=to).map(|index| format!("{name}{index}")).collect(),
            _ => vec![name.to_owned()],
        }
    });
    parts.collect::<Vec<Vec<_>>>().concat()
}

/// What the broker at this socket knows.
fn ask(uri: &str) -> Result<String> {
    let mut text = String::new();
    UnixStream::connect(uri.trim_start_matches("local://"))?.read_to_string(&mut text)?;
    Ok(text)
}

// === Brokers ===

/// What a broker was told on its command line and in its configuration.
struct Broker {
    attributes: BTreeMap<String, String>,
    program: Vec<String>,
    hosts: Vec<Host>,
    rank: usize,
    key: String,
}

struct Host {
    name: String,
    bind: String,
    connect: String,
}

/// Who is there: for each rank a number of the connection and the connection itself.
struct Crew {
    ranks: Mutex<BTreeMap<usize, (u64, TcpStream)>>,
    changed: Condvar,
}

impl Broker {
    fn read(words: &[&str]) -> Result<Self> {
        let mut words = words.iter();
        let (mut config, mut attributes, mut program) = (None, BTreeMap::new(), Vec::new());
        while let Some(word) = words.next() {
            match *word {
                // Flux takes the next word for an option of the broker, and so do we.
                "-o" => {}
                "-c" | "--config" | "--config-path" => config = words.next(),
                word if word.starts_with("--wrap=") => {}
                word if word.starts_with("-S") => {
                    let (name, value) = word[2..].split_once('=').unwrap_or((&word[2..], "1"));
                    attributes.insert(name.to_owned(), value.to_owned());
                }
                word => {
                    program.push(word.to_owned());
                    program.extend(words.by_ref().map(|word| (*word).to_owned()));
                }
            }
        }
        let config = fs::read_to_string(Path::new(config.ok_or("no configuration")?).join("broker.toml"))?;
        let hosts = hosts(&config);
        let own = attributes.get("hostname").cloned().or_else(|| env::var("HOSTNAME").ok()).ok_or("no host name")?;
        let rank = hosts.iter().position(|host| host.name == own).ok_or_else(|| format!("no rank is named {own}"))?;
        let key = certificate(&setting(&config, "curve_cert").ok_or("no certificate is named")?)?;
        let resources = setting(&config, "path").ok_or("no resources are named")?;
        if !fs::read_to_string(&resources)?.contains("R_lite") {
            return Err(format!("{resources} has no resources").into());
        }
        Ok(Self { attributes, program, hosts, rank, key })
    }

    fn run(self) -> Result<u8> {
        for folder in ["rundir", "statedir"] {
            let folder = self.attribute(folder).ok_or_else(|| format!("{folder} is not set"))?;
            fs::metadata(folder).map_err(|error| format!("{folder}: {error}"))?;
        }
        if let Some(file) = self.attribute("content.restore") {
            fs::metadata(file).map_err(|error| format!("{file}: {error}"))?;
        }
        let broker = Arc::new(self);
        let crew = Arc::new(Crew { ranks: Mutex::new(BTreeMap::new()), changed: Condvar::new() });
        if let Some(socket) = broker.attribute("local-uri") {
            broker.clone().answer(socket.trim_start_matches("local://"), crew.clone())?;
        }
        if broker.rank == 0 { broker.lead(&crew) } else { broker.follow() }
    }

    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }

    fn log(&self, text: &str) {
        if self.attribute("log-stderr-level").is_none_or(|level| level.parse().unwrap_or(6) >= 6) {
            eprintln!("broker[{}]: {text}", self.rank);
        }
    }

    /// Tells everybody at the local socket who is there.
    fn answer(self: Arc<Self>, socket: &str, crew: Arc<Crew>) -> Result<()> {
        let _ = fs::remove_file(socket);
        let listener = UnixListener::bind(socket)?;
        thread::spawn(move || {
            for mut asker in listener.incoming().flatten() {
                let _ = asker.write_all(self.list(&crew).as_bytes());
            }
        });
        Ok(())
    }

    fn list(&self, crew: &Crew) -> String {
        let ranks = crew.ranks.lock().unwrap();
        let line = |(rank, host): (usize, &Host)| {
            let peer = ranks.get(&rank).and_then(|(_, stream)| stream.peer_addr().ok());
            let peer = peer.map(|address| address.ip().to_string());
            match peer {
                Some(peer) => format!("{rank} {} up {peer}\n", host.name),
                None if rank == self.rank => format!("{rank} {} up\n", host.name),
                None => format!("{rank} {} down\n", host.name),
            }
        };
        self.hosts.iter().enumerate().map(line).collect()
    }

    fn lead(self: Arc<Self>, crew: &Arc<Crew>) -> Result<u8> {
        let listener = TcpListener::bind(self.own_address()?)?;
        let (broker, others) = (self.clone(), crew.clone());
        thread::spawn(move || {
            for (number, stream) in (0..).zip(listener.incoming().flatten()) {
                let (broker, crew) = (broker.clone(), others.clone());
                thread::spawn(move || broker.welcome(number, stream, &crew));
            }
        });
        let quorum = self.attribute("broker.quorum").and_then(|count| count.parse().ok()).unwrap_or(self.hosts.len());
        drop(crew.changed.wait_while(crew.ranks.lock().unwrap(), |ranks| ranks.len() + 1 < quorum).unwrap());
        self.log(&format!("{quorum} of {} ranks are there", self.hosts.len()));
        let words: Vec<&str> = self.program.iter().map(String::as_str).collect();
        if words.is_empty() || self.attribute("broker.rc2_none").is_some() {
            loop {
                thread::park();
            }
        }
        let uri = self.attribute("local-uri").unwrap_or_default();
        let state = self.attribute("statedir").unwrap_or_default();
        let code = status(command(&words)?.env("FLUX_URI", uri).env("FLUX_STATE", state))?;
        if let Some(file) = self.attribute("content.dump") {
            fs::write(file, "state\n")?;
        }
        for (_, stream) in crew.ranks.lock().unwrap().values_mut() {
            let _ = stream.write_all(b"bye\n");
        }
        // All are given the time to hear it.
        let ranks = crew.ranks.lock().unwrap();
        drop(crew.changed.wait_timeout_while(ranks, Duration::from_secs(5), |ranks| !ranks.is_empty()));
        Ok(code)
    }

    /// One other rank, from its first word until its connection ends.
    fn welcome(&self, number: u64, mut stream: TcpStream, crew: &Crew) -> Option<()> {
        let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
        let hello = lines.next()?.ok()?;
        let mut words = hello.split(' ');
        let (rank, key) = (words.next()?.parse::<usize>().ok()?, words.next()?);
        let host = &self.hosts.get(rank)?.name;
        if key != self.key {
            self.log(&format!("{host} has another certificate"));
            return None;
        }
        stream.write_all(b"welcome\n").ok()?;
        self.log(&format!("{host} is there"));
        crew.ranks.lock().unwrap().insert(rank, (number, stream));
        crew.changed.notify_all();
        while lines.next().is_some_and(|line| line.is_ok()) {}
        let mut ranks = crew.ranks.lock().unwrap();
        if ranks.get(&rank).is_some_and(|(last, _)| *last == number) {
            ranks.remove(&rank);
            self.log(&format!("{host} is gone"));
        }
        crew.changed.notify_all();
        Some(())
    }

    fn follow(&self) -> Result<u8> {
        let mut lead = self.reach_lead();
        lead.write_all(format!("{} {}\n", self.rank, self.key).as_bytes())?;
        let mut lines = BufReader::new(lead).lines();
        if lines.next().transpose()?.as_deref() != Some("welcome") {
            return Err("the lead does not want us".into());
        }
        self.log("the lead is there");
        if let Some(Ok(line)) = lines.next()
            && line == "bye"
        {
            return Ok(0);
        }
        self.log("the lead is gone");
        self.reach_lead();
        Ok(1)
    }

    /// For as long as it takes: the lead, or its name, may come later.
    fn reach_lead(&self) -> TcpStream {
        loop {
            let lead = self.hosts.first().map(|host| host.connect.as_str()).unwrap_or_default();
            if let Some(stream) = resolve(lead).and_then(|address| TcpStream::connect(address).ok()) {
                return stream;
            }
            thread::sleep(PAUSE);
        }
    }

    /// All addresses, or with `FLUX_HOSTS` the one that others know us by.
    fn own_address(&self) -> Result<SocketAddr> {
        let host = self.hosts.get(self.rank).ok_or("no host")?;
        let bind = match env::var_os("FLUX_HOSTS") {
            Some(_) => host.connect.clone(),
            None => host.bind.replace("*:", "0.0.0.0:"),
        };
        resolve(&bind).ok_or_else(|| format!("cannot resolve {bind}").into())
    }
}

// === Configuration ===

/// The value of a line `key = "value"`.
fn setting(config: &str, key: &str) -> Option<String> {
    config.lines().find_map(|line| field(line.strip_prefix(key)?, ""))
}

/// The text after `key = `, of which we take what needs no escape.
fn field(line: &str, key: &str) -> Option<String> {
    let (_, after) = line.split_once(&format!("{key} = \""))?;
    Some(after.split_once('"')?.0.to_owned())
}

fn hosts(config: &str) -> Vec<Host> {
    let default = |key: &str| setting(config, key).unwrap_or_default();
    let (bind, connect) = (default("default_bind"), default("default_connect"));
    let port = config.lines().find_map(|line| line.strip_prefix("default_port = ")).unwrap_or("8050");
    let entry = |line: &str| {
        let of = |name: &str, own: &str, default: &str| {
            let text = field(line, own).unwrap_or_else(|| default.to_owned());
            text.replace("%h", name).replace("%p", port)
        };
        let make = |name: String| {
            let (bind, connect) = (of(&name, "bind", &bind), of(&name, "connect", &connect));
            Host { name, bind, connect }
        };
        expand(&field(line, "host").unwrap_or_default()).into_iter().map(make).collect::<Vec<_>>()
    };
    config.lines().filter(|line| line.trim_start().starts_with('{')).flat_map(entry).collect()
}

/// The public key. What Flux refuses is refused here, but that the keys are a pair is left to tests of the certificate.
fn certificate(file: &str) -> Result<String> {
    if fs::metadata(file)?.permissions().mode() & 0o077 != 0 {
        return Err(format!("{file} is readable by group or other").into());
    }
    let text = fs::read_to_string(file)?;
    let key = |name: &str| text.lines().find_map(|line| field(line, name)).filter(|key| key.len() == 40);
    let sections = ["metadata", "curve"].iter().all(|name| text.lines().any(|line| line == *name));
    let (public, _) = key("public-key").zip(key("secret-key").filter(|_| sections)).ok_or("no certificate")?;
    Ok(public)
}

/// The address behind `tcp://name:port`.
fn resolve(uri: &str) -> Option<SocketAddr> {
    let uri = uri.strip_prefix("tcp://")?;
    let Some(file) = env::var_os("FLUX_HOSTS") else { return uri.to_socket_addrs().ok()?.next() };
    let (name, port) = uri.split_once(':')?;
    let names = fs::read_to_string(file).ok()?;
    let address = names.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' '))?;
    Some(SocketAddr::new(address.parse().ok()?, port.parse().ok()?))
}
