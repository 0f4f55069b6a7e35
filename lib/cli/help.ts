import { LOCK_TYPES } from '../protocols/lock-type-traits';

const TYPES = LOCK_TYPES.map((type) => (type === 'spin' ? 'spin (default)' : type)).join(', ');

export const HELP = `redis-locks: runs a command under a lock in Redis, and shows who holds which lock

  redis-locks run KEY [options] -- COMMAND [ARGUMENTS]
      Waits for the lock KEY, runs the command while it holds it, and gives the lock back. The exit
      code is that of the command; 75 when the lock was not free. The command finds LOCK_KEY,
      LOCK_OWNER and LOCK_FENCING_TOKEN in its environment.
      --wait 30s     how long to wait for the lock; default: for ever
      --no-wait      do not wait
      --ttl 30s      a fixed lease: the lock is not renewed, and ends after this time
      --min-hold 30s for this long nobody else gets the lock, even if the command ends earlier: for cron
      --grace 10s    when the lock is lost, the command gets SIGTERM, and after this time SIGKILL
      --fencing      fencing tokens, for the Redisson types too

  redis-locks ls [--match 'order:*']        the locks that are held
  redis-locks inspect KEY                   who holds a lock, and for how long
  redis-locks watch [--interval 1s]         a live table, and what has changed; ends with Ctrl-C
  redis-locks release KEY --force           frees a lock by force; asks first on a
                                            terminal, unless --yes is given

  For all of them
      --url URL           redis://[user:password@]host:port/database; default: REDIS_URL, else
                          redis://localhost:6379
      --registry-key KEY  the registryKey of the application; default: locks
      --type TYPE         ${TYPES}: as the application
      --name NAME         what others read as the holder; default: host and pid
      --json              JSON in place of text
      --help, --version

  Example: redis-locks run nightly --wait 5m -- ./backup.sh
`;
