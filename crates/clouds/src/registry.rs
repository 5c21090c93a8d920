// SPDX-License-Identifier: Apache-2.0
//! All clouds there are. A new one is a folder, and an entry here.

use std::sync::Arc;

use bivouac_market::Row;

use crate::cloud::Cloud;
use crate::credentials::Credentials;
use crate::digitalocean;
use crate::fake::{Economy, Fake, Server, Shapes};
use crate::fault::Fault;
use crate::gcp;
use crate::lambda;
use crate::paperspace;
use crate::runpod;
use crate::shadeform;
use crate::vast;
use crate::verda;
use crate::vultr;
use crate::wire::Line;

/// A client, if the credential has what it needs.
pub type Client = Result<Arc<dyn Cloud>, Fault>;

/// A cloud that can be bought from.
pub struct Entry {
    /// As price lists, labels and commands name it.
    pub name: &'static str,
    /// What else people call it in a GPUNodeClass.
    pub aliases: &'static [&'static str],
    /// The fields of its credential.
    pub fields: &'static [&'static str],
    /// Its address.
    pub base: &'static str,
    pub client: fn(&Credentials, Line, &str) -> Client,
    pub fake: fn(&Credentials, Shapes) -> Box<dyn Fake>,
    pub shapes: &'static str,
}

pub const ALL: &[Entry] = &[
    Entry {
        name: digitalocean::NAME,
        aliases: &["do", "digital-ocean"],
        fields: &["key"],
        base: digitalocean::BASE,
        client: |credentials, line, base| Ok(Arc::new(digitalocean::DigitalOcean::new(credentials, line, base)?)),
        fake: |credentials, shapes| Box::new(digitalocean::fake::FakeDigitalOcean::new(key(credentials), shapes)),
        shapes: digitalocean::fake::SHAPES,
    },
    Entry {
        name: gcp::NAME,
        aliases: &["gce", "google"],
        fields: &["project_id", "access_token"],
        base: gcp::BASE,
        client: |credentials, line, base| Ok(Arc::new(gcp::Gcp::new(credentials, line, base)?)),
        fake: |credentials, shapes| Box::new(gcp::fake::FakeGcp::new(field(credentials, "access_token"), shapes)),
        shapes: gcp::fake::SHAPES,
    },
    Entry {
        name: lambda::NAME,
        aliases: &["lambdalabs"],
        fields: &["key"],
        base: lambda::BASE,
        client: |credentials, line, base| Ok(Arc::new(lambda::Lambda::new(credentials, line, base)?)),
        fake: |credentials, shapes| Box::new(lambda::fake::FakeLambda::new(key(credentials), shapes)),
        shapes: lambda::fake::SHAPES,
    },
    Entry {
        name: paperspace::NAME,
        aliases: &[],
        fields: &["key"],
        base: paperspace::BASE,
        client: |credentials, line, base| Ok(Arc::new(paperspace::Paperspace::new(credentials, line, base)?)),
        fake: |credentials, shapes| Box::new(paperspace::fake::FakePaperspace::new(key(credentials), shapes)),
        shapes: paperspace::fake::SHAPES,
    },
    Entry {
        name: runpod::NAME,
        aliases: &[],
        fields: &["key"],
        base: runpod::BASE,
        client: |credentials, line, base| Ok(Arc::new(runpod::Runpod::new(credentials, line, base)?)),
        fake: |credentials, shapes| Box::new(runpod::fake::FakeRunpod::new(key(credentials), shapes)),
        shapes: runpod::fake::SHAPES,
    },
    Entry {
        name: shadeform::NAME,
        aliases: &[],
        fields: &["key"],
        base: shadeform::BASE,
        client: |credentials, line, base| Ok(Arc::new(shadeform::Shadeform::new(credentials, line, base)?)),
        fake: |credentials, shapes| Box::new(shadeform::fake::FakeShadeform::new(key(credentials), shapes)),
        shapes: shadeform::fake::SHAPES,
    },
    Entry {
        name: vast::NAME,
        aliases: &["vastai", "vast.ai"],
        fields: &["key"],
        base: vast::BASE,
        client: |credentials, line, base| Ok(Arc::new(vast::Vast::new(credentials, line, base)?)),
        fake: |credentials, shapes| Box::new(vast::fake::FakeVast::new(key(credentials), shapes)),
        shapes: vast::fake::SHAPES,
    },
    Entry {
        name: verda::NAME,
        aliases: &["datacrunch"],
        fields: &["client_id", "client_secret"],
        base: verda::BASE,
        client: |credentials, line, base| Ok(Arc::new(verda::Verda::new(credentials, line, base)?)),
        fake: |credentials, shapes| {
            let (id, secret) = (field(credentials, "client_id"), field(credentials, "client_secret"));
            Box::new(verda::fake::FakeVerda::new(id, secret, shapes))
        },
        shapes: verda::fake::SHAPES,
    },
    Entry {
        name: vultr::NAME,
        aliases: &[],
        fields: &["key"],
        base: vultr::BASE,
        client: |credentials, line, base| Ok(Arc::new(vultr::Vultr::new(credentials, line, base)?)),
        fake: |credentials, shapes| Box::new(vultr::fake::FakeVultr::new(key(credentials), shapes)),
        shapes: vultr::fake::SHAPES,
    },
];

/// The entry with this name, or with this alias.
pub fn find(name: &str) -> Option<&'static Entry> {
    let is_it = |entry: &&Entry| entry.name == name || entry.aliases.contains(&name);
    ALL.iter().find(is_it)
}

// === impl Entry ===

impl Entry {
    /// The client for a credential. All clients of a credential on one line share what the cloud allows.
    pub fn open(&self, credentials: &Credentials, line: &Line) -> Client {
        (self.client)(credentials, line.of(credentials), self.base)
    }

    /// A fake of this cloud that sells what its shapes say.
    pub fn server(&self, credentials: &Credentials) -> Result<Server, serde_saphyr::Error> {
        let shapes = Shapes::parse(self.shapes)?;
        let economy = Economy::new(shapes.goods.clone());
        Ok(Server::new((self.fake)(credentials, shapes), economy))
    }

    /// A fake of this cloud that sells what is in a price list.
    pub fn shop(&self, credentials: &Credentials, rows: &[Row<'_>]) -> Result<Server, serde_saphyr::Error> {
        let fake = (self.fake)(credentials, Shapes::parse(self.shapes)?);
        let goods = rows.iter().filter(|row| row.cloud == self.name).filter_map(|row| fake.good(row)).collect();
        Ok(Server::new(fake, Economy::new(goods)))
    }

    /// The path behind the cloud's own address.
    pub fn path(&self) -> &'static str {
        let rest = self.base.split_once("://").map_or(self.base, |(_, rest)| rest);
        rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default()
    }
}

fn key(credentials: &Credentials) -> &str {
    field(credentials, "key")
}

fn field<'a>(credentials: &'a Credentials, name: &str) -> &'a str {
    credentials.get(name).map_or("", |secret| secret.reveal())
}
