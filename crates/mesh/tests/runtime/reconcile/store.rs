//! The directory of a server's streams, copied and put back while the server is down.

use std::fs;
use std::path::Path;

use crate::world::World;

/// A copy of the streams of a world.
pub(super) struct StoreCopy {
    /// Goes with this value.
    home: Box<dyn AsRef<Path> + Send + Sync>,
}

impl StoreCopy {
    /// Stops the server, copies what it has on disk, starts it again.
    pub(super) async fn take(world: &World) -> Self {
        let home = testkit::scratch::dir("store").unwrap();
        world.nats.term().await.unwrap();
        copy(&world.nats.store_dir(), &home.path().join("copy"));
        world.nats.restart().await.unwrap();
        Self { home: Box::new(home) }
    }

    /// Puts the copy in place of what the server, which is down, has on disk.
    pub(super) fn put_back(&self, world: &World) {
        let store = world.nats.store_dir();
        fs::remove_dir_all(&store).unwrap();
        copy(&(*self.home).as_ref().join("copy"), &store);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}
