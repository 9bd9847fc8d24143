//! Stories of the SQLite file itself.

use std::process::Command;

use firesteel_model::StatementState;
use firesteel_session::ports::{ResultStore, SessionStore, StoreError};
use firesteel_store::documents::{Index, Key, Op};
use firesteel_store::{Documents, Settings, Sqlite, SqliteOptions, Synchronous, open_sqlite};

use crate::people::{attempt, columns, outcome, query, rows, running, session, statement, totals};

fn options() -> SqliteOptions {
    SqliteOptions { synchronous: Synchronous::Normal, ..SqliteOptions::default() }
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let open = || open_sqlite(&file, &SqliteOptions::default(), Settings::default()).unwrap();
    let st = statement("st", 1);
    let store = open();
    store.prepare(true).await.unwrap();
    store.create_session(&session("s")).await.unwrap();
    let made = store.create_statement(&st, None).await.unwrap();
    drop(store);
    let store = open();
    let claim = store.write_statement(&st.id, made, &running("j")).await.unwrap();
    assert!(claim > made, "numbers go on rising");
    store.stage(&outcome(&st, attempt(claim, 1)), &columns(), &rows(), totals()).await.unwrap();
    drop(store);
    let store = open();
    store.write_statement(&st.id, claim, &StatementState::Success).await.unwrap();
    store.publish(&outcome(&st, attempt(claim, 1))).await.unwrap();
    assert_eq!(store.result(&query("q-st")).await.unwrap().unwrap().rows, rows());
}

#[tokio::test]
async fn a_number_is_never_used_twice() {
    let folder = tempfile::tempdir().unwrap();
    let file = Sqlite::open(&folder.path().join("store.db"), &options()).unwrap();
    let key = Key { index: Index::State, id: "x".to_owned() };
    let mut last = None;
    for _ in 0..3 {
        let made = file.bulk(vec![Op::Create { key: key.clone(), body: "{}".to_owned() }], false).await.unwrap();
        let version = *made[0].as_ref().unwrap();
        assert!(Some(version) > last, "deleting the newest gives no number back");
        let gone = file.bulk(vec![Op::Delete { key: key.clone(), at: version }], false).await.unwrap();
        assert!(gone[0].is_ok());
        last = Some(version);
    }
}

const CHILD: &str = "FIRESTEEL_CONTRACT_CHILD";

/// Each of several processes adds to one number, again whenever another was first: nothing that was added is lost. This
/// test starts itself anew for each process.
#[tokio::test]
async fn processes_that_write_at_once_lose_nothing() {
    const ADDITIONS: u32 = 50;
    let id = statement("st", 1).id;
    let add = async |file: &str| {
        let store = open_sqlite(file, &options(), Settings::default()).unwrap();
        for _ in 0..ADDITIONS {
            loop {
                let mut there = store.companion(&id).await.unwrap().unwrap();
                there.value.attempts += 1;
                let at = firesteel_model::Expect::Version(there.version);
                match store.write_companion(&id, at, &there.value).await {
                    Ok(_) => break,
                    Err(error) => assert_eq!(error, StoreError::Conflict),
                }
            }
        }
    };
    if let Ok(file) = std::env::var(CHILD) {
        return add(&file).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db").to_string_lossy().into_owned();
    let store = open_sqlite(&file, &options(), Settings::default()).unwrap();
    let none = firesteel_session::ports::Companion::default();
    store.write_companion(&id, firesteel_model::Expect::Absent, &none).await.unwrap();
    let name = "file::processes_that_write_at_once_lose_nothing";
    let children: Vec<_> = (0..3)
        .map(|_| {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", name]).env(CHILD, &file).stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    add(&file).await;
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(store.companion(&id).await.unwrap().unwrap().value.attempts, 4 * ADDITIONS);
}

#[test]
fn a_new_file_is_made_once_by_many_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    std::thread::scope(|scope| {
        let opened: Vec<_> = (0..8).map(|_| scope.spawn(|| Sqlite::open(&file, &options()).map(|_| ()))).collect();
        for thread in opened {
            assert_eq!(thread.join().unwrap(), Ok(()));
        }
    });
}

#[cfg(unix)]
#[test]
fn only_its_owner_reads_a_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let _store = Sqlite::open(&file, &options()).unwrap();
    for name in ["store.db", "store.db-wal"] {
        let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_file_that_is_none_of_ours_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "no database at all, but a text long enough to be looked at\n".repeat(20)).unwrap();
    let before = std::fs::read(&text).unwrap();
    let error = Sqlite::open(&text, &options()).unwrap_err();
    assert!(
        matches!(&error, StoreError::Refused(told) if told.contains("notes.txt` is not a Firesteel store (SQLite) file")),
        "{error:?}"
    );
    assert_eq!(std::fs::read(&text).unwrap(), before);

    let newer = folder.path().join("newer.db");
    let sqlite = rusqlite::Connection::open(&newer).unwrap();
    sqlite.execute_batch("PRAGMA application_id = 0x46697265; PRAGMA user_version = 7").unwrap();
    drop(sqlite);
    assert_eq!(
        Sqlite::open(&newer, &options()).unwrap_err(),
        StoreError::Refused(format!(
            "SQLite file `{}` has format 7, this firesteel knows 3; use the firesteel that made it",
            newer.display()
        ))
    );
    let error = Sqlite::open(folder.path(), &options()).unwrap_err();
    assert!(matches!(&error, StoreError::Refused(told) if told.contains("cannot be opened")), "{error:?}");
}

#[test]
fn a_database_of_another_program_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for (name, made) in [
        ("tables.db", "CREATE TABLE counter (n); INSERT INTO counter VALUES (1)"),
        ("version.db", "PRAGMA user_version = 2"),
        ("application.db", "PRAGMA application_id = 7"),
    ] {
        let theirs = folder.path().join(name);
        rusqlite::Connection::open(&theirs).unwrap().execute_batch(made).unwrap();
        let before = std::fs::read(&theirs).unwrap();
        assert_eq!(
            Sqlite::open(&theirs, &options()).unwrap_err(),
            StoreError::Refused(format!(
                "SQLite file `{}` belongs to another program; name another with --store",
                theirs.display()
            ))
        );
        assert_eq!(std::fs::read(&theirs).unwrap(), before, "{name}");
    }
    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    drop(Sqlite::open(&empty, &options()).unwrap());
    rusqlite::Connection::open(&empty).unwrap().execute_batch("PRAGMA application_id = 0").unwrap();
    Sqlite::open(&empty, &options()).expect("one of ours from before files said whose they are");
}

#[tokio::test]
async fn a_document_that_is_no_json_is_unreadable_and_the_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let store = open_sqlite(&file, &options(), Settings::default()).unwrap();
    store.create_statement(&statement("good", 1), None).await.unwrap();
    let sqlite = rusqlite::Connection::open(&file).unwrap();
    let broken = statement("bad", 0);
    for json in ["[1]", "7", "\"text\""] {
        sqlite
            .execute("INSERT OR REPLACE INTO documents (collection, id, seq_no, json) VALUES (0, 'bad', 0, ?)", [json])
            .unwrap();
        let read = store.statement(&broken.id).await;
        assert!(matches!(read, Err(StoreError::Corrupt(_))), "{json} {read:?}");
    }
    assert_eq!(store.open_statements(&broken.session, 9).await.unwrap().statements.len(), 1);
}
