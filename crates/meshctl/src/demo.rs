//! `demo`: a whole mesh, four orders that end in four ways, and a check that money and stock agree.

mod report;
mod run;
mod scenario;

use clap::Args;

use crate::dev::Signals;
use crate::dev::mesh::{DevMesh, Options};
use crate::outcome::Outcome;
use crate::output::{Format, say};
use crate::streams::Folder;

/// How to run it.
#[derive(Debug, Clone, Args)]
pub struct Demo {
    /// Take the services' programs as they are
    #[arg(long)]
    no_build: bool,
    #[command(flatten)]
    folder: Folder,
}

impl Demo {
    /// Runs the demonstration and leaves nothing behind.
    ///
    /// # Errors
    /// When the mesh does not come up or cannot be talked to.
    pub async fn run(self, format: Format) -> anyhow::Result<Outcome> {
        let mut told = Signals::new()?;
        let logs = testkit::scratch::dir("demo")?;
        let options = Options {
            data: None,
            logs: logs.path().to_owned(),
            replicas: 1,
            declaration: self.folder.dir,
            build: !self.no_build,
            demo_data: true,
        };
        let work = async {
            let mesh = DevMesh::start(&options).await?;
            let report = run::all(&mesh).await;
            say("stopping");
            mesh.stop().await?;
            report
        };
        let report = tokio::select! {
            report = work => report?,
            // All of it ends with the work that is dropped here.
            () = told.end() => return Ok(Outcome::No),
        };
        format.print(&report)?;
        Ok(Outcome::from_answer(report.all_right()))
    }
}
