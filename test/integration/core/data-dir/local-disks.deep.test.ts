import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newRoot, removeRoot } from '../../../support/data-dirs.js';
import { type FleetStore, newStore, removeStores, startTask } from '../../../support/fleet.js';
import { killAll } from '../../../support/processes.js';

/** Shows the orders in a SQLite file, and adds one more. */
const PROGRAM = `python3 -c '
import os, sqlite3, sys, time
database = sqlite3.connect(os.environ["NODE_DATA_DIR"] + "/orders.db")
database.execute("CREATE TABLE IF NOT EXISTS orders (item)")
found = ",".join(item for (item,) in database.execute("SELECT item FROM orders"))
database.execute("INSERT INTO orders VALUES (?)", (sys.argv[1],))
database.commit()
print("found [%s], restored %s" % (found, os.environ["NODE_DATA_RESTORED"]), flush=True)
time.sleep(300)
'`;

describe('a SQLite file on a disk that only one host has', () => {
  let store: FleetStore;
  let disks: Readonly<Record<'A' | 'B', string>>;
  beforeEach(async () => {
    store = await newStore('s3');
    disks = { A: newRoot(), B: newRoot() };
  });
  afterEach(async () => {
    await killAll();
    await removeStores();
    Object.values(disks).forEach(removeRoot);
  });

  /** Runs the program on a host until it has added its order, and kills it. */
  async function orderOn(host: 'A' | 'B', item: string, ...options: string[]): Promise<string> {
    // While other tests write gigabytes, the store may not answer for seconds.
    const settings = ['--nodes', '1', '--duration', '10s', '--sticky', 'file', '--data-dir', disks[host]];
    const task = startTask(store, [...settings, ...options], `exec ${PROGRAM} ${item}`);
    const [line] = await task.waitForOutput(/^found .*$/m);
    task.kill('SIGKILL');
    await task.exit;
    return line;
  }

  it.each([
    [
      'is not continued where another host has had the node id since',
      ['--data-local'],
      'found [], restored false',
    ],
    ['would be, without --data-local', [], 'found [a1,a2], restored true'],
  ])('%s', { timeout: 240_000 }, async (_, options, last) => {
    expect(await orderOn('A', 'a1', ...options)).toBe('found [], restored false');
    expect(await orderOn('A', 'a2', ...options)).toBe('found [a1], restored true');
    expect(await orderOn('B', 'b1', ...options)).toBe('found [], restored false');
    expect(await orderOn('A', 'a3', ...options)).toBe(last);
  });
});
