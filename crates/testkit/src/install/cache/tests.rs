use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

fn chosen(variables: &[(&str, &str)], root: bool) -> Option<PathBuf> {
    let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value));
    choose(find, root).ok()
}

#[test]
fn the_cache_is_where_the_variables_say() {
    let all = [("TESTKIT_CACHE", "/srv/kit"), ("XDG_CACHE_HOME", "/srv/xdg"), ("HOME", "/srv/home")];
    assert_eq!(chosen(&all, false), Some("/srv/kit".into()));
    assert_eq!(chosen(&all[1..], false), Some("/srv/xdg/event-mesh".into()));
    assert_eq!(chosen(&all[2..], false), Some("/srv/home/.cache/event-mesh".into()));
    assert_eq!(chosen(&[], false), None);
}

#[test]
fn root_takes_the_system_cache_when_its_own_is_closed() {
    let closed = tempfile::tempdir().unwrap();
    fs::set_permissions(closed.path(), Permissions::from_mode(0o700)).unwrap();
    let closed = closed.path().to_str().unwrap();
    assert_eq!(chosen(&[("HOME", closed)], true), Some(SYSTEM_CACHE.into()));
    assert_eq!(chosen(&[], true), Some(SYSTEM_CACHE.into()));
    assert_eq!(chosen(&[("TESTKIT_CACHE", closed)], true), None);
}

#[test]
fn many_at_once_fill_a_place_once_and_all_find_it_whole() {
    let cache = tempfile::tempdir().unwrap();
    let fills = AtomicU32::new(0);
    let fill = |partial: &Path| {
        fills.fetch_add(1, Ordering::SeqCst);
        for part in 0..200 {
            fs::write(partial.join(part.to_string()), "part").unwrap();
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let place = once_in(cache.path(), "server", fill).unwrap();
                assert_eq!(fs::read_dir(place).unwrap().count(), 200);
            });
        }
    });
    assert_eq!(fills.load(Ordering::SeqCst), 1);
}

#[test]
fn what_was_left_half_done_does_not_count_and_does_not_stay() {
    let cache = tempfile::tempdir().unwrap();
    let failed = once_in(cache.path(), "server", |partial| {
        fs::write(partial.join("half"), "a program").unwrap();
        Err(Error::Unusable("the power failed".to_owned()))
    });
    assert!(failed.is_err());
    assert!(!cache.path().join("server").exists());

    let place = once_in(cache.path(), "server", |partial| {
        fs::write(partial.join("whole"), "a program").unwrap();
        Ok(())
    })
    .unwrap();
    let names: Vec<_> = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["whole"]);
}
