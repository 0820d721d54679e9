//! The private servers of a run.

use testkit::NatsUser;

use crate::declaration::User;

/// The declared users as the test bed takes them; it makes their keys.
pub fn nats_users(users: &[User]) -> Vec<NatsUser> {
    users.iter().map(nats_user).collect()
}

fn nats_user(user: &User) -> NatsUser {
    let permissions = &user.permissions;
    let nats_user = NatsUser::new(&user.name)
        .publish(permissions.publish.allow.iter().cloned())
        .subscribe(permissions.subscribe.allow.iter().cloned())
        .inbox_prefix(&user.inbox_prefix);
    if permissions.allow_responses { nats_user.allow_responses() } else { nats_user }
}
