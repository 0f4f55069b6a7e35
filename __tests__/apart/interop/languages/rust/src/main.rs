//! A Rust process that executes lock commands with the locks of rslock, in the line protocol of java/.../Peer.java. Its
//! argument is the port of Redis.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::AsyncCommands;
use rslock::{Lock, LockError, LockManager};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc;

type Answer = Result<String, String>;

fn text(error: impl std::fmt::Display) -> String {
    error.to_string().replace('\n', " ")
}

/// Between two attempts. A waiter of rslock sleeps for up to 200 ms, at random.
const PAUSE: Duration = Duration::from_millis(100);

/// Makes an attempt, and more until `wait` is over; without one, until it has the lock.
async fn take(
    locks: &LockManager,
    name: &str,
    ttl: u64,
    wait: Option<Duration>,
) -> Result<Option<Lock>, String> {
    let start = Instant::now();
    loop {
        match locks
            .lock(name.as_bytes(), Duration::from_millis(ttl))
            .await
        {
            Ok(lock) => return Ok(Some(lock)),
            Err(LockError::Unavailable) | Err(LockError::TtlExceeded) => {
                if wait.is_some_and(|wait| start.elapsed() >= wait) {
                    return Ok(None);
                }
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(text(error)),
        }
    }
}

/// What it says of a lock that another program holds.
async fn about(locks: &LockManager, name: &str) -> Answer {
    let refused = locks.lock(name.as_bytes(), Duration::from_secs(1)).await;
    let lost = Lock {
        resource: name.into(),
        val: vec![1],
        validity_time: 1,
        lock_manager: locks.clone(),
    };
    let freed = locks.is_freed(&lost).await;
    match (refused, freed) {
        (Err(LockError::Unavailable), Err(LockError::RedisKeyMismatch)) => {
            Ok("lock: Unavailable, is_freed: RedisKeyMismatch".into())
        }
        other => Err(format!("{other:?}").replace('\n', " ")),
    }
}

/// Tasks that take one lock over and over, and hold it for `work` ms, until `ms` are over. compete.ts does the same.
async fn compete(
    peer: &Peer,
    name: &str,
    ttl: u64,
    [callers, work, ms]: [u64; 3],
    inside: String,
) -> Answer {
    let start = Instant::now();
    let observed = Duration::from_millis(ms);
    let [turns, violations, longest, left_at] = [(); 4].map(|_| Arc::new(AtomicU64::new(0)));
    let mut tasks = Vec::new();
    for _ in 0..callers {
        let (locks, mut oracle) = (peer.locks.clone(), peer.redis.clone());
        let (turns, violations, longest, left_at) = (
            turns.clone(),
            violations.clone(),
            longest.clone(),
            left_at.clone(),
        );
        let (name, inside) = (name.to_owned(), inside.clone());
        tasks.push(tokio::spawn(async move {
            while start.elapsed() < observed {
                let lock = take(&locks, &name, ttl, None)
                    .await?
                    .expect("it waits for the lock");
                let entered = start.elapsed();
                longest.fetch_max(
                    (entered.as_millis() as u64).saturating_sub(left_at.load(SeqCst)),
                    SeqCst,
                );
                if oracle.incr::<_, _, i64>(&inside, 1).await.map_err(text)? != 1 {
                    violations.fetch_add(1, SeqCst);
                }
                if entered < observed {
                    turns.fetch_add(1, SeqCst);
                }
                tokio::time::sleep(Duration::from_millis(work)).await;
                if oracle.decr::<_, _, i64>(&inside, 1).await.map_err(text)? != 0 {
                    violations.fetch_add(1, SeqCst);
                }
                left_at.store(start.elapsed().as_millis() as u64, SeqCst);
                lock.release().await;
            }
            Ok::<(), String>(())
        }));
    }
    for task in tasks {
        task.await.map_err(text)??;
    }
    Ok([turns, longest, violations]
        .map(|number| number.load(SeqCst).to_string())
        .join(","))
}

struct Peer {
    locks: LockManager,
    redis: MultiplexedConnection,
}

impl Peer {
    async fn obey(
        &self,
        held: &mut HashMap<String, Lock>,
        ttl: u64,
        verb: &str,
        name: &str,
        rest: &[&str],
    ) -> Answer {
        let number = |at: usize| rest.get(at).and_then(|word| word.parse().ok()).unwrap_or(0);
        match verb {
            "lock" | "tryLock" => {
                let wait = (verb == "tryLock").then(|| Duration::from_millis(number(0)));
                let lock = take(&self.locks, name, ttl, wait).await?;
                let answer = lock.is_some().to_string();
                held.extend(lock.map(|lock| (name.to_owned(), lock)));
                Ok(answer)
            }
            "unlock" => {
                held.remove(name)
                    .ok_or_else(|| format!("lock {name} is not held"))?
                    .release()
                    .await;
                Ok("true".into())
            }
            "about" => about(&self.locks, name).await,
            "compete" => {
                compete(
                    self,
                    name,
                    ttl,
                    [0, 1, 2].map(number),
                    format!("{}:inside", rest[3]),
                )
                .await
            }
            _ => Err(format!("unknown verb {verb}")),
        }
    }
}

/// Executes the commands of one caller in order.
async fn serve(
    peer: Arc<Peer>,
    mut lines: mpsc::UnboundedReceiver<String>,
    writing: Arc<Mutex<()>>,
) {
    let mut held = HashMap::new();
    while let Some(line) = lines.recv().await {
        let words: Vec<&str> = line.split(' ').collect();
        let answer = peer
            .obey(
                &mut held,
                words[3].parse().unwrap_or(0),
                words[4],
                words[5],
                &words[6..],
            )
            .await;
        let _one = writing.lock();
        match answer {
            Ok(value) => println!("{} ok {value}", words[0]),
            Err(error) => println!("{} error {error}", words[0]),
        }
    }
}

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let url = format!("redis://127.0.0.1:{}/", words[1]);
    let client = redis::Client::open(url.clone()).expect("a port");
    let mut locks = LockManager::new(vec![url]);
    // Its calls make three attempts by default, and here they go on for as long as they are asked to.
    locks.set_retry(1, PAUSE);
    let redis = client
        .get_multiplexed_async_connection()
        .await
        .expect("a server");
    let peer = Arc::new(Peer { locks, redis });
    let writing = Arc::new(Mutex::new(()));
    let mut callers: HashMap<String, mpsc::UnboundedSender<String>> = HashMap::new();
    println!("ready");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let name = line.split(' ').nth(2).unwrap_or("").to_owned();
        let caller = callers.entry(name).or_insert_with(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            tokio::spawn(serve(peer.clone(), receiver, writing.clone()));
            sender
        });
        let _ = caller.send(line);
    }
    std::process::exit(0);
}
