import type { Client } from 'node-zookeeper-client';
import type { ZooKeeper } from '../src/zookeeper/client/zookeeper.js';

/** Reads one znode. */
export interface Reader {
  /** Once. Resolves with the answer. */
  one(): Promise<unknown>;
  /** So many times in all, and so many of them at a time. */
  many(calls: number, inFlight: number): Promise<unknown>;
}

/** The baseline: the library's callbacks, without any promise between the calls. */
export function plainReader(library: Client, path: string): Reader {
  const read = (done: () => void) =>
    library.getData(path, (error) => {
      if (error) throw error;
      done();
    });
  return {
    one: () => new Promise<void>((resolve) => read(resolve)),
    many: (calls, inFlight) =>
      new Promise<void>((resolve) => {
        let [begun, ended] = [0, 0];
        const next = () => {
          if (begun === calls) return;
          begun += 1;
          read(() => {
            ended += 1;
            if (ended === calls) resolve();
            else next();
          });
        };
        for (let i = 0; i < inFlight; i += 1) next();
      }),
  };
}

/** The same by the promise client, as its users would. */
export function ourReader(zookeeper: ZooKeeper, path: string): Reader {
  return {
    one: () => zookeeper.read(path),
    many: (calls, inFlight) => {
      let begun = 0;
      const chain = async () => {
        while (begun < calls) {
          begun += 1;
          await zookeeper.read(path);
        }
      };
      return Promise.all(Array.from({ length: inFlight }, chain));
    },
  };
}

/** How long so many calls take, in microseconds for each. */
export async function microsEach(calls: number, work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return ((performance.now() - begun) * 1_000) / calls;
}
