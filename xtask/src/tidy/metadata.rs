//! What cargo knows about the workspace: who depends on whom, and with which features.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use crate::tree;

/// Why one package is a dependency of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Normal,
    Build,
    Dev,
}

/// A package as it is resolved for this machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Package {
    pub(super) name: String,
    /// Folder from the root; only members of the workspace have one.
    pub(super) folder: Option<String>,
    /// Features that anything in the workspace enables.
    pub(super) features: BTreeSet<String>,
    /// Ids of the packages that it depends on.
    pub(super) dependencies: BTreeSet<(Kind, String)>,
}

/// The resolved packages by cargo's id.
#[derive(Debug, Default)]
pub(super) struct Graph(pub(super) BTreeMap<String, Package>);

impl Graph {
    pub(super) fn read() -> anyhow::Result<Self> {
        let version = tree::output(Command::new("rustc").arg("-vV"))?;
        let host =
            version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc does not name its host")?;
        let arguments = ["metadata", "--format-version", "1", "--filter-platform", host];
        let metadata = tree::output(&mut tree::cargo(&arguments))?;
        let metadata = serde_json::from_str(&metadata).context("cargo's metadata cannot be read")?;
        Self::from_metadata(&metadata).context("cargo's metadata is not as it was")
    }

    fn from_metadata(metadata: &Value) -> Option<Self> {
        let root = metadata["workspace_root"].as_str()?;
        let members: Vec<&str> = metadata["workspace_members"].as_array()?.iter().filter_map(Value::as_str).collect();
        let mut packages = BTreeMap::new();
        for package in metadata["packages"].as_array()? {
            let id = package["id"].as_str()?;
            let manifest = package["manifest_path"].as_str()?;
            let folder = manifest.strip_prefix(root).and_then(|path| path.strip_suffix("/Cargo.toml"));
            let folder = folder.filter(|_| members.contains(&id)).map(|folder| folder.trim_matches('/').to_owned());
            let name = package["name"].as_str()?.to_owned();
            packages.insert(id.to_owned(), Package { name, folder, ..Package::default() });
        }
        for node in metadata["resolve"]["nodes"].as_array()? {
            let package = packages.get_mut(node["id"].as_str()?)?;
            package.features =
                node["features"].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            for dependency in node["deps"].as_array()? {
                let id = dependency["pkg"].as_str()?;
                let kinds = dependency["dep_kinds"].as_array()?.iter();
                package.dependencies.extend(kinds.map(|kind| (kind_of(&kind["kind"]), id.to_owned())));
            }
        }
        Some(Self(packages))
    }

    /// The packages of the workspace.
    pub(super) fn members(&self) -> impl Iterator<Item = &Package> {
        self.0.values().filter(|package| package.folder.is_some())
    }

    /// The direct dependencies of a package, those of its tests included.
    pub(super) fn direct<'a>(&'a self, package: &'a Package) -> impl Iterator<Item = &'a Package> {
        package.dependencies.iter().filter_map(|(_, id)| self.0.get(id))
    }

    /// The names of everything that a package is built or tested with.
    pub(super) fn all_names(&self, package: &Package) -> BTreeSet<&str> {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut left: Vec<&str> = package.dependencies.iter().map(|(_, id)| id.as_str()).collect();
        while let Some(id) = left.pop() {
            if let Some(next) = self.0.get(id).filter(|_| seen.insert(id)) {
                let deeper = next.dependencies.iter().filter(|(kind, _)| *kind != Kind::Dev);
                left.extend(deeper.map(|(_, id)| id.as_str()));
            }
        }
        seen.into_iter().filter_map(|id| self.0.get(id)).map(|package| package.name.as_str()).collect()
    }
}

fn kind_of(value: &Value) -> Kind {
    match value.as_str() {
        Some("dev") => Kind::Dev,
        Some("build") => Kind::Build,
        _ => Kind::Normal,
    }
}
