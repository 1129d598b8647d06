const base64 = (text: string) => Buffer.from(text).toString('base64');

/**
 * Calls the JSON gateway of an etcd server, as its operator does.
 * @throws Error with its answer when that is not 200
 */
export async function etcdCall(
  endpoint: string,
  path: string,
  body: object = {},
  init: RequestInit = {},
): Promise<Record<string, unknown>> {
  const reply = await fetch(`${endpoint}/v3/${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    // A member that is paused never answers.
    signal: AbortSignal.timeout(2_000),
    ...init,
  });
  const text = await reply.text();
  if (reply.status !== 200) throw new Error(`${path}: HTTP ${reply.status}: ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

/** The text at a key; undefined where there is none. */
export async function etcdGet(endpoint: string, key: string): Promise<string | undefined> {
  const { kvs } = (await etcdCall(endpoint, 'kv/range', { key: base64(key) })) as {
    kvs?: [{ value?: string }];
  };
  return kvs && Buffer.from(kvs[0].value ?? '', 'base64').toString();
}

/** Writes a text to each of the keys. */
export async function etcdPut(endpoint: string, keys: readonly string[], value: string): Promise<void> {
  for (let at = 0; at < keys.length; at += 100) {
    const success = keys
      .slice(at, at + 100)
      .map((key) => ({ request_put: { key: base64(key), value: base64(value) } }));
    await etcdCall(endpoint, 'kv/txn', { success });
  }
}

/**
 * Gives a cluster users: `root`, and one that may read and write the keys below a prefix. Both have the
 * password `secret`.
 */
export async function enableEtcdUsers(endpoint: string, user: string, prefix: string): Promise<void> {
  for (const name of ['root', user]) await etcdCall(endpoint, 'auth/user/add', { name, password: 'secret' });
  await etcdCall(endpoint, 'auth/role/add', { name: 'root' }).catch(() => undefined);
  await etcdCall(endpoint, 'auth/role/add', { name: 'leases' });
  const perm = { permType: 'READWRITE', key: base64(`${prefix}/`), range_end: base64(`${prefix}0`) };
  await etcdCall(endpoint, 'auth/role/grant', { name: 'leases', perm });
  await etcdCall(endpoint, 'auth/user/grant', { user: 'root', role: 'root' });
  await etcdCall(endpoint, 'auth/user/grant', { user, role: 'leases' });
  await etcdCall(endpoint, 'auth/enable');
}
