// `npm run bench:audit -- 100000`: how long `nodelease audit` takes for so many object versions on MinIO, and its
// memory at most. Makes the bucket first, which takes longer.

import { readFileSync } from 'node:fs';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { encodeCluster, newCluster } from '../src/core/lease/model/cluster-config.js';
import { nativeCodec } from '../src/core/lease/model/lease-codec.js';
import { acquired, type HeldLease, released, renewed } from '../src/core/lease/model/lease-state.js';
import { adminClient, awsEnvironment, createBucket } from '../test/support/bucket.js';
import { runCli } from '../test/support/processes.js';
import { startMinio } from '../test/support/servers/minio.js';

/** Versions of one object: a tenure of a hundred writes, and its end. */
const WRITES = 100;
const WRITERS = 24;

const versions = Number(process.argv[2] ?? 100_000);
const nodes = Math.min(65_000, Math.ceil(versions / WRITES));
const { stop, ...s3 } = await startMinio();
try {
  const { name: Bucket } = await createBucket(s3, true);
  const client = adminClient(s3);
  const put = ({ body, metadata }: ReturnType<typeof nativeCodec.encode>, key: string) =>
    client.send(
      new PutObjectCommand({
        Bucket,
        Key: `fleet/${key}`,
        Body: Buffer.from(body),
        Metadata: { ...metadata },
      }),
    );
  await put(
    { body: encodeCluster({ ...newCluster({ nodes }), bootstrapped: true }), metadata: {} },
    'cluster.json',
  );
  let id = 0;
  const write = async () => {
    for (let next = id++; next < nodes; next = id++) {
      const tenure = { durationMs: 15_000, storeNow: 1.8e12, stampedUntil: 0, idWidth: 16 };
      let lease: HeldLease = acquired(
        { kind: 'vacant' },
        { taskId: `task-${next}`, nonce: `${next}`, ...tenure },
      );
      for (let renewal = 1; renewal < WRITES; renewal += 1) {
        await put(nativeCodec.encode(lease), `${next}.json`);
        const width = { idWidth: 16, narrowIdsUntil: 0 };
        lease = renewed(lease, { renewal, durationMs: 15_000, storeNow: 1.8e12, knownNodes: {}, width });
      }
      await put(nativeCodec.encode(released(lease, 0, 1.8e12)), `${next}.json`);
    }
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: WRITERS }, write));
  console.log(`${nodes * WRITES} versions written in ${seconds(began)} s`);

  const from = performance.now();
  const options = ['--store', `s3://${Bucket}/fleet`, '--endpoint', s3.endpoint, '--json'];
  const audit = runCli(['audit', ...options], { env: awsEnvironment(s3) });
  let [kib, cpu] = [0, 0];
  const look = setInterval(() => {
    const [user = 0, system = 0] = readFileSync(`/proc/${audit.pid}/stat`, 'utf8')
      .split(' ')
      .slice(13, 15)
      .map(Number);
    cpu = (user + system) / 100;
    const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${audit.pid}/status`, 'utf8'))?.[1];
    kib = Math.max(kib, Number(peak ?? 0));
  }, 100);
  const { code } = await audit.exit.finally(() => clearInterval(look));
  console.log(audit.stdout(), audit.stderr());
  console.log(
    `judged in ${seconds(from)} s, ${cpu} s of a processor, exit code ${code}, at most ${Math.round(kib / 1_024)} MiB`,
  );
} finally {
  await stop();
}

function seconds(since: number): number {
  return Math.round((performance.now() - since) / 1_000);
}
